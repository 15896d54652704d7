import { type FilePart, type ImagePart, type Message, type Part, type ReasoningPart, Role, type ToolResultPart, type Usage } from "../types.js";
import { asValue, callsOf, encoded, inSteps, moreOf, type Rows, urlOf } from "./common.js";
import { decode, isObject, type Json, membersOf, parse } from "./json.js";
import { LANGCHAIN } from "./langchain.js";

type Names = ReadonlyMap<string, string>;

/** All other roles are a user's to the model. */
const TYPES: Partial<Record<Role, string>> = { [Role.ASSISTANT]: "ai", [Role.DEVELOPER]: "system", [Role.SYSTEM]: "system" };

/**
 * Messages as LangChain stores them, each `{ type, data }`. What came from LangChain comes back as it was; what the format
 * cannot say is left out. A tool message with several results becomes several. What is said beside some of a step's results
 * stands behind them all.
 */
export function toLangChain(messages: readonly Message[]): Json[] {
  // Of the tools that calls so far named, by the ids of the calls.
  const names = new Map<string, string>();
  const written = messages.map((message) => {
    for (const { callId, name } of callsOf(message)) names.set(callId, name);
    return [message, rowsOf(message, names)] as const;
  });
  return inSteps(written);
}

function rowsOf(message: Message, names: Names): Rows {
  const { native, id, parts } = message;
  if (native?.format === LANGCHAIN) {
    const found = parse(native.json, "native") as Json;
    return [["data" in found ? found : { type: found["type"], data: found }], []];
  }
  const own = id ? { id } : {};
  const results = parts.flatMap(({ kind }) => (kind.case === "toolResult" ? [kind.value] : []));
  const others = parts.filter(({ kind }) => kind.case !== "toolResult");
  const rows = results.map((result, at) => row("tool", { ...resultIn(result, names), ...(at ? {} : own) }));
  return [rows, others.length || !rows.length ? [said(message, others, rows.length ? {} : own)] : []];
}

function row(type: string, data: Json): Json {
  return { type, data: { ...data, type } };
}

function said(message: Message, parts: readonly Part[], own: Json): Json {
  const { role, name } = message;
  return row(TYPES[role] ?? "human", {
    content: contentIn(parts),
    ...own,
    ...(name ? { name } : {}),
    ...(role === Role.DEVELOPER ? { additional_kwargs: { __openai_role__: "developer" } } : {}),
    ...(role === Role.ASSISTANT ? { ...callsIn(parts), ...toldIn(message) } : {}),
  });
}

/** One plain text, or none, as a string, anything else as a list. */
function contentIn(parts: readonly Part[]): unknown {
  const pieces = parts.map(blockIn).filter((piece) => piece !== undefined);
  const [only] = pieces;
  if (!only) return "";
  return pieces.length === 1 && only["type"] === "text" && Object.keys(only).length === 2 ? only["text"] : pieces;
}

function blockIn(part: Part): Json | undefined {
  const { kind } = part;
  switch (kind.case) {
    case "text": {
      const more = moreOf(part, "annotations", "cache_control", "citations", "extras", "index", "id");
      return { type: "text", text: kind.value.text, ...more };
    }
    case "reasoning":
      return { ...thoughtIn(kind.value), ...moreOf(part, "extras", "index", "summary") };
    case "toolCall":
      return placeIn(part, kind.value);
    case "image": {
      if (moreOf(part, "type")["type"] === "image") return { type: "image", ...whereIn(kind.value) };
      const { detail } = kind.value;
      return { type: "image_url", image_url: { url: urlOf(kind.value), ...(detail ? { detail } : {}) } };
    }
    case "file":
      return { type: "file", ...whereIn(kind.value), ...(kind.value.name ? { filename: kind.value.name } : {}) };
    case "opaque":
      return kind.value.format === LANGCHAIN ? membersOf(kind.value.json) : undefined;
  }
  return undefined;
}

/** Where a call stands in a content that says so. */
function placeIn(part: Part, { callId: id, name, argumentsJson }: { callId: string; name: string; argumentsJson: Uint8Array }) {
  const { block: type } = moreOf(part, "block");
  switch (type) {
    case "tool_use":
      return { type, id, name, input: asValue(argumentsJson) };
    case "tool_call":
      return { type, id, name, args: asValue(argumentsJson) };
    case "function_call":
      return { type, call_id: id, name, arguments: decode(argumentsJson) };
  }
  return undefined;
}

function thoughtIn({ text, itemId: id, redactedData, signature }: ReasoningPart): Json {
  const secret = decode(redactedData);
  if (id) {
    const summary = text ? [{ type: "summary_text", text }] : [];
    return { type: "reasoning", id, summary, ...(secret ? { encrypted_content: secret } : {}) };
  }
  if (secret) return { type: "redacted_thinking", data: secret };
  if (signature.length) return { type: "thinking", thinking: text, signature: decode(signature) };
  return { type: "reasoning", reasoning: text };
}

function whereIn(medium: ImagePart | FilePart): Json {
  const { source, mimeType } = medium;
  const where = source.case === "uri" ? { url: source.value } : { base64: encoded(medium) };
  return { ...where, ...(mimeType ? { mime_type: mimeType } : {}) };
}

/** The calls of a reply; those whose arguments are no object apart, as LangChain has them. */
function callsIn(parts: readonly Part[]): Json {
  const good: Json[] = [];
  const bad: Json[] = [];
  for (const part of parts) {
    if (part.kind.case !== "toolCall") continue;
    const { callId: id, name, argumentsJson } = part.kind.value;
    const args = asValue(argumentsJson);
    if (isObject(args)) good.push({ name, id, args, type: "tool_call" });
    else bad.push({ name, id, args: decode(argumentsJson), error: moreOf(part, "error")["error"] ?? null, type: "invalid_tool_call" });
  }
  return { tool_calls: good, invalid_tool_calls: bad };
}

/** What the provider said of a reply. */
function toldIn({ model, provider, stopReason, usage }: Message): Json {
  const told = { model_name: model, model_provider: provider, finish_reason: stopReason };
  const response_metadata = Object.fromEntries(Object.entries(told).filter(([, value]) => value));
  return { response_metadata, ...(usage ? { usage_metadata: usageIn(usage) } : {}) };
}

/** LangChain's input is all of it. */
function usageIn(usage: Usage): Json {
  const { cacheReadTokens: cached, cacheWriteTokens: written, reasoningTokens } = usage;
  const input = Number((usage.inputTokens ?? 0n) + (cached ?? 0n) + (written ?? 0n));
  const output = Number(usage.outputTokens ?? 0n);
  const details = {
    ...(cached === undefined ? {} : { cache_read: Number(cached) }),
    ...(written === undefined ? {} : { cache_creation: Number(written) }),
  };
  return {
    input_tokens: input,
    output_tokens: output,
    total_tokens: Number(usage.totalTokens ?? 0n) || input + output,
    ...(Object.keys(details).length ? { input_token_details: details } : {}),
    ...(reasoningTokens === undefined ? {} : { output_token_details: { reasoning: Number(reasoningTokens) } }),
  };
}

function resultIn({ callId, name: given, parts, isError, detailsJson }: ToolResultPart, names: Names): Json {
  const name = given || (names.get(callId) ?? "");
  return {
    content: contentIn(parts),
    tool_call_id: callId,
    status: isError ? "error" : "success",
    ...(name ? { name } : {}),
    ...(detailsJson.length ? { artifact: parse(detailsJson, "details_json") } : {}),
  };
}
