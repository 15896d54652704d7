import { type FilePart, type ImagePart, type Message, type Part, type ReasoningPart, Role, type ToolResultPart } from "../types.js";
import { AI_SDK } from "./ai_sdk.js";
import { asValue, callsOf, encoded, inSteps, joined, moreOf, type Rows } from "./common.js";
import { decode, isObject, type Json, membersOf, parse } from "./json.js";

type Names = ReadonlyMap<string, string>;

/**
 * Messages of a prompt of the AI SDK (`ModelMessage`). What came from there comes back as it was; what the format cannot say
 * is left out. Tool results stand in a message of their own. What is said beside some of a step's results
 * stands behind them all. Bytes of pictures and files are base64.
 */
export function toAiSdk(messages: readonly Message[]): Json[] {
  // Of the tools that calls so far named, by the ids of the calls.
  const names = new Map<string, string>();
  const written = messages.map((message) => {
    for (const { callId, name } of callsOf(message)) names.set(callId, name);
    return [message, rowsOf(message, names)] as const;
  });
  return inSteps(written);
}

function rowsOf({ native, role, parts }: Message, names: Names): Rows {
  if (native?.format === AI_SDK) return [[parse(native.json, "native") as Json], []];
  if (role === Role.SYSTEM || role === Role.DEVELOPER) return [[], [{ role: "system", content: joined(parts) }]];
  if (role === Role.ASSISTANT) return [[], [{ role: "assistant", content: contentIn(parts, names) }]];
  // A result stands in a tool's message, and what only the SDK knows.
  const isTools = ({ kind }: Part) => kind.case === "toolResult" || (role === Role.TOOL && kind.case === "opaque");
  const [apart, others] = [parts.filter(isTools), parts.filter((part) => !isTools(part))];
  const rows: Json[] = apart.length || role === Role.TOOL ? [{ role: "tool", content: piecesIn(apart, names) }] : [];
  return [rows, others.length || !rows.length ? [{ role: "user", content: contentIn(others, names) }] : []];
}

/** One plain text as a string, anything else as a list. */
function contentIn(parts: readonly Part[], names: Names): unknown {
  const pieces = piecesIn(parts, names);
  const [only] = pieces;
  const plain = pieces.length === 1 && only?.["type"] === "text" && Object.keys(only).length === 2;
  return plain ? only["text"] : pieces;
}

function piecesIn(parts: readonly Part[], names: Names): Json[] {
  return parts.map((part) => pieceIn(part, names)).filter((piece) => piece !== undefined);
}

function pieceIn(part: Part, names: Names): Json | undefined {
  const { kind } = part;
  const given = moreOf(part, "providerOptions");
  const options = Object.keys(given).length ? given : boundIn(part);
  switch (kind.case) {
    case "text":
      return { type: "text", text: kind.value.text, ...options };
    case "reasoning": {
      const bound = Object.keys(options).length ? options : signedIn(kind.value);
      return { type: "reasoning", text: kind.value.text, ...bound };
    }
    case "toolCall": {
      const { callId: toolCallId, name: toolName, argumentsJson } = kind.value;
      const more = moreOf(part, "providerExecuted");
      return { type: "tool-call", toolCallId, toolName, input: asValue(argumentsJson), ...options, ...more };
    }
    case "toolResult":
      return resultIn(part, kind.value, names);
    case "image": {
      const { type = "image" } = moreOf(part, "type");
      const { mimeType } = kind.value;
      const where = { [type === "file" ? "data" : "image"]: addressOf(kind.value) };
      return { type, ...where, ...(mimeType ? { mediaType: mimeType } : {}), ...options };
    }
    case "file": {
      const { name, mimeType } = kind.value;
      const mediaType = mimeType || "application/octet-stream";
      return { type: "file", data: addressOf(kind.value), mediaType, ...(name ? { filename: name } : {}), ...options };
    }
    case "opaque":
      return kind.value.format === AI_SDK ? membersOf(kind.value.json) : undefined;
  }
  return undefined;
}

/** Bytes in base64, or an address. */
function addressOf(medium: ImagePart | FilePart): string {
  return medium.source.case === "uri" ? medium.source.value : encoded(medium);
}

/** What binds a part to its reasoning, where only Gemini says so. */
function boundIn({ thoughtSignature }: Part): Json {
  if (!thoughtSignature.length) return {};
  return { providerOptions: { google: { thoughtSignature: decode(thoughtSignature) } } };
}

/** What binds reasoning, where its provider looks for it. */
function signedIn({ itemId, redactedData, signature }: ReasoningPart): Json {
  const secret = decode(redactedData);
  if (itemId) return { providerOptions: { openai: { itemId, ...(secret ? { reasoningEncryptedContent: secret } : {}) } } };
  if (secret) return { providerOptions: { anthropic: { redactedData: secret } } };
  return signature.length ? { providerOptions: { anthropic: { signature: decode(signature) } } } : {};
}

function resultIn(part: Part, result: ToolResultPart, names: Names): Json {
  const { callId: toolCallId, name } = result;
  const { output } = moreOf(part, "output");
  const told: Json = isObject(output) ? output : {};
  const options = "providerOptions" in told ? { providerOptions: told["providerOptions"] } : {};
  return {
    type: "tool-result",
    toolCallId,
    toolName: name || (names.get(toolCallId) ?? "unknown"),
    output: { ...outputIn(result, told["type"]), ...options },
    ...moreOf(part, "providerOptions"),
  };
}

/** `type`: what the SDK said of the output, if it did. */
function outputIn({ parts, isError }: ToolResultPart, type: unknown): Json {
  const text = joined(parts);
  if (type === "execution-denied") return { type, ...(text ? { reason: text } : {}) };
  if (type === "json" || type === "error-json") {
    try {
      return { type, value: JSON.parse(text) as unknown };
    } catch {
      // Cut off by now.
    }
  }
  if (isError) return { type: "error-text", value: text };
  const texts = parts.every(({ kind }) => kind.case === "text");
  if (type !== "content" && texts && parts.length < 2) return { type: "text", value: text };
  return { type: "content", value: parts.map(toldIn).filter((piece) => piece !== undefined) };
}

/** A part of a result. */
function toldIn(part: Part): Json | undefined {
  const { kind } = part;
  const more = moreOf(part, "type", "providerOptions");
  switch (kind.case) {
    case "text":
      return { type: "text", text: kind.value.text, ...more };
    case "image":
      return { ...whereIn(kind.value, "image"), ...more };
    case "file":
      return { ...whereIn(kind.value, "file"), ...(kind.value.name ? { filename: kind.value.name } : {}), ...more };
    case "opaque":
      return kind.value.format === AI_SDK ? membersOf(kind.value.json) : undefined;
  }
  return undefined;
}

function whereIn(medium: ImagePart | FilePart, kind: string): Json {
  const mime = medium.mimeType ? { mediaType: medium.mimeType } : {};
  const { source } = medium;
  if (source.case === "uri") return { type: `${kind}-url`, url: source.value, ...mime };
  return { type: `${kind}-data`, data: encoded(medium), ...mime };
}
