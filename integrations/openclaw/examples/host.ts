/** A host that calls an engine as OpenClaw does, without OpenClaw: a transcript in memory and no model. */
import { randomUUID } from "node:crypto";

import { Engine } from "../src/engine.js";
import type { AgentMessage, AssembleResult, Entry, Sdk, TranscriptPage } from "../src/openclaw.js";
import { Service, settingsOf } from "../src/service.js";

export class SmallHost {
  readonly sessionId: string = randomUUID();
  readonly warnings: string[] = [];
  entries: Entry[] = [];
  /** How often OpenClaw's own summarizer was asked. */
  delegated = 0;
  /** Turns that were accepted and are not committed yet. */
  outbox: { key: string; messages: AgentMessage[]; entryId: string }[] = [];
  private generation = 0;
  private fence = Infinity;
  private clock = 1_700_000_000_000;
  readonly service: Service;
  private readonly sdk: Sdk;

  constructor(config: Record<string, unknown>, memory?: string) {
    this.sdk = {
      read: async ({ cursor }) => this.page(cursor),
      memory: () => memory,
      delegate: async () => {
        this.delegated += 1;
        const kept = this.entries.at(-2);
        const result = { summary: "what was said before", tokensBefore: 10, ...(kept ? { firstKeptEntryId: kept.entryId } : {}) };
        return { ok: true, compacted: true, result };
      },
    };
    this.service = new Service(settingsOf(config, process.env), this.sdk);
  }

  get named() {
    return { sessionId: this.sessionId, sessionKey: `agent:main:${this.sessionId}` };
  }

  /** OpenClaw makes one for each turn. */
  engine(): Engine {
    return new Engine(this.service, this.sdk, { warn: (text) => this.warnings.push(text) });
  }

  /** The transcript goes on from its first `count` messages. */
  branch(count: number): void {
    this.entries = this.entries.slice(0, count);
    this.generation += 1;
  }

  append(message: AgentMessage): Entry {
    const entry = { entryId: randomUUID(), message: { ...message, timestamp: (this.clock += 1_000) } };
    this.entries.push(entry);
    return entry;
  }

  /** One turn: what was shown before each call of the model. `calls`: the tool results of each call but the last. */
  async turn(words: string, answer: string, tokenBudget: number, calls: readonly string[] = []): Promise<AssembleResult[]> {
    const engine = this.engine();
    await this.drain(engine);
    const before = this.entries.map(({ message }) => message);
    if (before.length) await engine.bootstrap(this.named);
    this.fence = this.entries.length;
    const admitted = this.append({ role: "user", content: words });
    const shown = [await engine.assemble({ ...this.named, messages: before, tokenBudget, model: "none" })];
    this.fence = Infinity;
    for (const [at, text] of calls.entries()) {
      const call = { type: "toolCall", id: `call_${at}`, name: "look_up", arguments: { at } };
      this.append({ ...assistant([call]), stopReason: "toolUse" });
      this.append({ role: "toolResult", toolCallId: `call_${at}`, toolName: "look_up", content: [{ type: "text", text }], isError: false });
      // OpenClaw takes less off for these than it took off for the first.
      const messages = shown.at(-1)?.messages ?? [];
      shown.push(await engine.assemble({ ...this.named, messages, tokenBudget: tokenBudget * 2, model: "none" }));
    }
    this.append(assistant([{ type: "text", text: answer }]));
    const messages = this.entries.slice(before.length).map(({ message }) => message);
    this.outbox.push({ key: randomUUID(), messages, entryId: admitted.entryId });
    await this.drain(engine);
    await engine.dispose();
    return shown;
  }

  private async drain(engine: Engine): Promise<void> {
    for (let first = this.outbox[0]; first; first = this.outbox[0]) {
      const { key, messages, entryId } = first;
      try {
        await engine.commitTurn({ ...this.named, advancementKey: key, admission: { entryId }, messages });
      } catch {
        return;
      }
      this.outbox.shift();
    }
  }

  /** A page of three messages at most, and never of what stands behind the fence. */
  private page(cursor: string | undefined): TranscriptPage {
    const [generation = this.generation, at = 0] = cursor?.split(":").map(Number) ?? [];
    if (!this.entries.length) return { kind: "missing" };
    const start = `${this.generation}:0`;
    if (generation !== this.generation) return { kind: "reset", cursor: start, reason: "generation_mismatch" };
    const end = Math.min(this.entries.length, this.fence, at + 3);
    const entries = this.entries.slice(at, end);
    return { kind: "page", cursor: `${generation}:${Math.max(at, end)}`, entries, hasMore: end < Math.min(this.entries.length, this.fence) };
  }
}

function assistant(content: object[]): AgentMessage {
  const usage = { input: 100, output: 10, cacheRead: 0, cacheWrite: 0, totalTokens: 110 };
  return { role: "assistant", content, api: "none", provider: "none", model: "none", usage, stopReason: "stop" };
}
