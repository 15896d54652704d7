import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp } from "@bufbuild/protobuf/wkt";

import { type Message, MessageSchema, type Part, Role, type UsageSchema } from "../types.js";
import { argumentsOf, beside, decoded, type Kind, medium, opaque, part, said } from "./common.js";
import { compact, isObject, type Json, load, membersOf, Node, type Source } from "./json.js";

/** The name of the format of Pydantic AI in `native`. */
export const PYDANTIC_AI = "pydantic-ai";
/** The member of a request's piece that says which piece it is, and of how many. */
export const OF = "contextengine:of";
/** The id of reasoning that only its provider can read, where it has none. */
export const REDACTED = "redacted_thinking";

const encoder = new TextEncoder();

/**
 * Messages as Pydantic AI's `ModelMessagesTypeAdapter` writes them, each keeping its original in `native`, byte for byte where it
 * is given as text. A request holds what several roles say (a system's prompt, tools' results, a user's words): each run of one
 * role becomes a message, whose original is the request with its own parts. They have no ids: see `withIds`. Raises FormatError.
 */
export function fromPydanticAi(messages: readonly Source[]): Message[] {
  return messages.flatMap((source, index) => {
    const { node, native } = load(source, `messages[${index}]`);
    switch (node.required("kind")) {
      case "request":
        return requestOf(node, native);
      case "response":
        return [create(MessageSchema, responseOf(node, native))];
    }
    throw node.error("kind", "request or response is needed");
  });
}

/** What one role says of a request. */
interface Run {
  role: Role;
  timestamp: Timestamp | undefined;
  parts: Part[];
  of: Json[];
}

function requestOf(node: Node, native: Uint8Array): Message[] {
  const runs: Run[] = [];
  for (const one of node.nodes("parts")) {
    const made = askedOf(one);
    let last = runs.at(-1);
    // What nobody is known to say is said by whoever said what stands before it.
    const role = made.role ?? last?.role ?? Role.USER;
    if (last?.role !== role) runs.push((last = { role, timestamp: one.time("timestamp"), parts: [], of: [] }));
    last.parts.push(...made.parts);
    last.of.push(one.value);
  }
  if (!runs.length) runs.push({ role: Role.USER, timestamp: undefined, parts: [], of: [] });
  return runs.map(({ role, timestamp, parts, of }, at) => {
    const json = runs.length > 1 ? compact({ ...node.value, parts: of, [OF]: [at, runs.length] }) : native;
    return create(MessageSchema, { role, parts, ...(timestamp ? { timestamp } : {}), native: { format: PYDANTIC_AI, json } });
  });
}

/** Who says a part of a request, and what. No role: whoever said what stands before it. */
function askedOf(node: Node): { role?: Role; parts: Part[] } {
  const kind = node.required("part_kind");
  switch (kind) {
    case "system-prompt":
      return { role: Role.SYSTEM, parts: [said(node.text("content"), beside(node, "part_kind", "content", "timestamp"))] };
    case "user-prompt":
      return { role: Role.USER, parts: contentOf(node) };
    case "tool-return":
      return { role: Role.TOOL, parts: [resultOf(node)] };
    case "retry-prompt":
    case "retry-feedback": {
      if (kind === "retry-prompt" && node.text("tool_name")) return { role: Role.TOOL, parts: [resultOf(node)] };
      const known = ["part_kind", "content", "timestamp", "tool_name", "tool_call_id"];
      const more = compact({ ...membersOf(beside(node, ...known)), part_kind: kind });
      return { role: Role.USER, parts: [said(textOf(node).text, more)] };
    }
  }
  return { parts: [opaqueOf(node, kind)] };
}

function opaqueOf(node: Node, kind: string): Part {
  return opaque(PYDANTIC_AI, kind, compact(node.value));
}

/** A content as text, and whether it is JSON that is no text. */
function textOf(node: Node): { text: string; isJson: boolean } {
  const { content } = node.value;
  if (typeof content === "string") return { text: node.text("content"), isJson: false };
  return { text: Buffer.from(compact(content ?? null)).toString(), isJson: true };
}

function resultOf(node: Node): Part {
  const kind = node.required("part_kind");
  const { content = null } = node.value;
  const told: Json = kind === "retry-prompt" ? { part_kind: kind } : {};
  let parts: Part[] = [];
  if (Array.isArray(content) && content.some(isMedium)) {
    parts = contentOf(node);
  } else if (content !== null) {
    const { text, isJson } = textOf(node);
    parts = [said(text)];
    if (isJson) told["content"] = "json";
  }
  const outcome = node.text("outcome");
  const value = {
    callId: node.required("tool_call_id"),
    name: node.required("tool_name"),
    parts,
    // A retry is told to the model as a failure.
    isError: kind === "retry-prompt" || !["", "success"].includes(outcome),
  };
  const known = ["part_kind", "tool_name", "content", "tool_call_id", "timestamp", ...(outcome === "success" ? ["outcome"] : [])];
  const rest = { ...membersOf(beside(node, ...known)), ...told };
  return part({ case: "toolResult", value }, Object.keys(rest).length ? compact(rest) : undefined);
}

function isMedium(one: unknown): boolean {
  return isObject(one) && /(-url|binary)$/.test(String(one["kind"] ?? ""));
}

/** What a user says, or a tool with pictures. */
function contentOf(node: Node): Part[] {
  const { content } = node.value;
  if (typeof content === "string") return [said(content)];
  if (!Array.isArray(content)) throw node.error("content", "a string or a list of texts and media is needed");
  return content.map((one: unknown, at) => {
    if (typeof one === "string") return said(one);
    if (!isObject(one)) throw node.error("content", "a list of texts and media is needed");
    return pieceOf(new Node(one, `${node.path}.content[${at}]`));
  });
}

function pieceOf(node: Node): Part {
  const kind = node.text("kind");
  if (kind === "text-content") return said(node.text("content"), beside(node, "content"));
  const mimeType = node.text("media_type");
  let made: Kind;
  switch (kind) {
    case "binary":
      made = medium({ case: "data", value: decoded(node, "data") }, mimeType);
      break;
    case "image-url":
      made = { case: "image", value: { source: { case: "uri", value: node.required("url") }, mimeType } };
      break;
    case "document-url":
      made = { case: "file", value: { source: { case: "uri", value: node.required("url") }, mimeType } };
      break;
    default:
      return opaqueOf(node, kind);
  }
  return part(made, beside(node, "kind", "data", "url", "media_type", "identifier", "force_download"));
}

function responseOf(node: Node, json: Uint8Array): MessageInitShape<typeof MessageSchema> {
  const usage = node.node("usage");
  const timestamp = node.time("timestamp");
  return {
    role: Role.ASSISTANT,
    parts: node.nodes("parts").map(repliedOf),
    provider: node.text("provider_name"),
    model: node.text("model_name"),
    stopReason: node.text("finish_reason"),
    native: { format: PYDANTIC_AI, json },
    ...(usage ? { usage: usageOf(usage) } : {}),
    ...(timestamp ? { timestamp } : {}),
  };
}

function repliedOf(node: Node): Part {
  const kind = node.required("part_kind");
  switch (kind) {
    case "text":
      return said(node.text("content"), beside(node, "part_kind", "content"));
    case "thinking": {
      const rest = beside(node, "part_kind", "content", "id", "signature");
      return part({ case: "reasoning", value: thoughtOf(node) }, rest);
    }
    case "tool-call": {
      const value = {
        callId: node.required("tool_call_id"),
        name: node.required("tool_name"),
        argumentsJson: argumentsOf(node.value["args"]),
        itemId: node.text("id"),
      };
      return part({ case: "toolCall", value }, beside(node, "part_kind", "tool_name", "args", "tool_call_id", "id"));
    }
    case "file": {
      const content = node.node("content");
      if (content?.text("kind") !== "binary") break;
      const made = medium({ case: "data", value: decoded(content, "data") }, content.text("media_type"));
      return part(made, beside(node, "part_kind", "content"));
    }
  }
  return opaqueOf(node, kind);
}

/** Reasoning. What Pydantic AI calls its signature is what OpenAI has encrypted, and Anthropic where it shows nothing. */
function thoughtOf(node: Node): Extract<Kind, { case: "reasoning" }>["value"] {
  const [text, id, bound] = [node.text("content"), node.text("id"), encoder.encode(node.text("signature"))];
  if (id === REDACTED) return { text, redactedData: bound };
  return id ? { text, itemId: id, redactedData: bound } : { text, signature: bound };
}

/** Pydantic AI's input is all of it. */
function usageOf(node: Node): MessageInitShape<typeof UsageSchema> {
  const [cacheReadTokens, cacheWriteTokens] = [node.integer("cache_read_tokens"), node.integer("cache_write_tokens")];
  const fresh = (node.integer("input_tokens") ?? 0n) - (cacheReadTokens ?? 0n) - (cacheWriteTokens ?? 0n);
  const numbers = {
    inputTokens: fresh > 0n ? fresh : 0n,
    outputTokens: node.integer("output_tokens"),
    cacheReadTokens,
    cacheWriteTokens,
    cacheWrite1hTokens: node.integer("cache_write_1h_tokens"),
    reasoningTokens: node.integer("output_reasoning_tokens"),
  };
  return Object.fromEntries(Object.entries(numbers).filter(([, value]) => value !== undefined));
}
