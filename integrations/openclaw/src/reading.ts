/** OpenClaw's transcript of a session, as it is read. */
import type { Entry, Event, Paging, Sdk, TranscriptPage, TranscriptTarget } from "./openclaw.js";

/** Messages or events and bytes of a page of the transcript; OpenClaw's limit for one message is 64 MiB. */
const MOST = 1_000;
const MOST_BYTES = 8 * 1024 * 1024;
/** Who says what OpenClaw keeps of a conversation that it began anew without being asked. */
const KEPT = new Set<unknown>(["user", "assistant", "toolResult"]);

/** Where OpenClaw began the conversation anew, under the same id: `/new`, `/reset`, or after a time. */
interface Reset {
  id: string;
  /** The first entry that goes on being shown. Undefined: none. */
  keptFrom: string | undefined;
}

/** How far the transcript was read. */
export interface Place {
  readonly messages: string | undefined;
  readonly events: string | undefined;
  /** The resets by the events that stand below them, without a message between. */
  readonly below: ReadonlyMap<string, Reset>;
  /** The reset that nothing was said behind yet. */
  readonly last: Reset | undefined;
}

/** What was read, and how far that goes. */
export interface Read {
  entries: Entry[];
  place: Place;
}

/** A conversation of the transcript: what OpenClaw would show of it, oldest first. */
export interface Conversation {
  /** The reset that it begins with. Empty: it is the first. */
  reset: string;
  entries: Entry[];
}

/** What follows a place. Undefined: it no longer fits, and all must be read. */
export async function readOn(sdk: Pick<Sdk, "read" | "events">, target: TranscriptTarget, from?: Place): Promise<Read | undefined> {
  // In this order, so that no message is known before the reset that it stands behind.
  const said = await pages<Entry>(async (paging) => {
    const page = await sdk.read({ ...target, ...paging, maxMessages: MOST });
    return page.kind === "page" ? { ...page, found: page.entries } : page;
  }, from?.messages);
  if (said === "missing") return { entries: [], place: { messages: undefined, events: undefined, below: new Map(), last: undefined } };
  if (!said) return undefined;
  const happened = await pages<{ event: Event }>(async (paging) => {
    const page = await sdk.events({ ...target, ...paging, maxEvents: MOST });
    return page.kind === "page" ? { ...page, found: page.events } : page;
  }, from?.events);
  if (!happened || happened === "missing") return undefined;
  const below = new Map(from?.below);
  let last = from?.last;
  for (const { event } of happened.found) {
    const { type, id, parentId, targetId, firstKeptEntryId: keptFrom } = event;
    if (type === "message") last = undefined;
    else if (type === "leaf") last = below.get(targetId ?? "");
    else if (id) {
      if (type === "reset") last = { id, keptFrom };
      const reset = type === "reset" ? last : below.get(parentId ?? "");
      if (reset) below.set(id, reset);
    }
  }
  return { entries: said.found, place: { messages: said.cursor, events: happened.cursor, below, last } };
}

/** The reset that stands right before an entry, or after all where none is given. */
function resetBefore({ below, last }: Place, entry?: Entry): Reset | undefined {
  return entry ? below.get(entry.parentId ?? "") : last;
}

/** Whether all that was read belongs to the conversation that this reset begins. */
export function goesOn({ entries, place }: Read, reset: string): boolean {
  return [...entries, undefined].every((entry) => (resetBefore(place, entry)?.id ?? reset) === reset);
}

/** The conversations of a transcript that was read from its beginning. */
export function conversations({ entries, place }: Read): Conversation[] {
  let current: Conversation = { reset: "", entries: [] };
  const found = [current];
  for (const [at, entry] of [...entries, undefined].entries()) {
    const reset = resetBefore(place, entry);
    if (reset && reset.id !== current.reset) {
      const kept = reset.keptFrom === undefined ? -1 : entries.findIndex(({ entryId }) => entryId === reset.keptFrom);
      const shown = kept < 0 ? [] : entries.slice(kept, at).filter(({ message }) => KEPT.has(message["role"]));
      found.push((current = { reset: reset.id, entries: shown }));
    }
    if (entry) current.entries.push(entry);
  }
  return found;
}

type Found<T> = Exclude<TranscriptPage<unknown>, { kind: "page" }> | (TranscriptPage<unknown> & { kind: "page"; found: T[] });

/** All pages behind a cursor, and the next one. Undefined: the cursor no longer fits. */
async function pages<T>(
  page: (paging: Paging) => Promise<Found<T>>,
  from: string | undefined,
): Promise<{ found: T[]; cursor: string } | "missing" | undefined> {
  const found: T[] = [];
  let cursor = from;
  let maxBytes = MOST_BYTES;
  for (;;) {
    const one = await page({ maxBytes, ...(cursor === undefined ? {} : { cursor }) });
    if (one.kind === "missing") return "missing";
    if (one.kind === "unavailable") throw new Error(`OpenClaw's transcript cannot be read now: ${one.reason}`);
    if (one.kind === "reset") return undefined;
    found.push(...one.found);
    cursor = one.cursor;
    maxBytes = Math.max(MOST_BYTES, one.requiredBytes ?? 0);
    if (!one.hasMore && one.requiredBytes === undefined) return { found, cursor };
  }
}
