import { batches } from "./batches.js";
import type { Client } from "./client.js";
import { ContextEngineError, SessionNotFound } from "./errors.js";
import type { CallOptions } from "./transport.js";
import type { Message, SessionRef } from "./types.js";

/**
 * How many of the host's newest messages are looked at for one that is stored, where the host went back and nothing is known
 * of before: as many as one prompt's work has, and more.
 */
const MOST_BACK = 200;

type Rewind = { afterMessageId: string } | { afterSequence: bigint };

/** How a list is compared with the session. */
export interface FeedOptions extends CallOptions {
  /**
   * The ids of messages that the host has gone back behind, where it knows them: a session that ends with another one is only
   * behind, and what it holds is all of another branch where none of the host's is in it. Undefined: a session that ends with
   * none of the host's messages was left.
   */
  left?: { has(id: string): boolean } | undefined;
}

/**
 * What a session holds of its host's list, whose messages have ids that stay. Safe to ask at every step: what is there already
 * is not stored again, and what could not be stored comes with the next.
 *
 * Remembers which ids the session holds, so that a host that goes on costs no question. Whoever writes to the session by
 * another way says so with `forget`. Raises ContextEngineError where the service is away.
 */
export class Feed {
  private ids: readonly string[] = [];

  constructor(
    private readonly client: Client,
    private readonly ref: SessionRef,
  ) {}

  /** The session's view ends with these now, the host's whole list. */
  wrote(ids: readonly string[]): void {
    this.ids = [...ids];
  }

  /** Nothing is known of the session any more. */
  forget(): void {
    this.ids = [];
  }

  /** Whether these are what the session was last known to hold. */
  endsWith(ids: readonly string[]): boolean {
    return ids.length === this.ids.length && common(ids, this.ids) === ids.length;
  }

  /**
   * How many of the host's messages, from the first, the session holds: what follows them is to be written. Where the host
   * went back (an undo, an edit, a branch), the session is taken back first. Undefined, without `left`: the session holds
   * messages and none of these, so the list is another's, or its beginning was cut off.
   */
  async held(ids: readonly string[], { left, ...options }: FeedOptions = {}): Promise<number | undefined> {
    const call = within(options);
    const same = common(this.ids, ids);
    if (same && same === this.ids.length) return same;
    const newest = await this.newest(call);
    if (newest === undefined) return 0;
    if (!newest && !left) return undefined;
    const place = ids.lastIndexOf(newest);
    if (place >= 0) return place + 1;
    if (left && !left.has(newest)) return 0;
    const last = same || ids.length;
    const first = same ? same - 1 : Math.max(ids.length - MOST_BACK, 0);
    for (let at = last - 1; at >= first; at--) {
      if (await this.rewound({ afterMessageId: ids[at] as string }, call)) return at + 1;
    }
    if (!left) return undefined;
    await this.rewound({ afterSequence: 0n }, call);
    return 0;
  }

  /**
   * Stores what of the host's whole list the session does not hold, some at a time; how many came. Undefined, and nothing is
   * stored: see `held`. `ended`: whether the turn is over, so that the service may compact.
   */
  async bring(
    messages: readonly Message[],
    { ended = false, ...options }: FeedOptions & { ended?: boolean } = {},
  ): Promise<number | undefined> {
    const call = within(options);
    const ids = messages.map(({ id }) => id);
    const after = await this.held(ids, { ...call(), left: options.left });
    if (after === undefined) return undefined;
    let stored = after;
    try {
      for (const some of batches(messages.slice(after))) {
        const request = { session: this.ref, messages: some };
        stored += some.length;
        if (ended && stored === messages.length) await this.client.contextEngine.afterTurn(request, call());
        else await this.client.contextEngine.ingestBatch(request, call());
        this.wrote(ids.slice(0, stored));
      }
    } catch (error) {
      this.forget(); // whether it is stored is not known
      throw error;
    }
    return messages.length - after;
  }

  /** The id of the newest message in the view that has one. Empty: none has. Undefined: the view is empty. */
  private async newest(call: () => CallOptions): Promise<string | undefined> {
    try {
      const status = await this.client.contextEngine.getStatus({ session: this.ref }, call());
      return status.messageCount ? status.lastMessageId : undefined;
    } catch (error) {
      if (error instanceof SessionNotFound) return undefined;
      throw error;
    }
  }

  /**
   * Takes the session back. False: to a message that is not there. Each time is another change: a host may go back to the same
   * message twice.
   */
  private async rewound(value: Rewind, call: () => CallOptions): Promise<boolean> {
    this.forget();
    try {
      await this.client.contextEngine.recordHostChange({ session: this.ref, change: { case: "rewind", value } }, call());
    } catch (error) {
      if (!(error instanceof ContextEngineError) || !error.violations.length) throw error;
      return false;
    }
    return true;
  }
}

/** The options of each of several calls that have one deadline together. */
function within({ timeoutMs, signal }: CallOptions): () => CallOptions {
  if (timeoutMs === undefined) return () => ({ signal });
  const deadline = Date.now() + timeoutMs;
  return () => ({ timeoutMs: Math.max(1, deadline - Date.now()), signal });
}

/** How long both begin alike. */
function common(one: readonly string[], other: readonly string[]): number {
  const differs = one.findIndex((id, at) => id !== other[at]);
  return differs < 0 ? one.length : differs;
}
