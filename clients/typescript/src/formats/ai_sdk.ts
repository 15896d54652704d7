import { create } from "@bufbuild/protobuf";

import { type Message, MessageSchema, type Part, Role } from "../types.js";
import { argumentsOf, dataOf, decoded, type Kind, medium, opaque, part, said } from "./common.js";
import { compact, isObject, type Json, load, membersOf, type Node, type Source } from "./json.js";

/** The name of the format of the AI SDK of Vercel in `native`. */
export const AI_SDK = "ai-sdk";

const ROLES: Record<string, Role> = {
  user: Role.USER,
  assistant: Role.ASSISTANT,
  tool: Role.TOOL,
  system: Role.SYSTEM,
};
const encoder = new TextEncoder();

/**
 * Messages of a prompt of the AI SDK (`ModelMessage`), each keeping its original in `native`, byte for byte where it is given
 * as text. Bytes of pictures and files become base64, addresses texts, as JSON has them. They have no ids: see `withIds`.
 * Raises FormatError.
 */
export function fromAiSdk(messages: readonly (Source | object)[]): Message[] {
  return messages.map((source, index) => {
    const given = typeof source === "string" || source instanceof Uint8Array ? source : (plain(source) as Json);
    const { node, native: json } = load(given, `messages[${index}]`);
    const role = ROLES[node.required("role")];
    if (role === undefined) throw node.error("role", `one of ${Object.keys(ROLES).join(", ")} is needed`);
    return create(MessageSchema, { role, parts: contentOf(node), native: { format: AI_SDK, json } });
  });
}

/** A value with its bytes in base64 and its addresses as texts; the SDK reads both again. */
function plain(value: unknown): unknown {
  if (value instanceof URL) return value.href;
  if (value instanceof ArrayBuffer) return Buffer.from(value).toString("base64");
  if (ArrayBuffer.isView(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
  if (Array.isArray(value)) return value.map(plain);
  if (value instanceof Date || !isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
}

function contentOf(node: Node): Part[] {
  const { content } = node.value;
  if (typeof content === "string") return [said(content)];
  if (!Array.isArray(content)) throw node.error("content", "a string or a list of parts is needed");
  return node.nodes("content").map(partOf);
}

function partOf(node: Node): Part {
  const made = kindOf(node);
  const options = node.node("providerOptions");
  const signature = (options?.node("google") ?? options?.node("vertex"))?.text("thoughtSignature");
  return signature ? { ...made, thoughtSignature: encoder.encode(signature) } : made;
}

function kindOf(node: Node): Part {
  const type = node.required("type");
  switch (type) {
    case "text":
      return said(node.text("text"), node.rest("type", "text"));
    case "reasoning":
      return part({ case: "reasoning", value: thoughtOf(node) }, node.rest("type", "text"));
    case "tool-call": {
      const argumentsJson = inputOf(node.value["input"]);
      const value = { callId: node.required("toolCallId"), name: node.required("toolName"), argumentsJson };
      return part({ case: "toolCall", value }, node.rest("type", "toolCallId", "toolName", "input"));
    }
    case "tool-result":
      return resultOf(node);
    case "image":
      return mediumOf(node, "image");
    case "file":
      return mediumOf(node, "data");
  }
  return opaque(AI_SDK, type, compact(node.value));
}

/** A call's arguments. A string is what the model wrote where it is no JSON. */
function inputOf(value: unknown): Uint8Array {
  if (typeof value !== "string") return argumentsOf(value);
  try {
    JSON.parse(value);
  } catch {
    return argumentsOf(value);
  }
  return compact(value);
}

/** Reasoning; what binds it stands among the options of its provider. */
function thoughtOf(node: Node): Extract<Kind, { case: "reasoning" }>["value"] {
  const text = node.text("text");
  const options = node.node("providerOptions");
  const [anthropic, openai] = [options?.node("anthropic"), options?.node("openai")];
  if (anthropic) {
    const [signature, redacted] = [anthropic.text("signature"), anthropic.text("redactedData")];
    return { text, signature: encoder.encode(signature), redactedData: encoder.encode(redacted) };
  }
  if (!openai) return { text };
  return { text, itemId: openai.text("itemId"), redactedData: encoder.encode(openai.text("reasoningEncryptedContent")) };
}

/** A picture or file: base64, a data URL, or an address. */
function mediumOf(node: Node, key: "image" | "data"): Part {
  const given = node.required(key);
  const found = dataOf(given);
  const held = found?.data ?? (given.includes("://") ? undefined : decoded(node, key));
  const source = held ? { case: "data" as const, value: held } : { case: "uri" as const, value: given };
  const mimeType = node.text("mediaType") || (found?.mimeType ?? "");
  const kind: Kind =
    key === "image" ? { case: "image", value: { source, mimeType } } : medium(source, mimeType, node.text("filename"));
  // Said of a picture alone: files that are pictures are told from them by it.
  const told = key === "data" && kind.case === "image" ? { type: "file" } : {};
  const known = key === "image" ? ["image", "mediaType"] : ["data", "mediaType", "filename"];
  return part(kind, written({ ...membersOf(node.rest("type", ...known)), ...told }));
}

function resultOf(node: Node): Part {
  const output = node.node("output");
  if (!output) throw node.error("output", "an object is needed");
  const type = output.required("type");
  const parts = outputOf(output, type);
  const { providerOptions } = output.value;
  const told = {
    ...(type === "text" || type === "error-text" ? {} : { type }),
    ...(isObject(providerOptions) ? { providerOptions } : {}),
  };
  const isError = type === "error-text" || type === "error-json" || type === "execution-denied";
  const value = { callId: node.required("toolCallId"), name: node.required("toolName"), parts, isError };
  const rest = membersOf(node.rest("type", "toolCallId", "toolName", "output"));
  return part({ case: "toolResult", value }, written({ ...rest, ...(Object.keys(told).length ? { output: told } : {}) }));
}

function outputOf(output: Node, type: string): Part[] {
  switch (type) {
    case "text":
    case "error-text":
      return [said(output.text("value"))];
    case "json":
    case "error-json":
      return [said(Buffer.from(compact(output.value["value"] ?? null)).toString())];
    case "execution-denied":
      return [said(output.text("reason"))];
    case "content":
      return output.nodes("value").map(pieceOf);
  }
  throw output.error("type", "an output of the AI SDK is needed");
}

/** A part of a result. Which of several members it was that says the same is kept beside it. */
function pieceOf(node: Node): Part {
  const type = node.required("type");
  if (type === "text") return said(node.text("text"), node.rest("type", "text"));
  const mimeType = node.text("mediaType");
  const kind = type.startsWith("image-") ? "image/" : mimeType;
  let made: Kind;
  switch (type) {
    case "image-data":
    case "file-data":
    case "media":
      made = medium({ case: "data", value: decoded(node, "data") }, kind);
      break;
    case "image-url":
    case "file-url":
      made = medium({ case: "uri", value: node.required("url") }, kind);
      break;
    default:
      return opaque(AI_SDK, type, compact(node.value));
  }
  if (made.case === "image") made = { case: "image", value: { ...made.value, mimeType } };
  else if (made.case === "file") made = { case: "file", value: { ...made.value, name: node.text("filename") } };
  return part(made, node.rest("data", "url", "mediaType", "filename"));
}

function written(more: Json): Uint8Array {
  return Object.keys(more).length ? compact(more) : new Uint8Array();
}
