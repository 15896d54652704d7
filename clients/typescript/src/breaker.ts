import { setTimeout as sleep } from "node:timers/promises";

import { status } from "@grpc/grpc-js";

import type { ContextEngineError } from "./errors.js";

/** The rpc that asks. An empty request means the whole server. */
export const HEALTH = "/grpc.health.v1.Health/Check";
/** How long one question may take, in milliseconds. It goes on beside the calls, which do not wait for it. */
export const PROBE_MS = 5_000;
/** How long from its beginning calls wait for the answer of one question, all together, in milliseconds. */
const PATIENCE = 50;
/** The encoded HealthCheckResponse of a server that serves. One that drains says otherwise. */
const SERVING = Buffer.from([0x08, 0x01]);

const AWAY = new Set([status.UNAVAILABLE, status.DEADLINE_EXCEEDED]);
const BROKEN = new Set([status.UNKNOWN, status.INTERNAL]);

/** What became of a question: the reply, or the code of its failure. */
export type Heard = { reply: Buffer } | { code: status };

/**
 * Whether the service is known to be away, so that no call waits for it once more: open from the first call that finds
 * nobody, or nobody who answers, until one is answered.
 */
export class Breaker {
  private known: ContextEngineError | undefined;
  private asking: Promise<void> | undefined;
  /** Settles once calls wait no longer for the answer. */
  private waiting: Promise<void> | undefined;

  /** `ask`: asks the service whether it serves, and always answers. Undefined: the breaker is off. */
  constructor(private readonly ask: (() => Promise<Heard>) | undefined) {}

  /** The service is there. */
  answered(): void {
    this.known = undefined;
  }

  /** A call has given up with this error. */
  failed(error: ContextEngineError): void {
    const { code, reason } = error;
    if (code === status.UNAVAILABLE || (!reason && (AWAY.has(code) || BROKEN.has(code)))) this.known = error;
    else if (reason) this.known = undefined;
  }

  /**
   * What the call failed with that found the service away: an error of its own for each caller. Undefined: it may be asked.
   * While it is away, this begins a question where none goes on, and waits for its answer until it is a moment old.
   */
  async away(): Promise<ContextEngineError | undefined> {
    if (!this.ask || !this.known) return undefined;
    if (!this.asking) {
      this.asking = this.ask()
        .then((heard) => this.heard(heard))
        .finally(() => (this.asking = undefined));
      this.waiting = Promise.race([this.asking, sleep(PATIENCE)]);
    }
    await this.waiting;
    const { known } = this;
    return known && new (known.constructor as typeof ContextEngineError)(known.details, known);
  }

  /** Whoever refuses the question is there too. */
  private heard(heard: Heard): void {
    const away = "code" in heard ? AWAY.has(heard.code) || heard.code === status.CANCELLED : !heard.reply.equals(SERVING);
    if (!away) this.known = undefined;
  }
}
