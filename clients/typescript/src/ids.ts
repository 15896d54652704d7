import { randomBytes } from "node:crypto";

import type { DescMessage, MessageShape } from "@bufbuild/protobuf";

import {
  AfterTurnRequestSchema,
  AssembleRequestSchema,
  BootstrapRequestSchema,
  IngestBatchRequestSchema,
  IngestRequestSchema,
  type Message,
  RecordHostChangeRequestSchema,
} from "./types.js";

let lastTime = 0;
let counter = 0;

/** A UUIDv7 (RFC 9562): 36 characters, rising with time, also within a millisecond of one process. */
export function newId(): string {
  const now = Date.now();
  counter = now > lastTime ? randomBytes(2).readUInt16BE() & 0x7ff : counter + 1;
  lastTime = Math.max(now, lastTime);
  if (counter > 0xfff) {
    lastTime += 1;
    counter = 0;
  }
  const bytes = randomBytes(16);
  bytes.writeUIntBE(lastTime, 0, 6);
  bytes.writeUInt16BE(0x7000 | counter, 6);
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8);
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/**
 * Copies of messages, those without an id with a new one. Calls set missing ids by themselves, but on copies: whoever keeps
 * messages to send them again gives them their ids here.
 */
export function withIds(messages: readonly Message[]): Message[] {
  return messages.map((message) => (message.id ? message : { ...message, id: newId() }));
}

/** A copy of a request with its ids set. */
export function ready<Desc extends DescMessage>(schema: Desc, given: MessageShape<Desc>): MessageShape<Desc> {
  const request = { ...given } as MessageShape<Desc> & Record<string, unknown>;
  const messages = (field: string, from = 0) => {
    const all = request[field] as Message[];
    Object.assign(request, { [field]: [...all.slice(0, from), ...withIds(all.slice(from))] });
  };
  const id = (field: string) => Object.assign(request, { [field]: request[field] || newId() });
  switch (schema.typeName) {
    case IngestRequestSchema.typeName:
      if (request["message"]) Object.assign(request, { message: withIds([request["message"] as Message])[0] });
      break;
    case IngestBatchRequestSchema.typeName:
      messages("messages");
      break;
    case AssembleRequestSchema.typeName:
      messages("ingest");
      if ((request["live"] as { storeNew?: boolean } | undefined)?.storeNew) id("requestId");
      break;
    case BootstrapRequestSchema.typeName:
      id("requestId");
      break;
    case AfterTurnRequestSchema.typeName:
      messages("messages", Math.max(0, Number(request["prePromptMessageCount"] ?? 0n)));
      id("requestId");
      break;
    case RecordHostChangeRequestSchema.typeName:
      id("changeId");
      break;
    default:
      if ("requestId" in schema.field) id("requestId");
  }
  return request;
}

/** The path of the first text in a request that UTF-8 cannot say: one with half a surrogate pair. Undefined: there is none. */
export function unsayable(value: unknown, path = ""): string | undefined {
  if (typeof value === "string") return isWellFormed(value) ? undefined : path;
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    if (key.startsWith("$")) continue;
    if (!isWellFormed(key)) return path;
    const name = /^\d+$/.test(key) ? `${path}[${key}]` : oneof(path, key);
    const found = unsayable(inner, name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The path of a member, as the protos name it: a oneof's value stands under the name of its case there. */
function oneof(path: string, key: string): string {
  const name = key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return path ? `${path}.${name}` : name;
}

function isWellFormed(text: string): boolean {
  return !/[\ud800-\udfff]/.test(text) || !/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(text);
}
