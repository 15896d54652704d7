import { toBinary } from "@bufbuild/protobuf";

import { type Message, MessageSchema } from "./types.js";

/** Messages of one call. */
const MOST = 100;
/**
 * Bytes of the messages of one call, where it has several: what a proxy on the way lets through that is set to nothing (nginx's
 * `client_max_body_size`), and far below the server's own limit.
 */
const MOST_BYTES = 1024 * 1024;

/** Messages in order, some at a time: at most a hundred, and a mebibyte or one that is larger. */
export function* batches(messages: readonly Message[]): Generator<Message[]> {
  let batch: Message[] = [];
  let size = 0;
  for (const message of messages) {
    const more = toBinary(MessageSchema, message).length;
    if (batch.length && (batch.length === MOST || size + more > MOST_BYTES)) {
      yield batch;
      [batch, size] = [[], 0];
    }
    batch.push(message);
    size += more;
  }
  if (batch.length) yield batch;
}
