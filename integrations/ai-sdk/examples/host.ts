/** An agent of the AI SDK without a provider: the SDK's own mock stands in for the model. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { Client } from "@contextengine/client";
import { toAiSdk } from "@contextengine/client/formats";
import { generateText, jsonSchema, type ModelMessage, stepCountIs, streamText, tool, wrapLanguageModel } from "ai";
import { MockLanguageModelV3, simulateReadableStream } from "ai/test";

import { Keeper, type KeeperOptions, type PrepareStepOptions } from "../src/index.js";

type Call = MockLanguageModelV3["doGenerateCalls"][number];
type Chunk = Awaited<ReturnType<MockLanguageModelV3["doStream"]>>["stream"] extends ReadableStream<infer Part> ? Part : never;
type Ran = { providerExecuted: true };
type Content =
  | { type: "text"; text: string }
  | ({ type: "tool-call"; toolCallId: string; toolName: string; input: string } & Partial<Ran>)
  | ({ type: "tool-result"; toolCallId: string; toolName: string; result: string | Record<string, string> } & Ran)
  | { type: "file"; mediaType: string; data: string };

const NONE = { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined };
const USAGE = {
  inputTokens: { ...NONE, total: 1_000, cacheRead: 600 },
  outputTokens: { total: 20, text: 20, reasoning: undefined },
};

/** What a run said, as version 7 of the SDK tells it; its `response` is of the last step alone. */
interface Spoken<Messages> {
  responseMessages?: Messages | undefined;
}

/** Looks things up, but fails for what is missing. */
const TOOLS = {
  look_up: tool({
    description: "Looks something up.",
    inputSchema: jsonSchema<{ of: string }>({ type: "object", properties: { of: { type: "string" } } }),
    execute: async ({ of }) => {
      if (of.startsWith("missing")) throw new Error(`there is no ${of}`);
      return `found ${of}: ${"this and that ".repeat(20)}`;
    },
  }),
};

export class SmallAgent {
  readonly sessionId: string = randomUUID();
  readonly client: Client;
  readonly keeper: Keeper;
  readonly warnings: string[] = [];
  /** What the model was sent. */
  readonly calls: Call[] = [];
  /** What the model says next, a step each. */
  readonly script: Content[][] = [];
  /** What the provider refuses the next calls with, one each. Streamed: a reply that begins with an error, where it is told so. */
  readonly refusals: { error: unknown; streamed?: boolean }[] = [];
  messages: ModelMessage[] = [];
  private readonly model: MockLanguageModelV3;

  constructor(
    options: KeeperOptions = {},
    address = process.env["CONTEXTENGINE_ADDRESS"] ?? "127.0.0.1:50051",
    private readonly system = "You are kind.",
  ) {
    this.client = new Client(address, { breaker: true, retryForMs: 0 });
    this.keeper = new Keeper(this.client, { warn: (text) => this.warnings.push(text), ...options });
    const finishReason = { unified: "stop" as const, raw: "stop" };
    this.model = new MockLanguageModelV3({
      doGenerate: async (call) => {
        return { content: this.next(call), finishReason, usage: USAGE, warnings: [] };
      },
      doStream: async (call) => {
        if (this.refusals[0]?.streamed) {
          this.calls.push(call);
          const [refused] = this.refusals.splice(0, 1);
          const chunks: Chunk[] = [{ type: "stream-start", warnings: [] }, { type: "error", error: refused?.error }];
          return { stream: simulateReadableStream({ chunks, initialDelayInMs: null, chunkDelayInMs: null }) };
        }
        const said = this.next(call).flatMap((part, at): Chunk[] => {
          if (part.type !== "text") return [part];
          const [id, half] = [String(at), part.text.length / 2];
          return [
            { type: "text-start", id },
            { type: "text-delta", id, delta: part.text.slice(0, half) },
            { type: "text-delta", id, delta: part.text.slice(half) },
            { type: "text-end", id },
          ];
        });
        const finish = { type: "finish" as const, finishReason, usage: USAGE };
        const chunks: Chunk[] = [...said, finish];
        return { stream: simulateReadableStream({ chunks, initialDelayInMs: null, chunkDelayInMs: null }) };
      },
    });
  }

  private next(call: Call): Content[] {
    this.calls.push(call);
    const [refused] = this.refusals.splice(0, 1);
    if (refused) throw refused.error;
    return this.script.shift() ?? [{ type: "text", text: "well" }];
  }

  /** One turn by the middleware: the model answers, after as many rounds of two calls at once as `rounds` says. */
  async turn(words: string, answer: string, { rounds = 0, stream = false, missing = false } = {}): Promise<string> {
    this.plan(answer, rounds, missing);
    const { sessionId, system } = this;
    const model = wrapLanguageModel({ model: this.model, middleware: this.keeper.middleware({ sessionId }) });
    const asked: ModelMessage[] = [...this.messages, { role: "user", content: words }];
    const settings = { model, system, messages: asked, tools: TOOLS, stopWhen: stepCountIs(100) };
    if (!stream) return this.ended(asked, await generateText(settings));
    const streamed = streamText(settings);
    let text = "";
    for await (const delta of streamed.textStream) text += delta;
    const { responseMessages } = streamed as Spoken<PromiseLike<ModelMessage[]>>;
    return this.ended(asked, { text, response: await streamed.response, responseMessages: await responseMessages });
  }

  /** One turn by `prepareStep`. */
  async stepped(words: string, answer: string, rounds: number, more: Partial<PrepareStepOptions> = {}): Promise<string> {
    this.plan(answer, rounds, false);
    const { sessionId, system, model } = this;
    const prepareStep = this.keeper.prepareStep({ sessionId, system, ...more });
    const asked: ModelMessage[] = [...this.messages, { role: "user", content: words }];
    const done = await generateText({ model, system, messages: asked, tools: TOOLS, stopWhen: stepCountIs(100), prepareStep });
    const text = this.ended(asked, done);
    await this.keeper.ended(sessionId, this.messages);
    return text;
  }

  private plan(answer: string, rounds: number, missing: boolean): void {
    for (let round = 0; round < rounds; round++) {
      this.script.push(
        [0, 1].map((at) => ({
          type: "tool-call",
          toolCallId: `call_${this.messages.length}_${round}_${at}`,
          toolName: "look_up",
          input: JSON.stringify({ of: `${missing && at ? "missing " : ""}part ${this.messages.length} ${round}` }),
        })),
      );
    }
    this.script.push([{ type: "text", text: answer }]);
  }

  private ended(asked: ModelMessage[], done: { text: string; response: { messages: ModelMessage[] } } & Spoken<ModelMessage[]>): string {
    this.messages = [...asked, ...(done.responseMessages ?? done.response.messages)];
    return done.text;
  }

  /**
   * Waits until the service's background owes the session nothing: it summarizes between turns, for which a real model leaves it a
   * second and the mock nothing.
   */
  async rested(): Promise<void> {
    const session = this.client.session({ agentId: "ai-sdk", sessionId: this.sessionId });
    while ((await session.status()).jobs.length) await sleep(20);
  }

  /** What the service holds in the session's view, in order, in the SDK's form. */
  async stored(): Promise<ModelMessage[]> {
    const found: ModelMessage[] = [];
    for await (const { kind } of this.client.session({ agentId: "ai-sdk", sessionId: this.sessionId }).export()) {
      if (kind.case !== "message" || kind.value.retiredRevision || !kind.value.message) continue;
      found.push(...(toAiSdk([kind.value.message]) as unknown as ModelMessage[]));
    }
    return found;
  }
}
