import { type FilePart, type ImagePart, type Message, type Part, Role, type ToolResultPart } from "../types.js";
import { urlOf } from "./common.js";
import { decode, type Json, membersOf, parse } from "./json.js";
import { OPENAI_RESPONSES } from "./responses.js";

/** All other roles are a user's to the model. */
const NAMES: Partial<Record<Role, string>> = {
  [Role.ASSISTANT]: "assistant",
  [Role.DEVELOPER]: "developer",
  [Role.SYSTEM]: "system",
};

/**
 * The input items of a Responses request. What came from Responses comes back as it was; what the format cannot say is left
 * out. A message becomes as many items as it has calls, results and stretches of text. Reasoning is left out where it has not
 * the id of an item of OpenAI's: nobody else's is taken.
 */
export function toResponses(messages: readonly Message[]): Json[] {
  // Calls so far whose arguments are no JSON.
  const custom = new Set<unknown>();
  return messages.flatMap((message) => {
    const written = itemsOf(message, custom);
    for (const { type, call_id } of written) if (type === "custom_tool_call") custom.add(call_id);
    return written;
  });
}

function itemsOf(message: Message, custom: ReadonlySet<unknown>): Json[] {
  if (message.native?.format === OPENAI_RESPONSES) {
    const native = parse(message.native.json, "native") as Json | Json[];
    return Array.isArray(native) ? native : [native];
  }
  const role = NAMES[message.role] ?? "user";
  const items: Json[] = [];
  let stretch: Part[] = [];
  for (const part of message.parts) {
    const item = itemOf(part, custom);
    if (!item) stretch.push(part);
    else {
      items.push(...messageOf(role, stretch), item);
      stretch = [];
    }
  }
  return [...items, ...messageOf(role, stretch)];
}

/** The item of a stretch of text, pictures and files; none where it holds nothing. */
function messageOf(role: string, parts: readonly Part[]): Json[] {
  const content = piecesOf(parts, role);
  return content.length ? [{ type: "message", role, content }] : [];
}

/** The item that a part is by itself. Undefined: it belongs into a message, or nowhere. */
function itemOf(part: Part, custom: ReadonlySet<unknown>): Json | undefined {
  const more = membersOf(part.providerMetadataJson);
  const { kind } = part;
  switch (kind.case) {
    case "reasoning": {
      const { itemId: id, text, redactedData } = kind.value;
      if (!id) return undefined;
      const summary = text ? [{ type: "summary_text", text }] : [];
      const hidden = redactedData.length ? { encrypted_content: decode(redactedData) } : {};
      return { type: "reasoning", id, summary, ...hidden, ...more };
    }
    case "toolCall": {
      const { callId: call_id, name, argumentsJson, itemId: id, namespace } = kind.value;
      const args = decode(argumentsJson);
      const isCustom = more["type"] === "custom_tool_call" || more["type"] === "custom";
      return {
        call_id,
        name,
        ...(isCustom ? { input: args } : { arguments: args || "{}" }),
        ...(id ? { id } : {}),
        ...(namespace ? { namespace } : {}),
        ...more,
        type: isCustom ? "custom_tool_call" : "function_call",
      };
    }
    case "toolResult": {
      const { callId: call_id } = kind.value;
      const type = custom.has(call_id) ? "custom_tool_call_output" : "function_call_output";
      return { type, call_id, output: outputOf(kind.value), ...more };
    }
    case "opaque":
      return kind.value.format === OPENAI_RESPONSES && !isContent(kind.value.type) ? membersOf(kind.value.json) : undefined;
  }
  return undefined;
}

/** Whether an opaque part stands within a message: a refusal does. */
function isContent(type: string): boolean {
  return type === "refusal" || type === "input_audio";
}

/** A result as one text, or as a list where it holds more. */
function outputOf({ parts }: ToolResultPart): unknown {
  const pieces = piecesOf(parts, "user");
  const [only] = pieces;
  if (!only) return "";
  return pieces.length === 1 && "text" in only && Object.keys(only).length === 2 ? only["text"] : pieces;
}

function piecesOf(parts: readonly Part[], role: string): Json[] {
  return parts.map((part) => pieceOf(part, role)).filter((piece) => piece !== undefined);
}

/** A part within a message. Undefined: the format has no place for it. */
function pieceOf({ kind, providerMetadataJson }: Part, role: string): Json | undefined {
  const more = membersOf(providerMetadataJson);
  switch (kind.case) {
    case "text":
      return { type: role === "assistant" ? "output_text" : "input_text", text: kind.value.text, ...more };
    case "image": {
      const { detail } = kind.value;
      return { type: "input_image", ...whereOf(kind.value, "image_url"), ...(detail ? { detail } : {}), ...more };
    }
    case "file": {
      const { name, source } = kind.value;
      const key = source.case === "data" && source.value.length ? "file_data" : "file_url";
      return { type: "input_file", ...whereOf(kind.value, key), ...(name ? { filename: name } : {}), ...more };
    }
    case "opaque":
      return kind.value.format === OPENAI_RESPONSES ? membersOf(kind.value.json) : undefined;
  }
  return undefined;
}

/** Where a medium is: by its bytes, its address, or its id with the provider. */
function whereOf(medium: ImagePart | FilePart, key: string): Json {
  const url = urlOf(medium);
  return { [url.includes("://") || url.startsWith("data:") ? key : "file_id"]: url };
}
