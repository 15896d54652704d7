import { status } from "@grpc/grpc-js";

import { MAX_ATTEMPTS } from "./calls.js";
import { ContextEngineError, LostRace, Overloaded } from "./errors.js";

const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 2_000;
/** Clients that lost one server do not come back all at once. */
const JITTER = 0.2;

/** One unary call's attempts within its deadline. All times in milliseconds. */
export class Attempts {
  private readonly began = Date.now();
  private absences = 0;
  private refusals = 0;

  /**
   * `deadline`: since 1970. `retryFor`: how long UNAVAILABLE is answered with another attempt. `knownAway`: an earlier call
   * asked for that long in vain, so this one makes a few attempts only.
   */
  constructor(
    private readonly deadline: number,
    private readonly retryFor: number,
    /** Afterwards: whether the next call need not ask for as long as this one did. */
    public knownAway: boolean,
  ) {}

  /** How long to wait before the next attempt. Undefined: there is none, since it would not help or would come too late. */
  pause(error: unknown): number | undefined {
    const pause = this.usual(error);
    return pause !== undefined && Date.now() + pause < this.deadline ? pause : undefined;
  }

  private usual(error: unknown): number | undefined {
    if (error instanceof ContextEngineError && error.code === status.UNAVAILABLE) {
      const usual = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 3 ** this.absences++);
      const pause = usual * (1 - JITTER + 2 * JITTER * Math.random());
      const enough = this.knownAway && this.absences >= MAX_ATTEMPTS;
      const late = Date.now() + pause - this.began >= this.retryFor;
      this.knownAway ||= late && this.retryFor > 0;
      return enough || late ? undefined : pause;
    }
    this.knownAway = false;
    if (!(error instanceof Overloaded) && !(error instanceof LostRace)) return undefined;
    const pause = error.retryAfterMs ?? FIRST_PAUSE * 2 ** this.refusals;
    return ++this.refusals >= MAX_ATTEMPTS ? undefined : pause;
  }
}
