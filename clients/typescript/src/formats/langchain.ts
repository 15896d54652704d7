import { create, type MessageInitShape } from "@bufbuild/protobuf";

import { type Message, MessageSchema, type Part, Role, type UsageSchema } from "../types.js";
import { argumentsOf, beside, dataOf, decoded, type Kind, medium, opaque, part, said } from "./common.js";
import { compact, isObject, load, membersOf, Node, type Source } from "./json.js";

/** The name of the format of LangChain in `native`. */
export const LANGCHAIN = "langchain";

const ROLES: Record<string, Role> = {
  human: Role.USER,
  ai: Role.ASSISTANT,
  tool: Role.TOOL,
  system: Role.SYSTEM,
  developer: Role.DEVELOPER,
  user: Role.USER,
  assistant: Role.ASSISTANT,
};
/** Blocks of a content that only say where one of the message's calls stands. */
const CALLS = new Set(["tool_use", "tool_call", "function_call"]);
const encoder = new TextEncoder();

type Init = Omit<MessageInitShape<typeof MessageSchema>, "$typeName">;

/**
 * Messages as LangChain stores them, each keeping its original in `native`, byte for byte where it is given as text. Taken in
 * both forms: `{ type, data }`, which LangChain's Python and JavaScript write, and the members of `data` alone. Ids are the
 * messages'. Raises FormatError.
 */
export function fromLangChain(messages: readonly Source[]): Message[] {
  return messages.map((source, index) => {
    const { node, native: json } = load(source, `messages[${index}]`);
    return create(MessageSchema, { ...fromNode(node), native: { format: LANGCHAIN, json } });
  });
}

function fromNode(outer: Node): Init {
  const node = outer.node("data") ?? outer;
  const named = roleOf(outer.text("type") || node.required("type"), node);
  const id = node.text("id");
  if (named.role === Role.TOOL) return { id, ...named, parts: [resultOf(node)] };
  const name = node.text("name");
  if (named.role !== Role.ASSISTANT) return { id, name, ...named, parts: contentOf(node, []) };
  return { id, name, ...named, parts: replyOf(node), ...toldOf(node) };
}

/** The role, and the name of one that is nobody else's. */
function roleOf(type: string, node: Node): { role: Role; customRole?: string } {
  let kind = type.replace(/(MessageChunk|Message)$/, "").toLowerCase();
  if (kind === "chat") kind = node.required("role");
  if (kind === "system" && node.node("additional_kwargs")?.text("__openai_role__") === "developer") {
    return { role: Role.DEVELOPER };
  }
  const known = ROLES[kind];
  return known === undefined ? { role: Role.CUSTOM, customRole: kind } : { role: known };
}

/** The parts of a reply. Its calls stand where its content says, else behind it. */
function replyOf(node: Node): Part[] {
  const calls = node.nodes("tool_calls").map(callOf);
  const text = node.node("additional_kwargs")?.text("reasoning_content");
  const thought = text ? [part({ case: "reasoning", value: { text } })] : [];
  // LangChain writes an empty text where a model said nothing.
  const content = node.value["content"] === "" ? [] : contentOf(node, calls);
  return [...thought, ...content, ...calls, ...node.nodes("invalid_tool_calls").map(callOf)];
}

function callOf(node: Node): Part {
  const value = { callId: node.text("id"), name: node.required("name"), argumentsJson: argumentsOf(node.value["args"]) };
  return part({ case: "toolCall", value }, beside(node, "type", "id", "name", "args", "index"));
}

/** What the provider said of a reply. */
function toldOf(node: Node): Init {
  const told = node.node("response_metadata") ?? new Node({}, "");
  const usage = node.node("usage_metadata");
  return {
    model: told.text("model_name") || told.text("model"),
    provider: told.text("model_provider"),
    stopReason: told.text("finish_reason") || told.text("stop_reason"),
    ...(usage ? { usage: usageOf(usage) } : {}),
  };
}

/** LangChain's input is all of it. */
function usageOf(node: Node): MessageInitShape<typeof UsageSchema> {
  const read = node.node("input_token_details");
  const [cacheReadTokens, cacheWriteTokens] = [read?.integer("cache_read"), read?.integer("cache_creation")];
  const fresh = (node.integer("input_tokens") ?? 0n) - (cacheReadTokens ?? 0n) - (cacheWriteTokens ?? 0n);
  const numbers = {
    inputTokens: fresh > 0n ? fresh : 0n,
    outputTokens: node.integer("output_tokens"),
    cacheReadTokens,
    cacheWriteTokens,
    reasoningTokens: node.node("output_token_details")?.integer("reasoning"),
    totalTokens: node.integer("total_tokens"),
  };
  return Object.fromEntries(Object.entries(numbers).filter(([, value]) => value !== undefined));
}

function resultOf(node: Node): Part {
  const artifact = node.value["artifact"] ?? undefined;
  const value = {
    callId: node.required("tool_call_id"),
    name: node.text("name"),
    parts: contentOf(node, []),
    isError: node.text("status") === "error",
    ...(artifact === undefined ? {} : { detailsJson: compact(artifact) }),
  };
  return part({ case: "toolResult", value });
}

/** The parts of a content. Calls that stand in it are taken out of `calls`. */
function contentOf(node: Node, calls: Part[]): Part[] {
  const content = node.value["content"] ?? [];
  if (typeof content === "string") return [said(content)];
  if (!Array.isArray(content)) throw node.error("content", "a string or a list of blocks is needed");
  return content.map((block: unknown, at) => {
    if (typeof block === "string") return said(block);
    if (!isObject(block)) throw node.error("content", "a list of texts and blocks is needed");
    return blockOf(new Node(block, `${node.path}.content[${at}]`), calls);
  });
}

function blockOf(node: Node, calls: Part[]): Part {
  const type = node.required("type");
  switch (type) {
    case "text":
      return said(node.text("text"), beside(node, "type", "text"));
    case "thinking":
    case "reasoning":
    case "redacted_thinking":
      return thoughtOf(node, type);
    case "image_url":
      return imageUrlOf(node);
    case "image":
    case "file":
      return mediumOf(node, type) ?? opaqueOf(node);
  }
  if (!CALLS.has(type)) return opaqueOf(node);
  const id = node.text("call_id") || node.text("id");
  const place = calls.findIndex(({ kind }) => kind.case === "toolCall" && kind.value.callId === id);
  const [same] = place < 0 ? [] : calls.splice(place, 1);
  if (!same) return opaqueOf(node);
  return { ...same, providerMetadataJson: compact({ ...membersOf(same.providerMetadataJson), block: type }) };
}

function opaqueOf(node: Node): Part {
  return opaque(LANGCHAIN, node.required("type"), compact(node.value));
}

/** Reasoning, as Anthropic, OpenAI or LangChain's own blocks say it. */
function thoughtOf(node: Node, type: string): Part {
  const texts = node.nodes("summary").map((one) => one.text("text"));
  const signature = node.text("signature") || (node.node("extras")?.text("signature") ?? "");
  const value = {
    text: node.text("thinking") || node.text("reasoning") || texts.join("\n\n"),
    signature: encoder.encode(signature),
    redactedData: encoder.encode(node.text("data") || node.text("encrypted_content")),
    itemId: type === "reasoning" ? node.text("id") : "",
  };
  const known = ["type", "thinking", "reasoning", "signature", "data", "encrypted_content", "id"];
  // What several texts were joined of is kept beside them.
  return part({ case: "reasoning", value }, beside(node, ...known, ...(texts.length < 2 ? ["summary"] : [])));
}

function imageUrlOf(node: Node): Part {
  const given = node.value["image_url"];
  const inner = typeof given === "string" ? new Node({ url: given }, `${node.path}.image_url`) : node.node("image_url");
  if (!inner) throw node.error("image_url", "an object or an address is needed");
  const url = inner.required("url");
  const found = dataOf(url);
  const source = found ? { case: "data" as const, value: found.data } : { case: "uri" as const, value: url };
  const value = { source, mimeType: found?.mimeType ?? "", detail: inner.text("detail") };
  return part({ case: "image", value }, beside(node, "image_url"));
}

/** A picture or file by its bytes or its address. Undefined: in another way. */
function mediumOf(node: Node, type: string): Part | undefined {
  const mimeType = node.text("mime_type");
  let source;
  if (node.text("base64")) source = { case: "data" as const, value: decoded(node, "base64") };
  else if (node.text("url")) source = { case: "uri" as const, value: node.text("url") };
  else return undefined;
  let made: Kind = medium(source, type === "image" ? "image/" : mimeType);
  if (made.case === "image") made = { case: "image", value: { source, mimeType } };
  else made = { case: "file", value: { source, mimeType, name: node.text("filename") } };
  return part(made, beside(node, "base64", "url", "mime_type", "filename"));
}
