import { toJson } from "@bufbuild/protobuf";
import { timestampMs, TimestampSchema } from "@bufbuild/protobuf/wkt";

import { newId } from "../ids.js";
import { type Message, type Part, Role, type ToolResultPart, type Usage } from "../types.js";
import { asObject, callsOf, encoded, inSteps, joined, moreOf, type Rows } from "./common.js";
import { decode, type Json, membersOf, parse } from "./json.js";
import { PI } from "./pi.js";

type Names = ReadonlyMap<string, string>;

/**
 * Messages as an agent of Pi or OpenClaw holds them (`AgentMessage`). What came from there comes back as it was; what the
 * format cannot say is left out. Instructions have no place among them and become a user's. A tool message with several
 * results becomes several; what is said beside some of a step's results stands behind them all. A reply says what Pi insists
 * on: a usage of zeros where none is known.
 */
export function toPi(messages: readonly Message[]): Json[] {
  const written = Array.from(named(messages), ([message, names]) => [message, spoken(message, names)] as const);
  return inSteps(written);
}

/** Entries of a session, each below the one before it. What came from Pi comes back as it was, with the parent that it had. */
export function toPiEntries(messages: readonly Message[]): Json[] {
  const entries: Json[] = [];
  for (const [message, names] of named(messages)) {
    const native = nativeOf(message);
    if (native && "type" in native) {
      entries.push(native);
      continue;
    }
    for (const [at, said] of spoken(message, names).flat().entries()) {
      entries.push({
        type: "message",
        id: message.id && !at ? message.id : newId(),
        parentId: entries.at(-1)?.["id"] ?? null,
        ...(message.timestamp ? { timestamp: toJson(TimestampSchema, message.timestamp) } : {}),
        message: said,
      });
    }
  }
  return entries;
}

/** Each with the names of the tools that calls so far named, by the ids of the calls. */
function* named(messages: readonly Message[]): Generator<[Message, Names]> {
  const names = new Map<string, string>();
  for (const message of messages) {
    for (const { callId, name } of callsOf(message)) names.set(callId, name);
    yield [message, names];
  }
}

function nativeOf({ native }: Message): Json | undefined {
  return native?.format === PI ? (parse(native.json, "native") as Json) : undefined;
}

function spoken(message: Message, names: Names): Rows {
  const native = nativeOf(message);
  if (native) return [[ofEntry(native, message)], []];
  const results = message.parts.flatMap(({ kind }) => (kind.case === "toolResult" ? [resultIn(kind.value, names)] : []));
  const others = message.parts.filter(({ kind }) => kind.case !== "toolResult");
  const stamped = (rows: Json[]) => rows.map((row) => ({ ...row, ...stamp(message) }));
  return [stamped(results), stamped(others.length || !results.length ? [messageIn(message, others)] : [])];
}

function stamp({ timestamp }: Message): Json {
  return timestamp ? { timestamp: timestampMs(timestamp) } : {};
}

/** The message that an entry holds, or stands for. */
function ofEntry(native: Json, message: Message): Json {
  const picked = (...keys: string[]) => Object.fromEntries(keys.flatMap((key) => (key in native ? [[key, native[key]]] : [])));
  switch (native["type"]) {
    case undefined:
      return native;
    case "message":
      return native["message"] as Json;
    case "branch_summary":
      return { role: "branchSummary", ...picked("summary", "fromId"), ...stamp(message) };
  }
  return { role: "custom", ...picked("customType", "content", "display", "details"), ...stamp(message) };
}

function messageIn(message: Message, parts: readonly Part[]): Json {
  const content = piecesIn(parts);
  const { role, customRole, labels } = message;
  if (role === Role.ASSISTANT) {
    const { api, provider, model, stopReason, usage } = message;
    const usual = content.some(({ type }) => type === "toolCall") ? "toolUse" : "stop";
    return { role: "assistant", content, api, provider, model, usage: usageIn(usage), stopReason: stopReason || usual };
  }
  if (role !== Role.CUSTOM) {
    const [only] = content;
    const plain = content.length === 1 && only?.["type"] === "text" && Object.keys(only).length === 2;
    return { role: "user", content: plain && role !== Role.TOOL ? only["text"] : content };
  }
  const hidden = "excluded" in labels ? { excludeFromContext: true } : {};
  switch (customRole) {
    case "branchSummary":
    case "compactionSummary":
      return { role: customRole, summary: joined(parts) };
    case "bashExecution": {
      const [, command, output] = /^(?:\$ )?([^\n]*)\n?(.*)$/s.exec(joined(parts)) ?? [];
      return { role: customRole, command, output, ...hidden };
    }
  }
  return { role: customRole, ...("custom_type" in labels ? { customType: labels["custom_type"] } : {}), content, ...hidden };
}

function resultIn({ callId, name, parts, detailsJson, isError }: ToolResultPart, names: Names): Json {
  return {
    role: "toolResult",
    toolCallId: callId,
    toolName: name || (names.get(callId) ?? ""),
    content: piecesIn(parts),
    ...(detailsJson.length ? { details: parse(detailsJson, "details_json") } : {}),
    isError,
  };
}

function piecesIn(parts: readonly Part[]): Json[] {
  return parts.map(pieceIn).filter((piece) => piece !== undefined);
}

function pieceIn(part: Part): Json | undefined {
  const { kind } = part;
  switch (kind.case) {
    case "text":
      return { type: "text", text: kind.value.text, ...moreOf(part, "textSignature") };
    case "reasoning": {
      const { text: thinking, signature, redactedData } = kind.value;
      if (redactedData.length) return { type: "thinking", thinking, thinkingSignature: decode(redactedData), redacted: true };
      const signed = signature.length ? { thinkingSignature: decode(signature) } : {};
      return { type: "thinking", thinking, ...signed, ...moreOf(part, "redacted") };
    }
    case "toolCall": {
      const { callId: id, name, argumentsJson } = kind.value;
      const bound = part.thoughtSignature.length ? { thoughtSignature: decode(part.thoughtSignature) } : {};
      return { type: "toolCall", id, name, arguments: asObject(argumentsJson), ...bound };
    }
    case "image":
      if (kind.value.source.case !== "data") return undefined;
      return { type: "image", data: encoded(kind.value), mimeType: kind.value.mimeType };
    case "opaque":
      return kind.value.format === PI ? membersOf(kind.value.json) : undefined;
  }
  return undefined;
}

/** As Pi insists on it: numbers, zero where nothing is known, and US dollars. */
function usageIn(usage: Usage | undefined): Json {
  const counts = {
    input: Number(usage?.inputTokens ?? 0n),
    output: Number(usage?.outputTokens ?? 0n),
    cacheRead: Number(usage?.cacheReadTokens ?? 0n),
    cacheWrite: Number(usage?.cacheWriteTokens ?? 0n),
  };
  const sum = counts.input + counts.output + counts.cacheRead + counts.cacheWrite;
  const total = Number(usage?.costMicroUsd ?? 0n) / 1e6;
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total };
  return { ...counts, totalTokens: usage?.totalTokens === undefined ? sum : Number(usage.totalTokens), cost };
}
