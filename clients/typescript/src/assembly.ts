import type { ContextEngineError } from "./errors.js";
import { type AssembleResponse, AssembleResponse_Outcome as Outcome, type Item, type Message } from "./types.js";

/** A delta does not fit the list that is held. The next call gets the whole list. */
export class DeltaMismatch extends Error {}

/** Why the client made an assembly by itself. */
export interface Degraded {
  /** The error's reason, or the name of its gRPC code where it has none. */
  reason: string;
  error: ContextEngineError;
  /** How many messages of `ingest` the full queue did not take: nobody stores them but the caller. */
  unqueued: number;
}

/** The context for one model call, whole. Items are shared with later assemblies: read them, do not change them. */
export class Assembly {
  constructor(
    /** The whole list, in order. */
    readonly items: readonly Item[],
    /** The reply as it came; its items may be only what follows the reused ones. */
    readonly response: AssembleResponse,
    /** Why the client made it by itself. Undefined: the service did. */
    readonly degraded?: Degraded,
  ) {}

  /** What to send to the model, in order. */
  get messages(): Message[] {
    return this.items.flatMap((item) => item.message ?? []);
  }

  /** Whether the list is within its budget and as asked. */
  get fits(): boolean {
    return this.response.outcome === Outcome.FITS;
  }
}

/** The assembly that a reply makes of what is held. Raises DeltaMismatch where the counts do not add up. */
export function extend(held: readonly Item[], response: AssembleResponse): Assembly {
  const { reusedCount: reused, totalCount: total } = response.cache ?? { reusedCount: 0, totalCount: 0 };
  if (reused < 0 || reused > held.length || reused + response.items.length !== total) {
    throw new DeltaMismatch(
      `${reused} reused of ${held.length} held and ${response.items.length} new entries are not the ${total} announced`,
    );
  }
  return new Assembly([...held.slice(0, reused), ...response.items], response);
}
