import { create } from "@bufbuild/protobuf";

import { type Message, MessageSchema, NativeSchema, type Part, Role } from "../types.js";
import { dataOf, type Kind, opaque, part, said } from "./common.js";
import { compact, load, type Node, type Source } from "./json.js";

/** The name of the format of OpenAI Responses in `native`. */
export const OPENAI_RESPONSES = "openai.responses";

const ROLES = new Map([
  ["user", Role.USER],
  ["assistant", Role.ASSISTANT],
  ["system", Role.SYSTEM],
  ["developer", Role.DEVELOPER],
]);
const encoder = new TextEncoder();

/**
 * Messages of the input items of a Responses request. Items that one reply of the model is made of (reasoning, then its text,
 * then its calls) become one; its `native` is the list of them. They have no ids: see `withIds`. Raises FormatError.
 */
export function fromResponses(items: readonly Source[]): Message[] {
  const found: { message: Message; natives: Uint8Array[] }[] = [];
  for (const [index, source] of items.entries()) {
    const { node, native } = load(source, `input[${index}]`);
    const message = fromItem(node);
    const before = found.at(-1);
    if (before && goesOn(before.message, message)) {
      before.message.parts.push(...message.parts);
      before.natives.push(native);
    } else found.push({ message, natives: [native] });
  }
  return found.map(({ message, natives }) => {
    message.native = create(NativeSchema, { format: OPENAI_RESPONSES, json: listed(natives) });
    return message;
  });
}

/** One item as it is, several as a list of the very bytes. */
function listed(natives: readonly Uint8Array[]): Uint8Array {
  if (natives.length === 1) return natives[0] as Uint8Array;
  const between = natives.flatMap((bytes, at) => [at ? encoder.encode(",") : encoder.encode("["), bytes]);
  return new Uint8Array(Buffer.concat([...between, encoder.encode("]")]));
}

/** Whether an item belongs to the reply that has begun: calls go on with anything but an answer, text with reasoning only. */
function goesOn(before: Message, message: Message): boolean {
  const [first] = message.parts;
  if (before.role !== Role.ASSISTANT || message.role !== Role.ASSISTANT || !first || !before.parts.length) return false;
  return first.kind.case === "toolCall" || before.parts.every(({ kind }) => kind.case === "reasoning");
}

function fromItem(node: Node): Message {
  const type = node.text("type") || "message";
  const one = (role: Role, ...parts: Part[]) => create(MessageSchema, { role, parts });
  switch (type) {
    case "message": {
      const role = ROLES.get(node.required("role"));
      if (role === undefined) throw node.error("role", `one of ${[...ROLES.keys()].join(", ")} is needed`);
      return one(role, ...contentOf(node, "content"));
    }
    case "reasoning":
      return one(Role.ASSISTANT, reasoningOf(node));
    case "function_call":
    case "custom_tool_call":
      return one(Role.ASSISTANT, callOf(node, type === "custom_tool_call"));
    case "function_call_output":
    case "custom_tool_call_output": {
      const value = { callId: node.required("call_id"), parts: contentOf(node, "output") };
      return one(Role.TOOL, part({ case: "toolResult", value }, node.rest("type", "call_id", "output", "id", "status")));
    }
  }
  return one(whose(node, type), opaque(OPENAI_RESPONSES, type, compact(node.value)));
}

/** Who an item of a kind that is not known here is from: who it says, of what a host sets the developer, else the model. */
function whose(node: Node, type: string): Role {
  return ROLES.get(node.text("role")) ?? (type === "configuration_update" ? Role.DEVELOPER : Role.ASSISTANT);
}

function reasoningOf(node: Node): Part {
  const summary = node.nodes("summary");
  // What several texts were joined of is kept beside them.
  const known = ["type", "id", "encrypted_content", ...(summary.length < 2 ? ["summary"] : [])];
  const value = {
    text: summary.map((text) => text.text("text")).join("\n\n"),
    redactedData: encoder.encode(node.text("encrypted_content")),
    itemId: node.text("id"),
  };
  return part({ case: "reasoning", value }, node.rest(...known));
}

/** A tool call. A custom tool's input is text of any kind, and stands where arguments stand. */
function callOf(node: Node, custom: boolean): Part {
  const given = custom ? "input" : "arguments";
  const value = {
    callId: node.required("call_id"),
    name: node.required("name"),
    argumentsJson: encoder.encode(node.text(given)),
    itemId: node.text("id"),
    namespace: node.text("namespace"),
  };
  const known = ["call_id", "name", given, "id", "namespace", ...(custom ? [] : ["type"])];
  return part({ case: "toolCall", value }, node.rest(...known));
}

function contentOf(node: Node, key: string): Part[] {
  const content = node.value[key];
  if (typeof content === "string") return [said(content)];
  if (!Array.isArray(content)) throw node.error(key, "a string or a list of parts is needed");
  return node.nodes(key).map(pieceOf);
}

function pieceOf(node: Node): Part {
  const type = node.required("type");
  switch (type) {
    case "input_text":
    case "output_text":
      return said(node.text("text"), node.rest("type", "text"));
    case "input_image": {
      const value = { ...whereOf(node, "image_url"), detail: node.text("detail") };
      return part({ case: "image", value }, node.rest("type", "image_url", "file_id", "detail"));
    }
    case "input_file": {
      const value = { ...whereOf(node, node.text("file_data") ? "file_data" : "file_url"), name: node.text("filename") };
      return part({ case: "file", value }, node.rest("type", "file_data", "file_url", "file_id", "filename"));
    }
  }
  return opaque(OPENAI_RESPONSES, type, compact(node.value));
}

/** A medium by its data URL, its address, or its id with the provider. */
function whereOf(node: Node, key: string): Pick<Extract<Kind, { case: "image" }>["value"], "source" | "mimeType"> {
  const url = node.text(key);
  const found = dataOf(url);
  if (found) return { source: { case: "data", value: found.data }, mimeType: found.mimeType };
  if (/^data:[^,]*;base64,/.test(url)) throw node.error(key, "base64 is needed");
  return { source: { case: "uri", value: url || node.text("file_id") } };
}
