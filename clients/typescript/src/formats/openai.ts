import { create } from "@bufbuild/protobuf";

import { text as textPart } from "../messages.js";
import {
  type Message,
  MessageSchema,
  NativeSchema,
  type Part,
  PartSchema,
  Role,
  type ToolCallPart,
  type ToolResultPart,
} from "../types.js";
import { argumentsOf, dataOf, inSteps, type Rows, urlOf } from "./common.js";
import { compact, decode, type Json, load, membersOf, type Node, parse, type Source, storable } from "./json.js";

/** The name of the format of OpenAI Chat Completions in `native`. */
export const OPENAI_CHAT = "openai.chat";

const ROLES: Record<string, Role> = {
  user: Role.USER,
  assistant: Role.ASSISTANT,
  tool: Role.TOOL,
  system: Role.SYSTEM,
  developer: Role.DEVELOPER,
};

/**
 * Messages of those of a Chat Completions request, each keeping its original in `native`, byte for byte where it is given as
 * text. They have no ids: see `withIds`. Raises FormatError.
 */
export function fromOpenAI(messages: readonly Source[]): Message[] {
  return messages.map((source, index) => {
    const { node, native } = load(source, `messages[${index}]`);
    return { ...fromNode(node), native: create(NativeSchema, { format: OPENAI_CHAT, json: native }) };
  });
}

function fromNode(node: Node): Message {
  const role = ROLES[node.required("role")];
  if (role === undefined) throw node.error("role", `one of ${Object.keys(ROLES).join(", ")} is needed`);
  const content = contentOf(node);
  if (role === Role.TOOL) {
    const value = { callId: node.required("tool_call_id"), name: node.text("name"), parts: content };
    return create(MessageSchema, { role, parts: [{ kind: { case: "toolResult", value } }] });
  }
  const reasoning = node.text("reasoning_content");
  const parts: Part[] = [
    ...(reasoning ? [create(PartSchema, { kind: { case: "reasoning", value: { text: reasoning } } })] : []),
    ...content,
  ];
  if (node.text("refusal")) {
    const json = compact({ type: "refusal", refusal: node.value["refusal"] });
    const value = { format: OPENAI_CHAT, type: "refusal", json };
    parts.push(create(PartSchema, { kind: { case: "opaque", value } }));
  }
  parts.push(...node.nodes("tool_calls").map(callOf));
  return create(MessageSchema, { role, name: node.text("name"), parts });
}

function contentOf(node: Node): Part[] {
  const content = node.value["content"];
  return typeof content === "string" ? [textPart(storable(content))] : node.nodes("content").map(partOf);
}

function partOf(node: Node): Part {
  const type = node.required("type");
  const [image, file] = [node.node("image_url"), node.node("file")];
  if (type === "text") {
    return { ...textPart(node.text("text")), providerMetadataJson: node.rest("type", "text") };
  }
  if (type === "image_url" && image) {
    const url = image.required("url");
    const found = dataOf(url);
    const source = found
      ? { case: "data" as const, value: found.data }
      : { case: "uri" as const, value: url };
    const value = { source, mimeType: found?.mimeType ?? "", detail: image.text("detail") };
    return create(PartSchema, {
      kind: { case: "image", value },
      providerMetadataJson: node.rest("type", "image_url"),
    });
  }
  if (type === "file" && file) {
    const found = dataOf(file.text("file_data"));
    const source = found
      ? { case: "data" as const, value: found.data }
      : { case: "uri" as const, value: file.text("file_id") };
    const value = { source, mimeType: found?.mimeType ?? "", name: file.text("filename") };
    return create(PartSchema, { kind: { case: "file", value }, providerMetadataJson: node.rest("type", "file") });
  }
  const value = { format: OPENAI_CHAT, type, json: compact(node.value) };
  return create(PartSchema, { kind: { case: "opaque", value } });
}

/** A tool call. A custom tool's input is text of any kind, and stands where arguments stand. */
function callOf(node: Node): Part {
  const custom = node.node("custom");
  const body = custom ?? node.node("function");
  if (!body) throw node.error("function", "an object is needed");
  const argumentsJson = argumentsOf(body.value[custom ? "input" : "arguments"]);
  const value = { callId: node.required("id"), name: body.required("name"), argumentsJson };
  const known = (node.value["type"] ?? "function") === "function" ? ["type"] : [];
  return create(PartSchema, {
    kind: { case: "toolCall", value },
    providerMetadataJson: node.rest("id", "function", "custom", ...known),
  });
}

/**
 * The messages of a Chat Completions request. What came from OpenAI comes back as it was; what the format cannot say is left
 * out. A tool message with several results becomes several. What is said beside some of a step's results stands behind them
 * all: the API wants them directly behind the calls.
 */
export function toOpenAI(messages: readonly Message[]): Json[] {
  return inSteps(messages.map((message) => [message, rowsOf(message)] as const));
}

function rowsOf(message: Message): Rows {
  if (message.native?.format === OPENAI_CHAT) return [[parse(message.native.json, "native") as Json], []];
  const results = message.parts.flatMap(({ kind }) => (kind.case === "toolResult" ? [resultIn(kind.value)] : []));
  const others = message.parts.filter(({ kind }) => kind.case !== "toolResult");
  return [results, others.length || !results.length ? [messageIn(message, others)] : []];
}

function resultIn({ callId, name, parts }: ToolResultPart): Json {
  return { role: "tool", tool_call_id: callId, ...(name ? { name } : {}), content: contentIn(parts) ?? "" };
}

function messageIn({ role, name }: Message, parts: readonly Part[]): Json {
  // Roles of a harness's own are a user's to the model.
  const said = Object.keys(ROLES).find((key) => ROLES[key] === role) ?? "user";
  const refusal = parts.find(isRefusal)?.kind;
  const calls = parts.flatMap((part) => (part.kind.case === "toolCall" ? [callIn(part.kind.value, part)] : []));
  return {
    role: said,
    ...(name ? { name } : {}),
    content: contentIn(parts) ?? (role === Role.ASSISTANT ? null : ""),
    ...(refusal?.case === "opaque" ? { refusal: membersOf(refusal.value.json)["refusal"] } : {}),
    ...(calls.length ? { tool_calls: calls } : {}),
  };
}

/** One plain text as a string, anything else as a list. Undefined: nothing. */
function contentIn(parts: readonly Part[]): unknown {
  const pieces: Json[] = parts.map(partIn).filter((piece) => piece !== undefined);
  const [only] = pieces;
  if (only && pieces.length === 1 && only["type"] === "text" && Object.keys(only).length === 2) return only["text"];
  return pieces.length ? pieces : undefined;
}

function partIn(part: Part): Json | undefined {
  const more = membersOf(part.providerMetadataJson);
  const { kind } = part;
  switch (kind.case) {
    case "text":
      return { type: "text", text: kind.value.text, ...more };
    case "image": {
      const { detail } = kind.value;
      return { type: "image_url", image_url: { url: urlOf(kind.value), ...(detail ? { detail } : {}) }, ...more };
    }
    case "file": {
      const { name, source } = kind.value;
      const held = source.case === "data" && source.value.length > 0;
      const where = held ? { file_data: urlOf(kind.value) } : { file_id: source.case === "uri" ? source.value : "" };
      return { type: "file", file: { ...(name ? { filename: name } : {}), ...where }, ...more };
    }
    case "opaque":
      return kind.value.format === OPENAI_CHAT && !isRefusal(part) ? membersOf(kind.value.json) : undefined;
    default:
      return undefined;
  }
}

function callIn({ callId, name, argumentsJson }: ToolCallPart, part: Part): Json {
  const more = membersOf(part.providerMetadataJson);
  const text = decode(argumentsJson);
  if (more["type"] === "custom") return { id: callId, custom: { name, input: text }, ...more };
  return { id: callId, type: "function", function: { name, arguments: text }, ...more };
}

function isRefusal({ kind }: Part): boolean {
  return kind.case === "opaque" && kind.value.format === OPENAI_CHAT && kind.value.type === "refusal";
}
