import { create } from "@bufbuild/protobuf";

import { newId } from "./ids.js";
import { type Message, MessageSchema, type Part, PartSchema, Role, type ToolCallPart, ToolCallPartSchema } from "./types.js";

/** A message of the user, with a new id. */
export function user(content: string): Message {
  return message(Role.USER, [text(content)]);
}

/** Instructions of the system, with a new id. Where they lead the session, every assembly shows them verbatim. */
export function system(content: string): Message {
  return message(Role.SYSTEM, [text(content)]);
}

/** A reply of the model, with a new id: its text, where there is any, and its calls. */
export function assistant(content: string, toolCalls: readonly ToolCallPart[] = []): Message {
  const calls = toolCalls.map((value) => create(PartSchema, { kind: { case: "toolCall", value } }));
  return message(Role.ASSISTANT, [...(content ? [text(content)] : []), ...calls]);
}

/** A call for `assistant`. `args`: JSON as the model wrote it, or what to write as JSON. */
export function toolCall(callId: string, name: string, args: string | object = "{}"): ToolCallPart {
  const written = typeof args === "string" ? args : JSON.stringify(args);
  return create(ToolCallPartSchema, { callId, name, argumentsJson: new TextEncoder().encode(written) });
}

/** A tool's answer to a call, with a new id. */
export function toolResult(callId: string, content: string, more: { name?: string; isError?: boolean } = {}): Message {
  const value = { callId, parts: [text(content)], ...more };
  return message(Role.TOOL, [create(PartSchema, { kind: { case: "toolResult", value } })]);
}

/** A part of plain text. */
export function text(content: string): Part {
  return create(PartSchema, { kind: { case: "text", value: { text: content } } });
}

/** The text of a message: its text parts and those of its tool results, joined by line ends. No reasoning. */
export function textOf(message: Message): string {
  return texts(message.parts).join("\n");
}

function texts(parts: readonly Part[]): string[] {
  return parts.flatMap(({ kind }) => {
    if (kind.case === "text") return [kind.value.text];
    return kind.case === "toolResult" ? texts(kind.value.parts) : [];
  });
}

function message(role: Role, parts: Part[]): Message {
  return create(MessageSchema, { id: newId(), role, parts });
}
