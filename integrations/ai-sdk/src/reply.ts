/** What a model replied, as a message of the conversation. Pure. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Json } from "@contextengine/client/formats";
import type { Message, UsageSchema } from "@contextengine/client/types";
import type { ModelMessage, wrapLanguageModel } from "ai";

import { kept } from "./list.js";

export type Model = Exclude<Parameters<typeof wrapLanguageModel>[0]["model"], string>;
export type CallOptions = Parameters<Model["doGenerate"]>[0];
export type Generated = Awaited<ReturnType<Model["doGenerate"]>>;
export type Streamed = Awaited<ReturnType<Model["doStream"]>>;
export type StreamPart = Streamed["stream"] extends ReadableStream<infer Part> ? Part : never;

/** A reply and what became of it. */
export interface Reply {
  /** Undefined: the model said nothing. */
  message: Message | undefined;
  /** Whether it wants tools that the host runs, so that the turn goes on. */
  goesOn: boolean;
  usage: MessageInitShape<typeof UsageSchema> | undefined;
}

/** The reply that a result holds. */
export function replyOf({ content, usage }: Pick<Generated, "content" | "usage">): Reply {
  const parts = content.flatMap((part) => partsOf(part as unknown as Json));
  const [message] = parts.length ? kept([{ role: "assistant", content: parts } as unknown as ModelMessage]) : [];
  const goesOn = content.some((part) => part.type === "tool-call" && !part.providerExecuted);
  return { message, goesOn, usage: usageOf(usage) };
}

/** A part as the SDK puts it into its list. */
function partsOf({ type, text, toolCallId, toolName, input, providerExecuted, providerMetadata, ...more }: Json): Json[] {
  const options = providerMetadata === undefined ? {} : { providerOptions: providerMetadata };
  switch (type) {
    case "text":
      return text || providerMetadata ? [{ type, text, ...options }] : [];
    case "reasoning":
      return [{ type, text, ...options }];
    case "tool-call":
      return [{ type, toolCallId, toolName, input: valueOf(input), ...(providerExecuted ? { providerExecuted } : {}), ...options }];
    case "tool-result":
      // Of a tool that the provider runs. What comes before it is done is no result yet.
      return more.preliminary ? [] : [{ type, toolCallId, toolName, output: outputOf(more), ...options }];
    case "file":
      return [{ type, data: more.data, mediaType: more.mediaType, ...options }];
  }
  return [];
}

function outputOf({ result: value, isError }: Json): Json {
  const kind = typeof value === "string" ? "text" : "json";
  return { type: isError ? `error-${kind}` : kind, value };
}

/** A model writes the arguments of a call as text. */
function valueOf(input: unknown): unknown {
  if (typeof input !== "string") return input;
  try {
    return JSON.parse(input || "{}");
  } catch {
    return input;
  }
}

function usageOf(usage: Generated["usage"] | undefined): Reply["usage"] {
  const { inputTokens: input, outputTokens: output } = usage ?? {};
  if (input?.total === undefined) return undefined;
  const count = (tokens: number | undefined) => (tokens === undefined ? undefined : BigInt(Math.max(0, Math.floor(tokens))));
  const cached = (input.cacheRead ?? 0) + (input.cacheWrite ?? 0);
  const counts = {
    inputTokens: count(input.noCache ?? input.total - cached),
    outputTokens: count(output?.total),
    cacheReadTokens: count(input.cacheRead),
    cacheWriteTokens: count(input.cacheWrite),
    reasoningTokens: count(output?.reasoning),
  };
  return Object.fromEntries(Object.entries(counts).filter(([, value]) => value !== undefined));
}

/** Listens to a stream; what it was at its end, or undefined where it broke off. */
export class Listener {
  private readonly parts: { type: string; text?: string; providerMetadata?: unknown }[] = [];
  /** The newest part of each id: providers give an id again once what had it is over. */
  private readonly byId = new Map<string, { type: string; text?: string; providerMetadata?: unknown }>();
  private usage: Generated["usage"] | undefined;

  hear(part: StreamPart): void {
    switch (part.type) {
      case "text-start":
      case "reasoning-start": {
        const begun = { type: part.type.slice(0, -"-start".length), text: "" };
        this.parts.push(begun);
        this.byId.set(part.id, begun);
        this.note(part.id, part.providerMetadata);
        break;
      }
      case "text-delta":
      case "reasoning-delta": {
        const said = this.byId.get(part.id);
        if (said) said.text = `${said.text}${part.delta}`;
        this.note(part.id, part.providerMetadata);
        break;
      }
      case "text-end":
      case "reasoning-end":
        this.note(part.id, part.providerMetadata);
        break;
      case "tool-call":
      case "tool-result":
      case "file":
        this.parts.push(part);
        break;
      case "finish":
        this.usage = part.usage;
    }
  }

  get reply(): Reply | undefined {
    if (!this.usage) return undefined;
    return replyOf({ content: this.parts as unknown as Generated["content"], usage: this.usage });
  }

  /** The newest that the provider says of a part holds. */
  private note(id: string, providerMetadata: unknown): void {
    const said = this.byId.get(id);
    if (said && providerMetadata !== undefined) said.providerMetadata = providerMetadata;
  }
}
