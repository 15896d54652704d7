import { create, type MessageInitShape } from "@bufbuild/protobuf";

import { text as textPart } from "../messages.js";
import {
  type FilePart,
  type ImagePart,
  type Message,
  MessageSchema,
  type Part,
  PartSchema,
  type ReasoningPart,
  Role,
  type UsageSchema,
} from "../types.js";
import { asObject, hasResults } from "./common.js";
import {
  base64,
  compact,
  decode,
  isObject,
  type Json,
  load,
  membersOf,
  Node,
  parse,
  type Source,
  storable,
} from "./json.js";

/** The name of the format of Anthropic Messages in `native`. */
export const ANTHROPIC_MESSAGES = "anthropic.messages";

type Kind = MessageInitShape<typeof PartSchema>["kind"];
const encoder = new TextEncoder();

/**
 * Messages of those of a Messages request, each keeping its original in `native`, byte for byte where it is given as text.
 * `system`, text or a list of blocks, becomes a leading system message; its JSON as bytes is kept as it is. A user message of
 * tool results alone is a tool message. They have no ids: see `withIds`. Raises FormatError.
 */
export function fromAnthropic(messages: readonly Source[], system?: unknown): Message[] {
  const head: Message[] = [];
  if (system !== undefined) {
    const json = system instanceof Uint8Array ? system : compact(system);
    const parts = blocksOf(new Node({ system: parse(json, "system") }, ""), "system");
    head.push(create(MessageSchema, { role: Role.SYSTEM, parts, native: { format: ANTHROPIC_MESSAGES, json } }));
  }
  const others = messages.map((source, index) => {
    const { node, native: json } = load(source, `messages[${index}]`);
    return create(MessageSchema, { ...fromNode(node), native: { format: ANTHROPIC_MESSAGES, json } });
  });
  return [...head, ...others];
}

function fromNode(node: Node): Omit<MessageInitShape<typeof MessageSchema>, "$typeName"> {
  const role = node.required("role");
  const parts = blocksOf(node, "content");
  if (role === "assistant") {
    const usage = node.node("usage");
    // A reply kept as the API gave it says more than a request may.
    return {
      role: Role.ASSISTANT,
      parts,
      api: "anthropic-messages",
      id: node.text("id"),
      model: node.text("model"),
      stopReason: node.text("stop_reason"),
      ...(usage ? { usage: usageOf(usage) } : {}),
    };
  }
  // Instructions that hold from there on stand among the messages.
  if (role === "system") return { role: Role.SYSTEM, parts };
  if (role !== "user") throw node.error("role", "user, assistant or system is needed");
  const answers = parts.length > 0 && parts.every(({ kind }) => kind.case === "toolResult");
  return { role: answers ? Role.TOOL : Role.USER, parts };
}

function blocksOf(node: Node, key: string): Part[] {
  const content = node.value[key];
  if (typeof content === "string") return [textPart(storable(content))];
  if (!Array.isArray(content)) throw node.error(key, "a string or a list of blocks is needed");
  return node.nodes(key).map(blockOf);
}

function blockOf(node: Node): Part {
  const part = (kind: Kind, ...known: string[]) =>
    create(PartSchema, { kind: kind!, providerMetadataJson: node.rest("type", ...known) });
  const type = node.required("type");
  const source = type === "image" || type === "document" ? sourceOf(node) : undefined;
  switch (type) {
    case "text":
      return part({ case: "text", value: { text: node.text("text") } }, "text");
    case "thinking": {
      const value = { text: node.text("thinking"), signature: encoder.encode(node.text("signature")) };
      return part({ case: "reasoning", value }, "thinking", "signature");
    }
    case "redacted_thinking":
      return part({ case: "reasoning", value: { redactedData: encoder.encode(node.required("data")) } }, "data");
    case "tool_use": {
      const argumentsJson = compact(node.value["input"] ?? {});
      const value = { callId: node.required("id"), name: node.required("name"), argumentsJson };
      return part({ case: "toolCall", value }, "id", "name", "input");
    }
    case "tool_result": {
      const parts = node.value["content"] == null ? [] : blocksOf(node, "content");
      const value = { callId: node.required("tool_use_id"), parts, isError: node.value["is_error"] === true };
      return part({ case: "toolResult", value }, "tool_use_id", "content", "is_error");
    }
  }
  if (source && type === "image") return part({ case: "image", value: source }, "source");
  if (source) return part({ case: "file", value: { ...source, name: node.text("title") } }, "source", "title");
  const value = { format: ANTHROPIC_MESSAGES, type, json: compact(node.value) };
  return create(PartSchema, { kind: { case: "opaque", value } });
}

/** Where a picture or document is. Undefined: in no way that is known here. */
function sourceOf(node: Node): { mimeType: string; source: ImagePart["source"] } | undefined {
  const source = node.node("source");
  if (!source) return undefined;
  const mimeType = source.text("media_type");
  const held = (value: Uint8Array) => ({ mimeType, source: { case: "data" as const, value } });
  const named = (value: string) => ({ mimeType, source: { case: "uri" as const, value } });
  switch (source.text("type")) {
    case "base64": {
      const data = base64(source.text("data"));
      if (data === undefined) throw source.error("data", "base64 is needed");
      return held(data);
    }
    case "text":
      return held(encoder.encode(source.text("data")));
    case "url":
      return named(source.required("url"));
    case "file":
      return named(source.required("file_id"));
  }
  return undefined;
}

function usageOf(node: Node): MessageInitShape<typeof UsageSchema> {
  const numbers = {
    inputTokens: node.integer("input_tokens"),
    outputTokens: node.integer("output_tokens"),
    cacheReadTokens: node.integer("cache_read_input_tokens"),
    cacheWriteTokens: node.integer("cache_creation_input_tokens"),
    cacheWrite1hTokens: node.node("cache_creation")?.integer("ephemeral_1h_input_tokens"),
  };
  return Object.fromEntries(Object.entries(numbers).filter(([, value]) => value !== undefined));
}

/** The part of a Messages request that says the conversation. */
export interface AnthropicRequest {
  system?: unknown[];
  messages: { role: "user" | "assistant" | "system"; content: unknown }[];
}

/**
 * The conversation as a Messages request says it. What came from Anthropic comes back as it was. Leading instructions become
 * `system`, later ones a user's text, unless they came as such and may stand where they do. Tool results are a user's; those
 * that follow each other share a message, as the API wants the results of parallel calls, unless they came from Anthropic apart.
 * What the format cannot say is left out, and a message of nothing else with it.
 */
export function toAnthropic(messages: readonly Message[]): AnthropicRequest {
  const system: unknown[] = [];
  const written: AnthropicRequest["messages"] = [];
  let [answers, made] = [false, true];
  for (const message of messages) {
    const content = contentIn(message);
    if (!content?.length) continue;
    const among = instructs(message) && cameAmong(message);
    const [before, own] = [answers, made];
    answers = hasResults(message);
    made = message.native?.format !== ANTHROPIC_MESSAGES;
    const last = written.at(-1);
    if (instructs(message) && !among && !last && Array.isArray(content)) system.push(...content);
    else if (last && before && answers && (own || made)) {
      last.content = resultsFirst([...(last.content as unknown[]), ...content]);
      made = true;
    } else written.push({ role: among ? "system" : message.role === Role.ASSISTANT ? "assistant" : "user", content });
  }
  place(written);
  return { ...(system.length ? { system } : {}), messages: written };
}

/** The blocks, results before all others, as the API wants them (Anthropic, Handle tool calls). */
function resultsFirst(blocks: unknown[]): unknown[] {
  const isResult = (block: unknown) => isObject(block) && block["type"] === "tool_result";
  return [...blocks.filter(isResult), ...blocks.filter((block) => !isResult(block))];
}

/**
 * Makes a `system` message the user's where the API does not take it: it may stand behind the user's, and before the model's or
 * last (Anthropic, mid-conversation system messages, Limitations).
 */
function place(messages: AnthropicRequest["messages"]): void {
  let before: string | undefined;
  for (const [at, one] of messages.entries()) {
    const after = messages[at + 1]?.role ?? "assistant";
    if (one.role === "system" && !(before === "user" && after === "assistant")) one.role = "user";
    before = one.role;
  }
}

function instructs({ role }: Message): boolean {
  return role === Role.SYSTEM || role === Role.DEVELOPER;
}

/** Whether instructions came as a message of their own, and not before all messages. */
function cameAmong(message: Message): boolean {
  return message.native?.format === ANTHROPIC_MESSAGES && isObject(parse(message.native.json, "native"));
}

function contentIn(message: Message): string | unknown[] | undefined {
  if (message.native?.format !== ANTHROPIC_MESSAGES) return blocksIn(message.parts);
  const native = parse(message.native.json, "native");
  if (typeof native === "string") return [{ type: "text", text: native }];
  if (isObject(native)) return native["content"] as string | unknown[];
  // A list is the blocks of instructions, or the messages that a reply came in.
  return instructs(message) ? (native as unknown[]) : blocksIn(message.parts);
}

function blocksIn(parts: readonly Part[]): Json[] {
  return parts.flatMap((part) => {
    const block = blockIn(part);
    return block ? [{ ...block, ...membersOf(part.providerMetadataJson) }] : [];
  });
}

function blockIn({ kind }: Part): Json | undefined {
  switch (kind.case) {
    case "text": // the API refuses empty texts
      return kind.value.text ? { type: "text", text: kind.value.text } : undefined;
    case "reasoning":
      return reasoningIn(kind.value);
    case "toolCall": {
      const { callId, name, argumentsJson } = kind.value;
      return { type: "tool_use", id: callId, name, input: asObject(argumentsJson) };
    }
    case "toolResult": {
      const content = blocksIn(kind.value.parts);
      return {
        type: "tool_result",
        tool_use_id: kind.value.callId,
        ...(content.length ? { content } : {}),
        ...(kind.value.isError ? { is_error: true } : {}),
      };
    }
    case "image":
      return { type: "image", source: sourceIn(kind.value) };
    case "file": {
      const { name } = kind.value;
      return { type: "document", source: sourceIn(kind.value), ...(name ? { title: name } : {}) };
    }
    case "opaque":
      return kind.value.format === ANTHROPIC_MESSAGES ? membersOf(kind.value.json) : undefined;
  }
  return undefined;
}

function reasoningIn({ text, signature, redactedData }: ReasoningPart): Json | undefined {
  if (redactedData.length) return { type: "redacted_thinking", data: decode(redactedData) };
  return signature.length ? { type: "thinking", thinking: text, signature: decode(signature) } : undefined;
}

function sourceIn({ source, mimeType }: ImagePart | FilePart): Json {
  if (source.case === "uri") return { type: "url", url: source.value };
  const data = Buffer.from(source.value ?? []);
  if (mimeType === "text/plain") return { type: "text", media_type: mimeType, data: data.toString() };
  return { type: "base64", media_type: mimeType, data: data.toString("base64") };
}
