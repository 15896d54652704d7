/** A host that calls an engine as OpenClaw does, without OpenClaw: a transcript in memory and no model. */
import { randomUUID } from "node:crypto";

import { Engine } from "../src/engine.js";
import type { AgentMessage, AssembleResult, Entry, Event, Paging, Sdk, TranscriptPage } from "../src/openclaw.js";
import { Service, settingsOf } from "../src/service.js";

/** A turn that was accepted and is not committed yet. */
interface Accepted {
  key: string;
  from: string;
  to: string;
  isHeartbeat: boolean;
}

/** A conversation: what begins it, and what of the entries before that is still shown. */
interface Conversation {
  reset: string;
  begins: number;
  kept: Entry[];
}

export class SmallHost {
  readonly sessionId: string = randomUUID();
  readonly warnings: string[] = [];
  /** The messages of the active branch. */
  entries: Entry[] = [];
  conversations: Conversation[] = [{ reset: "", begins: 0, kept: [] }];
  /** How often OpenClaw's own summarizer was asked. */
  delegated = 0;
  outbox: Accepted[] = [];
  /** All that was ever written. */
  private events: Event[] = [];
  private tip: string | null = null;
  private generation = 0;
  /** The user's message of the turn, and all behind it, which an engine does not read. */
  private fence: string | undefined;
  private clock = 1_700_000_000_000;
  service: Service;
  private spare: Service | undefined;
  agentId = "main";
  sessionKey: string | undefined;
  private readonly sdk: Sdk;

  constructor(
    private readonly config: Record<string, unknown>,
    memory: () => string | undefined = () => undefined,
  ) {
    this.sdk = {
      read: async (paging) => this.readEntries(paging),
      events: async (paging) => this.readEvents(paging),
      memory,
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
    return { sessionId: this.sessionId, sessionKey: this.sessionKey ?? `agent:main:${this.sessionId}` };
  }

  /** The same where OpenClaw names its agent as well, which it does in some calls. */
  get target() {
    return { ...this.named, sessionTarget: { agentId: this.agentId } };
  }

  /** What was said in a conversation. */
  said(at: number): AgentMessage[] {
    const { kept, begins } = this.conversations[at]!;
    return [...kept, ...this.entries.slice(begins, this.conversations[at + 1]?.begins)].map(({ message }) => message);
  }

  /** What of the newest conversation OpenClaw would send. */
  shown(): AgentMessage[] {
    const said = this.said(this.conversations.length - 1);
    return said.filter(({ excludeFromContext, provider }) => !excludeFromContext && provider !== "openclaw");
  }

  /** OpenClaw makes one for each turn. */
  engine(): Engine {
    return new Engine(this.service, this.sdk, { warn: (text) => this.warnings.push(text) });
  }

  /** OpenClaw copies a transcript with the ids of its entries. */
  copies({ entries, conversations, events, tip }: SmallHost): void {
    Object.assign(this, { entries: [...entries], conversations: [...conversations], events: [...events], tip });
  }

  /** OpenClaw ends and begins again. */
  restart(): void {
    this.service.client.close();
    this.service = new Service(settingsOf(this.config, process.env), this.sdk);
  }

  /** Another process of OpenClaw goes on with the session: its command line, say, beside its gateway. */
  passes(): void {
    const other = this.spare ?? new Service(settingsOf(this.config, process.env), this.sdk);
    [this.service, this.spare] = [other, this.service];
  }

  end(): void {
    this.service.client.close();
    this.spare?.client.close();
  }

  /** The transcript goes on from its first `count` messages. */
  branch(count: number): void {
    this.entries = this.entries.slice(0, count);
    this.conversations = this.conversations.filter(({ begins }, at) => !at || begins < count);
    const targetId = this.entries.at(-1)?.entryId ?? null;
    this.write("leaf", { targetId });
    this.tip = targetId;
    this.generation += 1;
  }

  /** `/new`, or OpenClaw by itself: the conversation begins anew, and shows the last `kept` messages of before. */
  reset(kept = 0): void {
    const shown = kept ? this.entries.slice(-kept) : [];
    const [first] = shown;
    const reset = this.write("reset", first ? { firstKeptEntryId: first.entryId } : {});
    this.conversations.push({ reset, begins: this.entries.length, kept: shown });
  }

  /** Writes down what is no message. */
  note(): void {
    this.write("custom", {});
  }

  append(message: AgentMessage): Entry {
    const parentId = this.tip;
    const entry = { entryId: this.write("message", {}), parentId, message: { ...message, timestamp: (this.clock += 1_000) } };
    this.entries.push(entry);
    return entry;
  }

  /** One turn: what was shown before each call of the model. `calls`: the tool results of each call but the last. */
  async turn(words: string, answer: string, tokenBudget: number, calls: readonly string[] = []): Promise<AssembleResult[]> {
    const turn = await this.begin(words);
    const shown = [await turn.ask(tokenBudget)];
    for (const [at, text] of calls.entries()) {
      turn.work([{ id: `call_${at}`, text }]);
      shown.push(await turn.ask(tokenBudget));
    }
    await turn.accept(answer);
    return shown;
  }

  /** A user's message. A turn that cannot be committed has the next one run without the engine. */
  async begin(content: string | object[], isHeartbeat = false): Promise<Turn> {
    const engine = this.engine();
    const before = this.shown();
    const hadMessages = this.entries.length > 0;
    const admitted = this.append({ role: "user", content });
    await this.drain(engine);
    const turn = new Turn(this, this.outbox.length ? undefined : engine, before, admitted, isHeartbeat);
    if (hadMessages) await turn.attempt();
    return turn;
  }

  /** Has an engine read what stands before an entry. */
  async fenced<T>(entry: Entry, call: () => Promise<T>): Promise<T> {
    this.fence = entry.entryId;
    try {
      return await call();
    } finally {
      this.fence = undefined;
    }
  }

  async drain(engine: Engine): Promise<void> {
    for (let first = this.outbox[0]; first; first = this.outbox[0]) {
      const { key, from, to, isHeartbeat } = first;
      const ends = { admission: { entryId: from }, terminal: { entryId: to } };
      try {
        await engine.commitTurn({ ...this.target, ...ends, advancementKey: key, messages: [], isHeartbeat });
      } catch {
        return;
      }
      this.outbox.shift();
    }
  }

  private write(type: string, more: Partial<Event>): string {
    const id = randomUUID();
    this.events.push({ type, id, parentId: this.tip, ...more });
    this.tip = id;
    return id;
  }

  private readEntries(paging: Paging): TranscriptPage<{ entries: Entry[] }> {
    const fence = this.fence === undefined ? -1 : this.entries.findIndex(({ entryId }) => entryId === this.fence);
    return this.page(paging, this.entries, fence, (entries) => ({ entries }));
  }

  private readEvents(paging: Paging): TranscriptPage<{ events: { event: Event }[] }> {
    const fence = this.fence === undefined ? -1 : this.events.findIndex(({ id }) => id === this.fence);
    return this.page(paging, this.events, fence, (events) => ({ events: events.map((event) => ({ event })) }));
  }

  /** A page of three at most, and never of what stands behind the fence. */
  private page<T, P>({ cursor }: Paging, all: readonly T[], fence: number, made: (some: T[]) => P): TranscriptPage<P> {
    const [generation = this.generation, at = 0] = cursor?.split(":").map(Number) ?? [];
    if (!all.length) return { kind: "missing" };
    if (generation !== this.generation) return { kind: "reset", cursor: `${this.generation}:0`, reason: "generation_mismatch" };
    const most = fence < 0 ? all.length : fence;
    if (at > most) throw Object.assign(new Error("crossed the fence"), { name: "SessionTranscriptReadFenceError" });
    const end = Math.min(most, at + 3);
    return { kind: "page", cursor: `${generation}:${end}`, hasMore: end < most, ...made(all.slice(at, end)) };
  }
}

/** A turn of the host. `engine`: undefined where it runs without. */
export class Turn {
  private history: AgentMessage[];
  /** Whether the next call of the model is the first of an attempt. */
  private begins = true;
  private own: number;

  constructor(
    private readonly host: SmallHost,
    readonly engine: Engine | undefined,
    readonly before: AgentMessage[],
    readonly admitted: Entry,
    private readonly isHeartbeat: boolean,
  ) {
    this.history = before;
    this.own = host.entries.length - 1;
  }

  /** OpenClaw tries, or tries again: what the turn did so far stays written down, and is not shown. */
  async attempt(): Promise<void> {
    this.begins = true;
    this.history = this.before;
    this.own = this.host.entries.length;
    await this.host.fenced(this.admitted, async () => this.engine?.bootstrap(this.host.target));
  }

  /** What the model is shown before what the attempt itself said. */
  async ask(tokenBudget: number): Promise<AssembleResult> {
    const { host, engine, begins, history: messages } = this;
    this.begins = false;
    if (!engine) return { messages, estimatedTokens: 0 };
    const named = { ...host.named, messages, model: "none" };
    // OpenClaw takes less off for the later ones than it took off for the first, and fences only that.
    const shown = begins
      ? await host.fenced(this.admitted, () => engine.assemble({ ...named, tokenBudget }))
      : await engine.assemble({ ...named, tokenBudget: tokenBudget * 2 });
    if (begins) this.history = shown.messages;
    return shown;
  }

  /** What the model is shown of the turn itself. */
  get pending(): AgentMessage[] {
    const { message } = this.admitted;
    return [message, ...this.host.entries.slice(this.own).filter((entry) => entry !== this.admitted).map((entry) => entry.message)];
  }

  /** A reply that calls tools, and what they answered. `interrupted`: the last of them did not. */
  work(calls: readonly { id: string; text: string }[], interrupted = false): void {
    const content = calls.map(({ id }) => ({ type: "toolCall", id, name: "look_up", arguments: { id } }));
    this.host.append({ ...assistant(content), stopReason: "toolUse" });
    for (const { id, text } of interrupted ? calls.slice(0, -1) : calls) {
      this.host.append({ role: "toolResult", toolCallId: id, toolName: "look_up", content: [{ type: "text", text }], isError: false });
    }
  }

  /** The reply that ends the turn. */
  async accept(answer: string): Promise<void> {
    const { entryId: to } = this.host.append(assistant([{ type: "text", text: answer }]));
    if (!this.engine) return;
    this.host.outbox.push({ key: randomUUID(), from: this.admitted.entryId, to, isHeartbeat: this.isHeartbeat });
    await this.host.drain(this.engine);
    await this.engine.dispose();
  }
}

export function assistant(content: object[]): AgentMessage {
  const usage = { input: 100, output: 10, cacheRead: 0, cacheWrite: 0, totalTokens: 110 };
  return { role: "assistant", content, api: "none", provider: "none", model: "none", usage, stopReason: "stop" };
}
