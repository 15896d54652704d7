/** Lives of a session of OpenClaw, made up: in the end the service holds what the transcript says, whatever happened meanwhile. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { SmallHost, type Turn } from "../examples/host.js";
import type { AgentMessage } from "../src/openclaw.js";
import { answered, holdsAll, relayed, WIDE } from "./around.js";

/** `CONTEXTENGINE_LIVES`: which lives, `0-99`, say. */
const [FIRST = 0, LAST = FIRST] = (process.env["CONTEXTENGINE_LIVES"] ?? "0-11").split("-").map(Number);
const PICTURE = { type: "image", data: Buffer.from("a picture").toString("base64"), mimeType: "image/png" };
/** The same words again and again, and some that are long. */
const WORDS = ["go on", "go on", "yes", "look", `much: ${"and so on ".repeat(2_000)}`, "half an emoji \ud83d"];

/** Numbers as if by chance, the same for the same seed (mulberry32). */
class Chance {
  constructor(private seed: number) {}

  number(): number {
    this.seed = (this.seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.seed ^ (this.seed >>> 15), 1 | this.seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  is(share: number): boolean {
    return this.number() < share;
  }

  below(count: number): number {
    return Math.floor(this.number() * count);
  }

  one<T>(of: readonly T[]): T {
    return of[this.below(of.length)]!;
  }
}

/** Messages in short. Their times are their names here. */
function seen(messages: readonly AgentMessage[]): string[] {
  return messages.map(({ timestamp, role, content }) => {
    const text = JSON.stringify(content);
    return `${Number(timestamp) % 100_000_000} ${String(role)} ${text.slice(0, 60)} ${text.length}`;
  });
}

class Life {
  readonly host: SmallHost;
  private away = false;
  private calls = 0;
  readonly lived: string[] = [];

  constructor(
    private readonly relay: Awaited<ReturnType<typeof relayed>>,
    private readonly chance: Chance,
  ) {
    this.host = new SmallHost({ address: relay.address, patienceMs: 400 });
  }

  async goesOn(): Promise<void> {
    const { host, chance } = this;
    const count = host.entries.length;
    switch (chance.below(15)) {
      case 0:
        this.did("restart");
        return host.restart();
      case 1:
        this.did("reset");
        return host.reset(chance.is(0.3) ? host.entries.length - host.entries.findLastIndex(({ message }) => message["role"] === "user") : 0);
      case 2:
        if (!count || host.outbox.length) return;
        this.did("branch");
        return host.branch(chance.below(count) + 1);
      case 3:
        return this.turns(!this.away);
      case 4:
        this.did("note");
        return host.note();
      case 5:
        this.did("command");
        host.append({ role: "user", content: "/status", excludeFromContext: true });
        return void host.append({ role: "assistant", content: [{ type: "text", text: "well" }], provider: "openclaw", model: "gateway-injected" });
      case 6:
        this.did("compact");
        return void (await host.engine().compact({ ...host.named, tokenBudget: WIDE * 10, runtimeContext: { trigger: "manual" } }));
      case 7:
        this.did("passes");
        return host.passes();
      default:
        return this.turn();
    }
  }

  /** The service goes away, or comes back. */
  async turns(away: boolean): Promise<void> {
    this.did(away ? "away" : "back");
    this.away = away;
    this.relay.turn(away ? this.chance.one(["closed", "deaf"]) : "open");
    if (!away) await answered(this.host);
  }

  private async turn(): Promise<void> {
    const { host, chance } = this;
    const isHeartbeat = chance.is(0.1);
    const turn = await host.begin(chance.is(0.1) ? [PICTURE, { type: "text", text: "see" }] : chance.one(WORDS), isHeartbeat);
    this.did(`turn${turn.engine ? "" : " without"}`);
    for (;;) {
      await this.asks(turn);
      if (chance.is(0.1)) return this.did("interrupted");
      if (chance.is(0.1)) {
        this.did("again");
        await turn.attempt();
        continue;
      }
      if (chance.is(0.15)) await this.turns(!this.away);
      if (chance.is(0.5)) break;
      this.did("calls");
      turn.work(Array.from({ length: 1 + chance.below(3) }, () => ({ id: this.named(), text: chance.one(WORDS) })), chance.is(0.1));
    }
    await turn.accept(chance.one(WORDS));
  }

  /** What the model is shown, at the end of which stands the turn. */
  private async asks(turn: Turn): Promise<void> {
    const before = seen(turn.before);
    const { messages } = await turn.ask(WIDE * 10);
    assert.deepEqual(seen(messages).filter((text) => !text.includes("No result was recorded")), before);
  }

  /** Some providers name calls anew in each reply. */
  private named(): string {
    return this.chance.is(0.5) ? `call_${this.calls++}` : `call_${this.calls++ % 3}`;
  }

  did(what: string): void {
    this.lived.push(what);
  }

  /** The service is there again, and a last turn is said. */
  async ends(): Promise<void> {
    if (this.away) await this.turns(false);
    await answered(this.host);
    await this.host.turn("the end", "well", WIDE * 10);
    assert.equal(this.host.outbox.length, 0);
    await holdsAll(this.host);
  }
}

let relay: Awaited<ReturnType<typeof relayed>>;
before(async () => void (relay = await relayed()));
after(() => relay.close());

for (let seed = FIRST; seed <= LAST; seed++) {
  test(`life ${seed}`, async () => {
    const chance = new Chance(seed);
    const life = new Life(relay, chance);
    try {
      for (let left = 5 + chance.below(25); left; left--) await life.goesOn();
      await life.ends();
    } catch (error) {
      console.log(life.lived.join(", "));
      console.log(life.host.warnings.join("\n").slice(0, 3_000));
      throw error;
    } finally {
      relay.turn("open");
      life.host.end();
    }
  });
}
