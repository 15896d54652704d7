/** What to do where a provider refuses a prompt for its length, as the Python client's `overflow` does. Pure, but for `opened`. */
import { create } from "@bufbuild/protobuf";
import { type AssembleResponse, type Budget, BudgetSchema } from "@contextengine/client/types";

import type { StreamPart } from "./reply.js";

/** How long telling of a refusal and the compaction behind it may take, in milliseconds: a turn waits for it. */
export const COMPACTION_MS = 15_000;
/** The refused context is divided by this: the same again would be refused, and what it was too long by is not always said. */
const SHARE = 2n;
/** Characters of what the provider says that the service looks at. */
const MOST_TEXT = 8_192;
/** Errors that one may have come of, the last one included. */
const DEEPEST = 5;
/** What a stream may begin with before the model has said anything. */
const SILENT = new Set<string>(["stream-start", "response-metadata", "raw"]);
/** How providers say it: OpenAI (and servers that speak its form), Anthropic, Google, llama.cpp and Bedrock. */
const REFUSALS =
  /context_length_exceeded|prompt is too long|maximum context length|context window|exceeds the maximum number of tokens|exceeds the available context size|input is too long|ContextOverflow/i;

/** Whether a provider says so that a prompt was too long. */
export function isRefusal(error: unknown): boolean {
  return REFUSALS.test(said(error));
}

/** What an error says, what the provider's reply to it was, and what it came of. */
export function said(error: unknown): string {
  const texts: string[] = [];
  for (let one = error; one !== undefined && one !== null && texts.length < DEEPEST; one = (one as { cause?: unknown }).cause) {
    if (!(one instanceof Error)) {
      texts.push(typeof one === "string" ? one : JSON.stringify(one));
      break;
    }
    const { responseBody } = one as { responseBody?: unknown };
    texts.push(`${one.name}: ${one.message}${typeof responseBody === "string" ? `\n${responseBody}` : ""}`);
  }
  return texts.join("\n").slice(0, MOST_TEXT);
}

/** The budget for another attempt: that of the refused one, with half of what was shown then for messages. */
export function smaller(budget: Budget, { estimatedTokens, budget: told }: AssembleResponse): Budget {
  const half = larger(1n, estimatedTokens / SHARE);
  const { kind } = budget;
  if (!told?.window || kind.case !== "window") return create(BudgetSchema, { ...budget, kind: { case: "messageTokens", value: half } });
  const window = larger(1n, told.window - larger(0n, told.messages - half));
  return create(BudgetSchema, { ...budget, kind: { case: "window", value: { ...kind.value, window } } });
}

/** A stream up to where the model says something, and then the rest; and what it was refused with, where it begins with that. */
export async function opened(stream: ReadableStream<StreamPart>): Promise<{ stream: ReadableStream<StreamPart>; refusal: unknown }> {
  const reader = stream.getReader();
  const begun: StreamPart[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (value) begun.push(value);
    if (done || !SILENT.has(value.type)) break;
  }
  const last = begun.at(-1);
  const rest = new ReadableStream<StreamPart>({
    pull: async (controller) => {
      const { done, value } = begun.length ? { done: false, value: begun.shift() } : await reader.read();
      if (done || !value) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return { stream: rest, refusal: last?.type === "error" && isRefusal(last.error) ? last.error : undefined };
}

function larger(one: bigint, other: bigint): bigint {
  return one > other ? one : other;
}
