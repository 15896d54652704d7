import { type FilePart, type ImagePart, type Message, type Part, Role, type ToolCallPart, type ToolResultPart } from "../types.js";
import { asObject, callsOf, encoded, hasResults, joined } from "./common.js";
import { GEMINI, INVENTED, OBJECT } from "./gemini.js";
import { decode, isObject, type Json, membersOf, parse } from "./json.js";

/** The part of a Gemini request that says the conversation. */
export interface GeminiRequest {
  systemInstruction?: { parts: Json[] };
  contents: Json[];
}

/**
 * The conversation as a Gemini request says it. What came from Gemini comes back as it was. Leading instructions become
 * `systemInstruction`, later ones a user's text; what the format cannot say (other vendors' reasoning and items) is left out,
 * and a message of nothing else with it. Results that follow each other share a content, since Gemini refuses fewer in the
 * content behind calls than were called; those that came from Gemini apart stay so.
 */
export function toGemini(messages: readonly Message[]): GeminiRequest {
  const system: Json[] = [];
  const contents: Json[] = [];
  // Of the tools that calls so far named, by the ids of the calls.
  const names = new Map<string, string>();
  let [answers, made] = [false, true];
  for (const message of messages) {
    for (const { callId, name } of callsOf(message)) names.set(callId, name);
    const instructs = message.role === Role.SYSTEM || message.role === Role.DEVELOPER;
    const content = contentOf(message, names);
    const parts = content["parts"] as Json[] | undefined;
    if (!parts?.length) continue;
    const [before, own] = [answers, made];
    answers = hasResults(message);
    made = message.native?.format !== GEMINI;
    const last = contents.at(-1);
    if (instructs && !last) system.push(...parts);
    else if (last && before && answers && (own || made)) {
      contents[contents.length - 1] = { ...last, parts: resultsFirst([...(last["parts"] as Json[]), ...parts]) };
      made = true;
    } else contents.push(content);
  }
  return { ...(system.length ? { systemInstruction: { parts: system } } : {}), contents };
}

function resultsFirst(parts: Json[]): Json[] {
  const isResult = (part: Json) => "functionResponse" in part || "function_response" in part;
  return [...parts.filter(isResult), ...parts.filter((part) => !isResult(part))];
}

function contentOf(message: Message, names: ReadonlyMap<string, string>): Json {
  const native = message.native?.format === GEMINI ? parse(message.native.json, "native") : undefined;
  if (isObject(native)) return native; // a list is the contents that a reply came in
  const role = message.role === Role.ASSISTANT ? "model" : "user";
  return { role, parts: message.parts.map((part) => partIn(part, names)).filter((part) => part !== undefined) };
}

function partIn(part: Part, names: ReadonlyMap<string, string>): Json | undefined {
  const written = kindIn(part, names);
  if (!written || !part.thoughtSignature.length) return written;
  return { ...written, thoughtSignature: Buffer.from(part.thoughtSignature).toString("base64") };
}

function kindIn(part: Part, names: ReadonlyMap<string, string>): Json | undefined {
  const { kind } = part;
  switch (kind.case) {
    case "text":
      return kind.value.text ? { text: kind.value.text } : undefined;
    case "toolCall":
      return { functionCall: callIn(kind.value) };
    case "toolResult":
      return { functionResponse: responseIn(part, kind.value, names) };
    case "image":
    case "file":
      return mediumIn(kind.value);
    case "opaque":
      return kind.value.format === GEMINI ? membersOf(kind.value.json) : undefined;
  }
  return undefined;
}

function callIn({ callId, name, argumentsJson }: ToolCallPart): Json {
  return { ...named(callId), name, args: asObject(argumentsJson) };
}

function responseIn(part: Part, result: ToolResultPart, names: ReadonlyMap<string, string>): Json {
  const { callId, isError, parts } = result;
  const text = joined(parts);
  const free = decode(part.providerMetadataJson) === OBJECT && parts.filter(({ kind }) => kind.case === "text").length === 1;
  const response = (free ? whole(text) : undefined) ?? { [isError ? "error" : "output"]: text };
  return { ...named(callId), name: result.name || (names.get(callId) ?? "unknown"), response };
}

/** The object that a tool answered. Undefined: it is shown in part, or something in its place. */
function whole(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The id of a call, but for one that was made up on the way in. */
function named(callId: string): Json {
  return !callId || callId.startsWith(INVENTED) ? {} : { id: callId };
}

function mediumIn(medium: ImagePart | FilePart): Json {
  const { source, mimeType } = medium;
  if (source.case === "uri") return { fileData: { mimeType, fileUri: source.value } };
  return { inlineData: { mimeType, data: encoded(medium) } };
}
