import { createHash } from "node:crypto";

import { create } from "@bufbuild/protobuf";

import { type Message, MessageSchema, type Part, Role, type ToolCallPart } from "../types.js";
import { decoded, type Kind, medium, opaque, part, said } from "./common.js";
import { compact, isObject, type Json, load, Node, type Source } from "./json.js";

/** The name of the format of Gemini in `native`. */
export const GEMINI = "gemini.content";
/** Calls that come without an id get one that begins so, from what they say: a list that was cut names them as the whole one did. */
export const INVENTED = "gemini-";
/** Beside a result whose response is an object of the tool's own. */
export const OBJECT = '{"response":"object"}';

const STAND_IN = "skip_thought_signature_validator";
const encoder = new TextEncoder();

/**
 * Messages of the `contents` of a Gemini request, each keeping its original in `native`, byte for byte where it is given as
 * text; field names in either spelling. `system`: the content of `systemInstruction`, which becomes a leading system message.
 * A content of function responses alone is a tool message; its results get the ids of the calls before it. They have no ids:
 * see `withIds`. Raises FormatError.
 */
export function fromGemini(contents: readonly Source[], system?: Source): Message[] {
  const head: Message[] = [];
  if (system !== undefined) {
    const { node, native: json } = load(system, "systemInstruction");
    const parts = node.nodes("parts").map((one) => said(one.text("text")));
    head.push(create(MessageSchema, { role: Role.SYSTEM, parts, native: { format: GEMINI, json } }));
  }
  const step: Step = { names: new Map(), waiting: [], spoken: false };
  const others = contents.map((source, index) => {
    const { node, native: json } = load(source, `contents[${index}]`);
    return create(MessageSchema, { ...fromContent(node, step), native: { format: GEMINI, json } });
  });
  return [...head, ...others];
}

/** The model's contents in a row, and what stands behind them before it speaks again. */
interface Step {
  /** Ids that were made up, and how often. */
  names: Map<string, number>;
  /** Calls without a result. */
  waiting: Call[];
  /** Whether the newest content is the model's. */
  spoken: boolean;
}

type Call = Pick<ToolCallPart, "callId" | "name">;

/** Begins another content, and another step where the model speaks anew. */
function speaks(step: Step, model: boolean): void {
  if (model && !step.spoken) {
    step.names.clear();
    step.waiting = [];
  }
  step.spoken = model;
}

function fromContent(node: Node, step: Step): { role: Role; parts: Part[]; api?: string } {
  const role = node.text("role") || "user";
  if (role !== "user" && role !== "model") throw node.error("role", "user or model is needed");
  speaks(step, role === "model");
  const parts = node.nodes("parts").map((one) => partOf(snake(one), step));
  if (role === "model") return { role: Role.ASSISTANT, parts, api: "google-generative-ai" };
  const results = parts.length > 0 && parts.every(({ kind }) => kind.case === "toolResult");
  return { role: results ? Role.TOOL : Role.USER, parts };
}

function partOf(node: Node, step: Step): Part {
  const made = contentOf(node, step);
  const signature = node.text("thought_signature");
  if (!signature) return made;
  return { ...made, thoughtSignature: signature === STAND_IN ? encoder.encode(signature) : decoded(node, "thought_signature") };
}

function contentOf(node: Node, step: Step): Part {
  const [call, answer] = [node.node("function_call"), node.node("function_response")];
  const [inline, file] = [node.node("inline_data"), node.node("file_data")];
  if (call) {
    const argumentsJson = compact(call.value["args"] || {});
    const name = call.required("name");
    const callId = call.text("id") || invented(step.names, name, argumentsJson);
    step.waiting.push({ callId, name });
    return part({ case: "toolCall", value: { callId, name, argumentsJson } });
  }
  if (answer) return answerOf(answer, step);
  if (inline) return part(medium({ case: "data", value: decoded(inline, "data") }, inline.text("mime_type")));
  if (file) return part(medium({ case: "uri", value: file.required("file_uri") }, file.text("mime_type")));
  if ("text" in node.value) {
    const text = node.text("text");
    return node.value["thought"] === true ? part({ case: "reasoning", value: { text } }) : said(text);
  }
  const type = Object.keys(node.value).find((key) => key !== "thought_signature") ?? "";
  return opaque(GEMINI, type, compact(node.value));
}

/** A result, with the id of the first open call of its name where it has none itself. */
function answerOf(node: Node, { names, waiting }: Step): Part {
  const [name, given] = [node.required("name"), node.text("id")];
  const place = waiting.findIndex((call) => call.name === name && (!given || given === call.callId));
  const [same] = place < 0 ? [] : waiting.splice(place, 1);
  const { response } = node.value;
  if (!isObject(response)) throw node.error("response", "an object is needed");
  const callId = given || (same?.callId ?? invented(names, name));
  const [[key, only] = ["", undefined], ...more] = Object.entries(response);
  if (!more.length && typeof only === "string" && (key === "output" || key === "error")) {
    return part(result({ callId, name, parts: [said(only)], isError: key === "error" }));
  }
  const parts = [said(Buffer.from(compact(response)).toString())];
  return part(result({ callId, name, parts }), encoder.encode(OBJECT));
}

/** An id for what a call says, another for each that says the same. */
function invented(names: Map<string, number>, name: string, argumentsJson?: Uint8Array): string {
  const told = createHash("sha256").update(name);
  if (argumentsJson) told.update("\0").update(argumentsJson);
  const made = INVENTED + told.digest("hex").slice(0, 12);
  const count = (names.get(made) ?? 0) + 1;
  names.set(made, count);
  return count === 1 ? made : `${made}-${count}`;
}

function result(value: Extract<Kind, { case: "toolResult" }>["value"]): Kind {
  return { case: "toolResult", value };
}

/** The part with the API's own names in snake_case; what a tool's arguments and results hold stays. */
function snake(node: Node): Node {
  return new Node(renamed(node.value), node.path);
}

function renamed(value: Json): Json {
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      const name = key.replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      const free = name === "args" || name === "response";
      return [name, isObject(inner) && !free ? renamed(inner) : inner];
    }),
  );
}
