import { create } from "@bufbuild/protobuf";
import { type Assembly, makeUp } from "@contextengine/client";
import { toPi } from "@contextengine/client/formats";
import {
  AssembleRequestSchema,
  BudgetSchema,
  ContextProjection_Mode as Mode,
  type Budget,
  type Item,
  PromptAuthority,
  Role,
} from "@contextengine/client/types";

import type { AgentMessage, AssembleResult } from "./openclaw.js";
import { messageOf } from "./transcript.js";

/** What fits behind a text that the host adds to the system prompt besides, and that its budget knows nothing of. */
export function budgetOf(tokens: number | undefined, beside: string): Budget | undefined {
  if (tokens === undefined) return undefined;
  if (!beside) return create(BudgetSchema, { kind: { case: "messageTokens", value: BigInt(tokens) } });
  // OpenClaw has taken off its prompt and its reserves already.
  const whole = { toolTokens: 0n, outputReserve: 0n, safetyMargin: 0n, rotBuffer: 0n };
  const value = { window: BigInt(tokens), systemPrompt: { case: "systemPromptText" as const, value: beside }, ...whole };
  return create(BudgetSchema, { kind: { case: "window", value } });
}

/** The service's answer in OpenClaw's form. `given`: the list that OpenClaw would send. */
export function resultOf(assembly: Assembly, given: readonly AgentMessage[], beside: string): AssembleResult {
  const { response } = assembly;
  const spoken = users(given);
  const messages = assembly.items.flatMap((item) => shown(item, spoken));
  const addition = [beside, response.systemPromptAddition].filter(Boolean).join("\n\n");
  const projection = response.contextProjection;
  const overflows = response.promptAuthority === PromptAuthority.PREASSEMBLY_MAY_OVERFLOW;
  return {
    messages,
    estimatedTokens: Number(response.estimatedTokens),
    promptAuthority: overflows ? "preassembly_may_overflow" : "assembled",
    ...(addition ? { systemPromptAddition: addition } : {}),
    ...(projection
      ? {
          contextProjection: {
            mode: projection.mode === Mode.THREAD_BOOTSTRAP ? "thread_bootstrap" : "per_turn",
            epoch: projection.epoch,
            fingerprint: projection.fingerprint,
          },
        }
      : {}),
  };
}

/** The context without the service: OpenClaw's own list, whole atoms within the budget. */
export function alone(given: readonly AgentMessage[], tokens: number | undefined, beside: string): AssembleResult {
  const messages = given.map((message, at) => messageOf({ entryId: String(at), message }));
  const budget = budgetOf(tokens, beside);
  const made = makeUp(create(AssembleRequestSchema, { live: { messages }, ...(budget ? { budget } : {}) }));
  // Without a budget nothing says what is too much.
  const kept = budget ? made.items.flatMap((item) => own(item, given)) : [...given];
  return {
    messages: kept,
    estimatedTokens: Number(made.estimatedTokens),
    ...(beside ? { systemPromptAddition: beside } : {}),
  };
}

/** OpenClaw's own message, or one that was made up for a call without a result. */
function own(item: Item, given: readonly AgentMessage[]): AgentMessage[] {
  const found = given[Number(item.id)];
  return found ? [found] : itself(item);
}

/** What is shown verbatim comes back as the transcript has it; a user's words as OpenClaw has prepared them. */
function shown(item: Item, spoken: ReadonlyMap<number, AgentMessage>): AgentMessage[] {
  const made = itself(item);
  const [only] = made;
  if (item.message?.role !== Role.USER || !item.message.native || made.length !== 1 || !only) return made;
  return [spoken.get(Number(only["timestamp"])) ?? only];
}

function itself(item: Item): AgentMessage[] {
  return item.message ? toPi([item.message]) : [];
}

/** The users' messages of a list by their times, as far as those tell them apart. */
function users(given: readonly AgentMessage[]): Map<number, AgentMessage> {
  const found = new Map<number, AgentMessage>();
  const twice = new Set<number>();
  for (const message of given) {
    const time = message["timestamp"];
    if (message["role"] !== "user" || typeof time !== "number") continue;
    if (found.has(time)) twice.add(time);
    found.set(time, message);
  }
  for (const time of twice) found.delete(time);
  return found;
}
