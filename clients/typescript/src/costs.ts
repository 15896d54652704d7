import { create, toBinary } from "@bufbuild/protobuf";

import {
  type AssembleRequest,
  type AssembleResponse,
  type Message,
  MessageSchema,
  type Part,
  ToolDefinitionSchema,
  type WindowBudget,
  WindowBudgetSchema,
} from "./types.js";

/** More than any provider's frame of a message. */
const MESSAGE_TOKENS = 16;
/** More than a picture costs. */
const IMAGE_TOKENS = 2_000;
/** The algebra of the service for a window without parts. */
const WINDOW = 128_000;
const OUTPUT_RESERVE = 8_192;
const SAFETY_MARGIN = 2_048;
const SAFETY_SHARE = 0.05;
const ROT_SHARE = 0.25;

/** The most tokens that a message can have: one for each byte of its encoding, since no token is less than a byte. */
export function bound({ role, customRole, name, parts }: Message): number {
  return size({ role, customRole, name, parts }) + MESSAGE_TOKENS + media(parts);
}

/** The tokens that a request leaves for items, in the model's tokens. `last`: the last good reply. */
export function room(request: AssembleRequest, last: AssembleResponse | undefined): number {
  const report = last?.budget;
  const addition = Number(report?.systemPromptAddition ?? 0n);
  const budget = request.budget?.kind;
  const window = budget?.case === "window" ? budget.value : undefined;
  let left: number;
  if (budget?.case === "messageTokens") left = Number(budget.value) - addition;
  else if (last === undefined || window?.window !== undefined) left = available(request, window) - addition;
  else left = Number(report?.messages ?? 0n) + Number(report?.prompt ?? 0n);
  return request.prompt.length ? left - size({ parts: request.prompt }) - media(request.prompt) : left;
}

/** What a window leaves after its parts. */
function available(request: AssembleRequest, given: WindowBudget = create(WindowBudgetSchema)): number {
  const window = Number(given.window ?? WINDOW);
  const { systemPrompt: prompt } = given;
  const system = prompt.case === "systemPromptText" ? Buffer.byteLength(prompt.value) : Number(prompt.value ?? 0n);
  const definitions = given.tools.length ? given.tools : request.tools;
  const tools = definitions.reduce((sum, tool) => sum + toBinary(ToolDefinitionSchema, tool).length, 0);
  const margin = Math.max(SAFETY_MARGIN, Math.ceil(window * SAFETY_SHARE));
  return (
    window -
    system -
    Number(given.toolTokens ?? tools) -
    Number(given.outputReserve ?? OUTPUT_RESERVE) -
    Number(given.safetyMargin ?? margin) -
    Number(given.rotBuffer ?? Math.ceil(window * ROT_SHARE))
  );
}

function size(counted: Partial<Pick<Message, "role" | "customRole" | "name" | "parts">>): number {
  return toBinary(MessageSchema, create(MessageSchema, counted)).length;
}

/** What pictures and files may cost beyond the bytes that name them. */
function media(parts: readonly Part[]): number {
  return parts.reduce((sum, { kind }) => {
    if (kind.case === "image") return sum + IMAGE_TOKENS;
    if (kind.case === "file") return sum + Number(kind.value.sizeBytes);
    return kind.case === "toolResult" ? sum + media(kind.value.parts) : sum;
  }, 0);
}
