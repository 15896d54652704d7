import { setTimeout as sleep } from "node:timers/promises";

import { status } from "@grpc/grpc-js";

import { ContextEngineError } from "./errors.js";

/** The rpc that asks. An empty request means the whole server. */
export const HEALTH = "/grpc.health.v1.Health/Check";
/** How long one question may take, in milliseconds. It goes on beside the calls, which do not wait for it. */
export const PROBE_MS = 5_000;
/** How long from its beginning calls wait for the answer of one question, all together, in milliseconds. */
const PATIENCE = 50;
/**
 * How long a trial holds the other calls back at most, in milliseconds: the longest deadline of a call that waits for no
 * model. A compaction that happens to be the trial may take ten times as long.
 */
const TRIAL_MS = 60_000;
/**
 * How long nothing is asked once the trial behind a question has failed, in milliseconds: as long as a question that hangs
 * takes anyway. Twice as long each further time.
 */
const FIRST_PAUSE = 5_000;
/**
 * The longest: calls that are answered again are found within a minute, and a call of 2 s that hangs each minute costs an
 * agent a thirtieth of its time.
 */
const LONGEST_PAUSE = 60_000;
/** The encoded HealthCheckResponse of a server that serves. One that drains says otherwise. */
const SERVING = Buffer.from([0x08, 0x01]);

const NO_ANSWER = new Set([status.UNAVAILABLE, status.DEADLINE_EXCEEDED]);
const BROKEN = new Set([status.UNKNOWN, status.INTERNAL]);

/** What became of a question: the reply, or the code of its failure. */
export type Heard = { reply: Buffer } | { code: status };

/**
 * Whether the service is known to be away, so that no call waits for it once more: open from the first call that finds
 * nobody, or nobody who answers; half-open once the service says that it serves, when calls go through as trials, all of
 * them while that was never wrong, then one at a time; closed once a call is answered.
 */
export class Breaker {
  /** What the newest call failed with that found the service away. Undefined: closed. */
  private known: ContextEngineError | undefined;
  private halfOpen = false;
  /** How long a trial holds others back, by the monotonic clock. */
  private trialUntil = -Infinity;
  /** The newest pause between a trial that failed and the next question. 0: none has failed. */
  private pause = 0;
  private pausedUntil = -Infinity;
  private asking: Promise<void> | undefined;
  /** Settles once calls wait no longer for the answer. */
  private waiting: Promise<void> | undefined;

  /** `question`: asks the service whether it serves, and always answers. */
  constructor(private readonly question: () => Promise<Heard>) {}

  /** A call was answered: the service is there. */
  answered(): void {
    this.known = undefined;
    this.halfOpen = false;
    this.pause = 0;
    this.trialUntil = this.pausedUntil = -Infinity;
  }

  /**
   * A call has given up with this error. `trial`: what `admit` said of it. Where the service said that it serves and a
   * trial finds it away, it is asked the later the next time.
   */
  failed(error: unknown, trial: boolean): void {
    const found = error instanceof ContextEngineError ? error : undefined;
    const away = found && isAway(found);
    if (found?.reason && !away) {
      this.answered();
      return;
    }
    if (away) this.known = found;
    if (away && trial && this.halfOpen) {
      this.halfOpen = false;
      this.pause = Math.min(Math.max(2 * this.pause, FIRST_PAUSE), LONGEST_PAUSE);
      this.pausedUntil = performance.now() + this.pause;
    }
    // Of one that was cancelled nothing is known: another may be the trial.
    if (trial) this.trialUntil = -Infinity;
  }

  /**
   * Lets a call through; whether it is a trial. Throws what the call failed with that found the service away, an error of
   * its own for each caller. Where it is time to, this begins a question, and waits for its answer until it is a moment old.
   * `isOver`: whether nobody wants the call any more.
   */
  async admit(isOver: () => boolean): Promise<boolean> {
    if (this.known && !this.halfOpen && performance.now() >= this.pausedUntil) await this.ask();
    const { known } = this;
    // A call that is cancelled says so itself.
    if (!known || isOver()) return false;
    const now = performance.now();
    if (!this.halfOpen || (this.pause && now < this.trialUntil)) {
      throw new (known.constructor as typeof ContextEngineError)(known.details, known);
    }
    this.trialUntil = now + TRIAL_MS;
    return true;
  }

  private async ask(): Promise<void> {
    if (!this.asking) {
      this.asking = this.question()
        .then((heard) => this.heard(heard))
        .finally(() => (this.asking = undefined));
      this.waiting = Promise.race([this.asking, sleep(PATIENCE)]);
    }
    await this.waiting;
  }

  private heard(heard: Heard): void {
    this.halfOpen = this.known !== undefined && isThere(heard);
  }
}

/** Whether an error says that nobody answers. */
function isAway({ code, reason }: ContextEngineError): boolean {
  return code === status.UNAVAILABLE || (!reason && (NO_ANSWER.has(code) || BROKEN.has(code)));
}

/** Whoever refuses the question is there too. */
function isThere(heard: Heard): boolean {
  if ("reply" in heard) return heard.reply.equals(SERVING);
  return !NO_ANSWER.has(heard.code) && heard.code !== status.CANCELLED;
}
