import { toJson } from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";

import { type FilePart, type ImagePart, type Message, type Part, type ReasoningPart, Role, type ToolResultPart, type Usage } from "../types.js";
import { callsOf, encoded, joined, moreOf } from "./common.js";
import { decode, type Json, membersOf, parse } from "./json.js";
import { OF, PYDANTIC_AI, REDACTED } from "./pydantic_ai.js";

type Names = ReadonlyMap<string, string>;

/** Why a model stopped, in Pydantic AI's words: it takes no others. */
const FINISHED = new Set(["stop", "length", "content_filter", "tool_call", "error"]);

/**
 * Requests and responses as Pydantic AI's `ModelMessagesTypeAdapter` reads them. What came from Pydantic AI comes back as it was,
 * the pieces of a request in one again; what the format cannot say is left out.
 */
export function toPydanticAi(messages: readonly Message[]): Json[] {
  // Of the tools that calls so far named, by the ids of the calls.
  const names = new Map<string, string>();
  const rows: Json[] = [];
  let last: number[] | undefined;
  for (const message of messages) {
    for (const { callId, name } of callsOf(message)) names.set(callId, name);
    const { [OF]: of, ...row } = rowOf(message, names);
    const [at, count] = (of ?? []) as number[];
    const before = rows.at(-1);
    if (before && last && at === last[0]! + 1 && count === last[1]) {
      before["parts"] = [...(before["parts"] as Json[]), ...(row["parts"] as Json[])];
    } else rows.push(row);
    last = of as number[] | undefined;
  }
  return rows;
}

function rowOf(message: Message, names: Names): Json {
  const { native, role, parts } = message;
  if (native?.format === PYDANTIC_AI) return parse(native.json, "native") as Json;
  if (role === Role.ASSISTANT) return responseIn(message);
  const written = parts.flatMap((part) => (part.kind.case === "toolResult" ? [resultIn(part, part.kind.value, names)] : []));
  const others = parts.filter(({ kind }) => kind.case !== "toolResult");
  if (role === Role.SYSTEM || role === Role.DEVELOPER) written.push(...others.flatMap(systemIn));
  else if (others.length || !written.length) written.push(...askedIn(others));
  // A part has the time of its message, where it has none of its own.
  return { kind: "request", parts: written.map((one) => ({ ...stampOf(message), ...one })) };
}

function stampOf({ timestamp }: Message): Json {
  return timestamp ? { timestamp: toJson(TimestampSchema, timestamp) } : {};
}

function systemIn(part: Part): Json[] {
  if (part.kind.case !== "text") return [];
  const more = moreOf(part, "dynamic_ref", "scope", "context_id", "metadata");
  return [{ part_kind: "system-prompt", content: part.kind.value.text, ...more }];
}

/** What a user says: words and media as one prompt, what Pydantic AI adds of its own apart. */
function askedIn(parts: readonly Part[]): Json[] {
  const written: Json[] = [];
  let content: unknown[] = [];
  for (const part of parts) {
    const apart = apartIn(part);
    if (apart) {
      written.push(...promptOf(content), apart);
      content = [];
    } else content.push(...[pieceIn(part)].filter((piece) => piece !== undefined));
  }
  return [...written, ...promptOf(content, !written.length)];
}

/** A part that is none of a prompt. */
function apartIn(part: Part): Json | undefined {
  if (part.kind.case === "text") {
    const more = moreOf(part, "part_kind", "retry", "metadata");
    return "part_kind" in more ? { content: part.kind.value.text, ...more } : undefined;
  }
  const own = ownOf(part);
  return own && "part_kind" in own ? own : undefined;
}

/** The prompt of these; none where it says nothing and is not needed. */
function promptOf(content: readonly unknown[], needed = false): Json[] {
  if (!content.length && !needed) return [];
  const [only] = content;
  return [{ part_kind: "user-prompt", content: content.length === 1 && typeof only === "string" ? only : content }];
}

/** What only Pydantic AI knows. */
function ownOf({ kind }: Part): Json | undefined {
  return kind.case === "opaque" && kind.value.format === PYDANTIC_AI ? membersOf(kind.value.json) : undefined;
}

function pieceIn(part: Part): unknown {
  const { kind } = part;
  switch (kind.case) {
    case "text": {
      const more = moreOf(part, "kind", "metadata");
      return more["kind"] === "text-content" ? { content: kind.value.text, ...more } : kind.value.text;
    }
    case "image":
      return { ...whereIn(kind.value, "image-url"), ...moreOf(part, "vendor_metadata") };
    case "file":
      return { ...whereIn(kind.value, "document-url"), ...moreOf(part, "vendor_metadata") };
  }
  return ownOf(part);
}

function whereIn(medium: ImagePart | FilePart, kind: string): Json {
  const { source, mimeType } = medium;
  if (source.case === "uri") return { kind, url: source.value, ...(mimeType ? { media_type: mimeType } : {}) };
  // Base64 in the alphabet that Pydantic writes.
  const data = encoded(medium).replaceAll("+", "-").replaceAll("/", "_");
  return { kind: "binary", data, media_type: mimeType || "application/octet-stream" };
}

function resultIn(part: Part, result: ToolResultPart, names: Names): Json {
  const { callId, name, isError } = result;
  const { part_kind = "tool-return", ...more } = moreOf(part, "part_kind", "outcome", "tool_kind", "metadata", "retry");
  return {
    part_kind,
    tool_name: name || (names.get(callId) ?? "unknown"),
    content: answerIn(part, result),
    tool_call_id: callId,
    ...(isError && part_kind === "tool-return" ? { outcome: "failed" } : {}),
    ...more,
  };
}

/** A result: the value that JSON says, the text, or texts and media. */
function answerIn(part: Part, { parts }: ToolResultPart): unknown {
  if ("content" in moreOf(part, "content")) {
    try {
      return JSON.parse(joined(parts)) as unknown;
    } catch {
      // Cut off by now.
    }
  }
  // A list of texts is JSON to Pydantic AI, and would be shown so.
  if (parts.every(({ kind }) => kind.case === "text")) return joined(parts);
  return parts.map(pieceIn).filter((piece) => piece !== undefined);
}

function responseIn(message: Message): Json {
  const { model, provider, stopReason, usage } = message;
  return {
    kind: "response",
    parts: message.parts.map(repliedIn).filter((one) => one !== undefined),
    ...stampOf(message),
    ...(usage ? { usage: usageIn(usage) } : {}),
    ...(model ? { model_name: model } : {}),
    ...(provider ? { provider_name: provider } : {}),
    ...(FINISHED.has(stopReason) ? { finish_reason: stopReason } : {}),
  };
}

function repliedIn(part: Part): Json | undefined {
  const { kind } = part;
  const more = moreOf(part, "provider_name", "provider_details");
  switch (kind.case) {
    case "text":
      return { part_kind: "text", content: kind.value.text, ...more, ...moreOf(part, "id", "citations") };
    case "reasoning":
      return { part_kind: "thinking", ...thoughtIn(kind.value), ...more };
    case "toolCall": {
      const { callId: tool_call_id, name: tool_name, argumentsJson, itemId: id } = kind.value;
      const own = { ...(id ? { id } : {}), ...more, ...moreOf(part, "tool_kind") };
      return { part_kind: "tool-call", tool_name, args: decode(argumentsJson), tool_call_id, ...own };
    }
    case "image":
    case "file": {
      const { source } = kind.value;
      if (source.case !== "data" || !source.value.length) return undefined;
      return { part_kind: "file", content: whereIn(kind.value, ""), ...more };
    }
  }
  return ownOf(part);
}

function thoughtIn({ text: content, itemId, redactedData, signature }: ReasoningPart): Json {
  const bound = decode(signature.length ? signature : redactedData);
  const id = itemId || (redactedData.length ? REDACTED : "");
  return { content, ...(id ? { id } : {}), ...(bound ? { signature: bound } : {}) };
}

/** Pydantic AI's input is all of it. */
function usageIn(usage: Usage): Json {
  const { cacheReadTokens: read, cacheWriteTokens: written } = usage;
  const counts = {
    input_tokens: (usage.inputTokens ?? 0n) + (read ?? 0n) + (written ?? 0n),
    output_tokens: usage.outputTokens ?? 0n,
    cache_read_tokens: read,
    cache_write_tokens: written,
    cache_write_1h_tokens: usage.cacheWrite1hTokens,
    output_reasoning_tokens: usage.reasoningTokens,
  };
  const told = Object.entries(counts).filter(([, value]) => value !== undefined);
  return Object.fromEntries(told.map(([key, value]) => [key, Number(value)]));
}
