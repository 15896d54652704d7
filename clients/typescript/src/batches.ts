import { toBinary } from "@bufbuild/protobuf";

import { type Message, MessageSchema } from "./types.js";

/** Messages of one call. */
const MOST = 100;
/**
 * Bytes of the messages of one call, where it has several: what a proxy on the way lets through that is set to nothing (nginx's
 * `client_max_body_size`), and far below the server's own limit.
 */
const MOST_BYTES = 1024 * 1024;
/** Bytes of one message that a server takes, where nobody set `sessions.max_message_bytes`. */
const LARGEST = 32 * 1024 * 1024;

/**
 * Messages in order, some at a time: at most a hundred, and a mebibyte or one that is larger. One that is too large with its original,
 * which says most of it a second time (a document of 20 MB), goes without: refused each time, it would keep all behind it from being stored.
 */
export function* batches(messages: readonly Message[]): Generator<Message[]> {
  let batch: Message[] = [];
  let size = 0;
  for (const given of messages) {
    let message = given;
    let more = bytesOf(message);
    if (more > LARGEST) {
      message = { ...given, native: undefined };
      more = bytesOf(message);
    }
    if (batch.length && (batch.length === MOST || size + more > MOST_BYTES)) {
      yield batch;
      [batch, size] = [[], 0];
    }
    batch.push(message);
    size += more;
  }
  if (batch.length) yield batch;
}

function bytesOf(message: Message): number {
  return toBinary(MessageSchema, message).length;
}
