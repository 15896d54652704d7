/** A list of the AI SDK beside what the service answers: its messages have no ids. Pure. */
import { createHash } from "node:crypto";

import { fromAiSdk, type Json, toAiSdk } from "@contextengine/client/formats";
import { type FilePart, Form, type ImagePart, type Item, type Message, type Part } from "@contextengine/client/types";
import type { ModelMessage } from "ai";

/** A list as the service takes it. Raises FormatError. */
export function kept(list: readonly ModelMessage[]): Message[] {
  return fromAiSdk(list.map(untagged));
}

/** A message whose files are as in version 6 of the SDK: in version 7 their data says what it is. */
function untagged(message: ModelMessage): ModelMessage {
  if (typeof message.content === "string") return message;
  return { ...message, content: message.content.map((part) => plain(part as Json)) } as unknown as ModelMessage;
}

function plain(part: Json): Json {
  const { type, data } = part;
  if (type !== "file" || typeof data !== "object" || data === null || !("type" in data)) return part;
  const tagged = data as Json;
  switch (tagged.type) {
    case "data":
      return { ...part, data: tagged.data };
    case "url":
      return { ...part, data: String(tagged.url) };
    case "text":
      return { type: "text", text: tagged.text };
  }
  return part;
}

/**
 * What the service answered, in the host's own messages where they are shown verbatim: what the host has changed about them
 * since (marks for the provider's cache, say) is the newer word. `keys`: of the list's messages, one by one.
 */
export function shown(items: readonly Item[], list: readonly ModelMessage[], keys: readonly string[]): ModelMessage[] {
  const made: ModelMessage[][] = [];
  let before = list.length;
  // What is shown verbatim stands in the list in the same order; from the end, where lists are alike.
  for (const { form, message } of items.toReversed()) {
    if (!message) continue;
    const place = form === Form.UNSPECIFIED && before ? keys.lastIndexOf(keyOf(message), before - 1) : -1;
    const own = list[place];
    if (own) before = place;
    made.push(own ? [own] : (toAiSdk([message]) as unknown as ModelMessage[]));
  }
  return made.toReversed().flat();
}

/** A digest of what hosts leave alone of a message: role, texts, names and arguments of calls, what results say. */
export function keyOf({ role, parts }: Message): string {
  return digest(JSON.stringify([role, ...parts.flatMap(saidIn)]));
}

function saidIn({ kind }: Part): unknown[] {
  switch (kind.case) {
    case "text":
      return kind.value.text ? [["text", kind.value.text]] : [];
    case "toolCall":
      return [["call", kind.value.name, Buffer.from(kind.value.argumentsJson).toString()]];
    case "toolResult":
      return [["result", ...kind.value.parts.flatMap(saidIn)]];
    case "image":
    case "file":
      return [["medium", whereIs(kind.value)]];
    case "opaque":
      return [["opaque", kind.value.type]];
  }
  return [];
}

function whereIs({ source }: ImagePart | FilePart): string {
  return source.case === "uri" ? source.value : digest(source.value ?? new Uint8Array());
}

function digest(bytes: string | Uint8Array): string {
  return createHash("sha256").update(bytes).digest("base64");
}

/**
 * A message as a prompt of the SDK's lower level has it: content is a list, pictures are files, addresses are no texts. `tags`: data
 * says what it is, as in version 7.
 */
export function prompted(message: ModelMessage, tags: boolean): ModelMessage {
  if (message.role === "system") return message;
  const content = typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;
  return { ...message, content: content.map((part) => lowered(part as Json, tags)) } as unknown as ModelMessage;
}

function lowered(part: Json, tags: boolean): Json {
  const { type, image, ...more } = part;
  const { data = image, mediaType = "image/*" } = part;
  if (type !== "image" && type !== "file") return part;
  const address = typeof data === "string" && /^https?:/.test(data) ? new URL(data) : data;
  if (!tags) return { ...more, type: "file", mediaType, data: address };
  const tagged = address instanceof URL ? { type: "url", url: address } : { type: "data", data: address };
  return { ...more, type: "file", mediaType, data: tagged };
}
