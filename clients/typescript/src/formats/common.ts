import { create, type MessageInitShape } from "@bufbuild/protobuf";

import { type FilePart, type ImagePart, type Message, type Part, PartSchema, Role, type ToolCallPart } from "../types.js";
import { base64, decode, isObject, type Json, membersOf, Node, storable } from "./json.js";

const encoder = new TextEncoder();

/** What a part is, as it is written down. */
export type Kind = NonNullable<MessageInitShape<typeof PartSchema>["kind"]>;

/** A part, and what stands beside it as JSON. */
export function part(kind: Kind, providerMetadataJson: Uint8Array = new Uint8Array()): Part {
  return create(PartSchema, { kind, providerMetadataJson });
}

/** A part of text. */
export function said(text: string, more?: Uint8Array): Part {
  return part({ case: "text", value: { text: storable(text) } }, more);
}

/** An item of a provider's that has no form here. */
export function opaque(format: string, type: string, json: Uint8Array): Part {
  return part({ case: "opaque", value: { format, type, json } });
}

/** Bytes of base64, of either alphabet. Raises FormatError. */
export function decoded(node: Node, key: string): Uint8Array {
  const found = base64(node.text(key).replaceAll("-", "+").replaceAll("_", "/"));
  if (!found) throw node.error(key, "base64 is needed");
  return found;
}

/** Media type and bytes of a base64 data URL. Undefined: it is another URL. */
export function dataOf(url: string): { mimeType: string; data: Uint8Array } | undefined {
  const [, mimeType, body] = /^data:([^,]*);base64,(.*)$/s.exec(url) ?? [];
  const data = body === undefined ? undefined : base64(body);
  return data && { mimeType: mimeType ?? "", data };
}

/** Where a medium is, as an address: bytes as a data URL. */
export function urlOf({ source, mimeType }: ImagePart | FilePart): string {
  return source.case === "uri" ? source.value : `data:${mimeType};base64,${encoded({ source })}`;
}

/** The bytes of a medium in base64. */
export function encoded({ source }: Pick<ImagePart | FilePart, "source">): string {
  return source.case === "data" ? Buffer.from(source.value).toString("base64") : "";
}

/** A picture, where the media type says so, else a file. */
export function medium(source: ImagePart["source"], mimeType: string, name = ""): Kind {
  if (mimeType.startsWith("image/")) return { case: "image", value: { source, mimeType } };
  return { case: "file", value: { source, mimeType, name } };
}

/** The arguments of a call as bytes: text as it is, anything else as JSON. */
export function argumentsOf(value: unknown): Uint8Array {
  return encoder.encode(typeof value === "string" ? storable(value) : JSON.stringify(value ?? {}));
}

/** The arguments of a call as a value; what is no JSON as its text. */
export function asValue(bytes: Uint8Array): unknown {
  const text = decode(bytes);
  try {
    return JSON.parse(text || "{}");
  } catch {
    return text;
  }
}

/** The same where an object is insisted on: what is none stands under `arguments`. */
export function asObject(bytes: Uint8Array): Json {
  const value = asValue(bytes);
  return isObject(value) ? value : { arguments: value };
}

/** What else a member of a list says, as JSON; null says nothing. Empty: no more. */
export function beside(node: Node, ...known: string[]): Uint8Array {
  const told = Object.fromEntries(Object.entries(node.value).filter(([, value]) => value != null));
  return new Node(told, node.path).rest(...known);
}

/** Of what stands beside a part, the members that the format knows. */
export function moreOf({ providerMetadataJson }: Part, ...known: string[]): Json {
  return Object.fromEntries(Object.entries(membersOf(providerMetadataJson)).filter(([key]) => known.includes(key)));
}

/** The calls of a message. */
export function callsOf({ parts }: Message): ToolCallPart[] {
  return parts.flatMap(({ kind }) => (kind.case === "toolCall" ? [kind.value] : []));
}

/** Whether a message answers calls. A model's own may hold what its provider's tools found. */
export function hasResults({ role, parts }: Message): boolean {
  const other = role === Role.ASSISTANT || role === Role.SYSTEM || role === Role.DEVELOPER;
  return !other && parts.some(({ kind }) => kind.case === "toolResult");
}

/**
 * What is written of a message: its results, and what is said beside them. What came in the format itself is not taken apart,
 * and is among the first.
 */
export type Rows = readonly [results: Json[], said: Json[]];

/**
 * What is written of messages, in order, but that what is said beside some of a step's results stands behind them all: providers
 * want them directly behind the calls.
 */
export function inSteps(written: Iterable<readonly [Message, Rows]>): Json[] {
  const rows: Json[] = [];
  let beside: Json[] = [];
  for (const [message, [results, said]] of written) {
    if (!hasResults(message)) {
      rows.push(...beside);
      beside = [];
    }
    rows.push(...results);
    (hasResults(message) ? beside : rows).push(...said);
  }
  return [...rows, ...beside];
}

/** The texts among parts, joined by line ends. */
export function joined(parts: readonly Part[]): string {
  return parts.flatMap(({ kind }) => (kind.case === "text" ? [kind.value.text] : [])).join("\n");
}
