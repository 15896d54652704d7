/**
 * Made-up lives of conversations: whatever a host does, the session is what its list says. Streamed and not, tools at once that fail
 * or say nothing, ids given again, calls given up in the middle, providers that fail, replies made anew, edits, lists cut off at
 * their beginning, hosts started anew.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { Client } from "@contextengine/client";
import { fromAiSdk } from "@contextengine/client/formats";
import type { Message, Part } from "@contextengine/client/types";
import { generateText, jsonSchema, type ModelMessage, stepCountIs, streamText, tool, wrapLanguageModel } from "ai";
import { MockLanguageModelV3, simulateReadableStream } from "ai/test";

import { Keeper } from "../src/index.js";

type Generated = Awaited<ReturnType<MockLanguageModelV3["doGenerate"]>>;
type Content = Generated["content"][number];
type Chunk = Awaited<ReturnType<MockLanguageModelV3["doStream"]>>["stream"] extends ReadableStream<infer Part> ? Part : never;

const ADDRESS = process.env["CONTEXTENGINE_ADDRESS"] ?? "127.0.0.1:50051";
const NONE = { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined };
const USAGE = { inputTokens: { ...NONE, total: 1_000 }, outputTokens: { total: 20, text: 20, reasoning: undefined } };
const FINISH = { unified: "stop" as const, raw: "stop" };

/** Numbers from 0 to 1, the same for a seed (mulberry32). */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** What of messages a model is told. */
function said(messages: readonly Message[]): string[] {
  return messages.map(({ role, parts }) => JSON.stringify([role, ...parts.map(told)]));
}

function told({ kind }: Part): unknown {
  switch (kind.case) {
    case "text":
    case "reasoning":
      return [kind.case, kind.value.text];
    case "toolCall":
      return [kind.value.name, Buffer.from(kind.value.argumentsJson).toString()];
    case "toolResult":
      return [kind.value.callId, kind.value.isError, ...kind.value.parts.map(told)];
  }
  return kind.case;
}

/** One conversation and its host. */
class Life {
  readonly warnings: string[] = [];
  private readonly number: () => number;
  private readonly sessionId = randomUUID();
  private readonly model: MockLanguageModelV3;
  /** Whether a provider gives ids again, of calls and of texts. */
  private readonly again: boolean;
  private readonly tools;
  private client = new Client(ADDRESS, { breaker: true, retryForMs: 0 });
  private keeper = this.begun();
  private list: ModelMessage[] = [];
  /** What the host has cut off at the list's beginning. */
  private before: ModelMessage[] = [];
  /** How much of the list came with a call that went well. */
  private kept = 0;
  private count = 0;
  private rounds = 0;
  private fails = false;
  /** How long a stream pauses between its parts. Null: not at all. */
  private pause: number | null = null;

  constructor(seed: number) {
    this.number = numbers(seed);
    this.again = this.chance(0.4);
    this.model = new MockLanguageModelV3({
      doGenerate: async () => ({ content: this.content(), finishReason: FINISH, usage: USAGE, warnings: [] }),
      doStream: async () => {
        const chunks: Chunk[] = [...this.content().flatMap((part, at) => this.pieces(part, at))];
        chunks.push({ type: "finish", finishReason: FINISH, usage: USAGE });
        // A provider that goes on when it is told to stop.
        return { stream: simulateReadableStream({ chunks, initialDelayInMs: null, chunkDelayInMs: this.pause }) };
      },
    });
    const look = tool({
      inputSchema: jsonSchema<{ of: string }>({ type: "object", properties: { of: { type: "string" } } }),
      execute: async ({ of }) => this.found(of),
    });
    const nothing = tool({ inputSchema: jsonSchema({ type: "object", properties: {} }), execute: async () => undefined });
    this.tools = { look, nothing };
  }

  /** What went wrong; undefined: nothing. */
  async lived(turns: number): Promise<unknown> {
    const log: string[] = [];
    for (let turn = 0; turn < turns; turn++) {
      log.push(this.prepared());
      const well = await this.turn();
      log.push(well ? "went well" : "failed");
      if (!well) continue;
      this.kept = this.list.length;
      const [wanted, stored] = [said(fromAiSdk([...this.before, ...this.list])), said(await this.stored())];
      const at = wanted.findIndex((one, index) => one !== stored[index]);
      if (at >= 0 || wanted.length !== stored.length) return { log, at, wanted: wanted.slice(at, at + 3), stored: stored.slice(at, at + 3) };
    }
    return this.warnings.length ? this.warnings : undefined;
  }

  /** Lets go of the service. */
  close(): void {
    this.client.close();
  }

  /** The list as the host makes it for the next turn, and what it did. */
  private prepared(): string {
    // Of a list without its beginning enough stays for the service to know it by.
    const least = this.before.length ? 4 : 0;
    const users = this.list.flatMap(({ role }, at) => (role === "user" && at >= least ? [at] : []));
    const cuts = users.filter((at) => at && at < this.kept - 4);
    switch (this.pick(["say", "say", "say", "picture", "anew", "edit", "cut", "start"])) {
      case "picture":
        this.list.push({ role: "user", content: [{ type: "text", text: `see ${this.count++}` }, { type: "image", image: Buffer.from("png") }] });
        return "a picture";
      case "anew":
        if (!users.length) break;
        this.list = this.list.slice(0, (users.at(-1) ?? 0) + 1);
        return "the reply is made anew";
      case "edit": {
        if (!users.length) break;
        const at = this.pick(users);
        this.list = [...this.list.slice(0, at), { role: "user", content: `edited ${this.count++}` }];
        return `message ${at} is edited`;
      }
      case "cut": {
        if (!cuts.length) break;
        const at = this.pick(cuts);
        this.before.push(...this.list.splice(0, at));
        this.kept -= at;
        this.list.push({ role: "user", content: this.words() });
        return `${at} are cut off`;
      }
      case "start":
        this.client.close();
        this.client = new Client(ADDRESS, { breaker: true, retryForMs: 0 });
        this.keeper = this.begun();
    }
    this.list.push({ role: "user", content: this.words() });
    return "something is said";
  }

  /** Whether the model answered. */
  private async turn(): Promise<boolean> {
    const giving = new AbortController();
    const middleware = this.keeper.middleware({ sessionId: this.sessionId });
    const model = wrapLanguageModel({ model: this.model, middleware });
    const { list: messages, tools } = this;
    const settings = { model, messages, tools, stopWhen: stepCountIs(8), maxRetries: 0, abortSignal: giving.signal };
    this.rounds = this.below(4);
    this.fails = this.chance(0.07);
    const [streams, after] = [this.chance(0.6), this.chance(0.25) ? this.below(5) : Infinity];
    this.pause = Number.isFinite(after) ? 2 : null;
    try {
      if (!streams) {
        this.list = [...messages, ...spoken(await generateText(settings))];
        return true;
      }
      const result = streamText({ ...settings, onError: () => undefined });
      let [seen, well] = [0, true];
      for await (const { type } of result.fullStream) {
        if (seen++ >= after) giving.abort();
        well &&= type !== "error" && type !== "abort";
      }
      if (well) {
        const { responseMessages } = result as { responseMessages?: PromiseLike<ModelMessage[]> };
        this.list = [...messages, ...spoken({ response: await result.response, responseMessages: await responseMessages })];
      }
      return well;
    } catch {
      return false;
    }
  }

  private async stored(): Promise<Message[]> {
    const found: Message[] = [];
    for await (const { kind } of this.client.session({ agentId: "ai-sdk", sessionId: this.sessionId }).export())
      if (kind.case === "message" && !kind.value.retiredRevision && kind.value.message) found.push(kind.value.message);
    return found;
  }

  private begun(): Keeper {
    return new Keeper(this.client, { window: 200_000, patienceMs: 20_000, warn: (text) => this.warnings.push(text) });
  }

  /** What the model says. */
  private content(): Content[] {
    if (this.fails) throw new Error("the provider is broken");
    const content: Content[] = [];
    if (this.chance(0.3)) content.push({ type: "reasoning", text: `thought ${this.count++}` });
    if (this.chance(0.5)) content.push({ type: "text", text: this.pick(["ok", `say ${this.count++}`]) });
    if (this.rounds-- <= 0) return this.chance(0.9) ? [...content, { type: "text", text: this.pick(["done", `answer ${this.count++}`]) }] : content;
    for (let at = 0; at <= this.below(3); at++) {
      const toolName = this.pick(["look", "look", "nothing", "unknown"]);
      const input = this.chance(0.05) ? "{bad" : JSON.stringify(toolName === "look" ? { of: this.pick(["a", `b${this.count}`]) } : {});
      content.push({ type: "tool-call", toolCallId: this.again ? `call_${at}` : `call_${this.count++}`, toolName, input });
      if (this.chance(0.2)) content.push({ type: "text", text: `between ${this.count++}` });
    }
    return content;
  }

  private pieces(part: Content, at: number): Chunk[] {
    if (part.type !== "text" && part.type !== "reasoning") return [part as Chunk];
    const { type, text } = part;
    const [id, half] = [this.again ? "0" : String(at), text.length / 2];
    return [
      { type: `${type}-start`, id },
      { type: `${type}-delta`, id, delta: text.slice(0, half) },
      { type: `${type}-delta`, id, delta: text.slice(half) },
      { type: `${type}-end`, id },
    ];
  }

  private found(of: string): unknown {
    if (this.chance(0.2)) throw new Error(`there is no ${of}`);
    return this.pick<unknown>(["", "same", `found ${of}`, { found: of, much: [1.5, null] }]);
  }

  private words(): string {
    return this.pick(["go on", "yes", `question ${this.count++} ${"and what of this ".repeat(this.below(40))}`]);
  }

  private pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)] as T;
  }

  private below(most: number): number {
    return Math.floor(this.number() * most);
  }

  private chance(share: number): boolean {
    return this.number() < share;
  }
}

/** What a run said; version 7 of the SDK tells it apart from the last step's response. */
function spoken(done: { response: { messages: ModelMessage[] }; responseMessages?: ModelMessage[] | undefined }): ModelMessage[] {
  return done.responseMessages ?? done.response.messages;
}

const SEEDS = process.env["CONTEXTENGINE_LIVES"]?.split("-").map(Number) ?? [0, 16];

test("whatever a host does, the session is what its list says", async () => {
  const [first = 0, end = 0] = SEEDS;
  for (let seed = first; seed < end; seed++) {
    const life = new Life(seed);
    try {
      assert.equal(await life.lived(10), undefined, `seed ${seed}`);
    } finally {
      life.close();
    }
  }
});
