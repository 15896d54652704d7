import { status } from "@grpc/grpc-js";

import { MAX_ATTEMPTS } from "./calls.js";
import { ContextEngineError, LostRace, Overloaded } from "./errors.js";

const FIRST_PAUSE = 100;
/** Even with the jitter below a second: a server that is back is used within one. */
const LONGEST_PAUSE = 800;
/** Clients that lost one server do not come back all at once. */
const JITTER = 0.2;

/**
 * Since when the service is away, as all calls of one connection see it: they wait for it together, not each anew. Times in
 * milliseconds of `performance.now()`.
 */
export class Absence {
  private answered = -Infinity;
  /** When the first attempt found nobody. Infinity while the service is there. */
  began = Infinity;

  /** The service has answered something. */
  end(): void {
    this.answered = performance.now();
    this.began = Infinity;
  }

  /** An attempt that was sent then found nobody. What another call was answered meanwhile is the newer news. */
  begin(sent: number): void {
    if (this.answered <= sent) this.began = Math.min(this.began, performance.now());
  }
}

/** One unary call's attempts within its deadline. All times in milliseconds. */
export class Attempts {
  private sent = performance.now();
  /** When the first attempt of this call found nobody. */
  private missed = Infinity;
  private absences = 0;
  private refusals = 0;

  /**
   * `deadline`: since 1970. `retryFor`: how long UNAVAILABLE is answered with another attempt. `absence`: what the connection
   * knows; it counts from its beginning.
   */
  constructor(
    private readonly deadline: number,
    private readonly retryFor: number,
    private readonly absence: Absence,
  ) {}

  /** How long to wait before the next attempt. Undefined: there is none, since it would not help or would come too late. */
  pause(error: unknown): number | undefined {
    const pause =
      error instanceof ContextEngineError && error.code === status.UNAVAILABLE ? this.whileAway() : this.refused(error);
    if (pause === undefined || Date.now() + pause >= this.deadline) return undefined;
    this.sent = performance.now() + pause;
    return pause;
  }

  private whileAway(): number | undefined {
    const now = performance.now();
    this.absence.begin(this.sent);
    this.missed = Math.min(this.missed, now);
    const usual = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 3 ** this.absences++);
    const pause = usual * (1 - JITTER + 2 * JITTER * Math.random());
    // Where others are answered meanwhile, this call still does not ask for ever.
    const since = Math.min(this.missed, this.absence.began);
    return now + pause - since >= this.retryFor ? undefined : pause;
  }

  private refused(error: unknown): number | undefined {
    // A deadline that passed or a broken connection has no reason, and is no answer.
    if (error instanceof ContextEngineError && error.reason) this.absence.end();
    if (!(error instanceof Overloaded) && !(error instanceof LostRace)) return undefined;
    const pause = error.retryAfterMs ?? FIRST_PAUSE * 2 ** this.refusals;
    return ++this.refusals >= MAX_ATTEMPTS ? undefined : pause;
  }
}
