import { create } from "@bufbuild/protobuf";
import { batches, type Client, Feed, type Session, SessionNotFound } from "@contextengine/client";
import { compact, FormatError, fromPi, PI } from "@contextengine/client/formats";
import { type Message, MessageSchema, NativeSchema, Role } from "@contextengine/client/types";

import type { Entry, Sdk, TranscriptTarget } from "./openclaw.js";
import { conversations, goesOn, type Place, type Read, readOn } from "./reading.js";

/** Whatever the session holds, OpenClaw's transcript says what is true. */
const ALL = { has: () => true };

/** How a transcript is brought. */
export interface BringOptions {
  /** The deadline of each call in milliseconds. */
  timeoutMs: number;
  /** Aborted where nobody waits for it any longer. */
  signal?: AbortSignal;
  /** The turn to be brought, and nothing behind it: its first and last entry, and whether it is a heartbeat's. */
  turn?: { from: string; to: string; isHeartbeat: boolean };
}

/** A conversation beside the session that keeps it. */
interface Kept {
  readonly reset: string;
  readonly session: Session;
  readonly feed: Feed;
  /** The entries up to the place that was read. */
  ids: readonly string[];
}

/**
 * OpenClaw's transcript of a session beside the sessions that keep it: one, and another for each time that OpenClaw began the
 * conversation anew. The entries' ids are the messages'. What is new is read behind a place, which moves once it is stored:
 * what could not be stored comes with the next turn. Where the transcript was rewritten, or this process knows nothing of it
 * yet, all of it is read, and what the sessions lack is stored.
 */
export class Transcript {
  private kept: Kept;
  private place: Place | undefined;
  private running: Promise<unknown> = Promise.resolve();
  /** Where the sessions of this transcript are stored, if OpenClaw said so. */
  storePath: string | undefined;

  constructor(
    private readonly client: Client,
    private readonly ref: TranscriptTarget,
    private readonly sdk: Pick<Sdk, "read" | "events">,
  ) {
    this.kept = this.begun("");
  }

  /** The session that keeps the conversation which was brought last. */
  get session(): Session {
    return this.kept.session;
  }

  /**
   * Stores what is new, one call after the other; the session of the conversation that came last, or of the turn that was to be
   * brought. Raises where the service is away or the transcript cannot be read.
   */
  bring(options: BringOptions): Promise<Session> {
    const next = this.running.then(
      () => this.brought(options),
      () => this.brought(options),
    );
    this.running = next.catch(() => undefined);
    return next;
  }

  private async brought(options: BringOptions): Promise<Session> {
    if (this.place?.messages !== undefined) {
      const read = await this.read(this.place);
      const isHere = read && goesOn(read, this.kept.reset) && this.mayHave(options.turn?.to, read.entries);
      if (isHere && (await this.stored(this.kept, read.entries, this.kept.ids, read.place, options))) return this.session;
    }
    const read = await this.read();
    if (!read) throw new Error("OpenClaw's transcript changes as it is read");
    return this.broughtWhole(read, options);
  }

  /** Stores each conversation of the transcript in its session, the newest last, as far as they may be brought. */
  private async broughtWhole(read: Read, options: BringOptions): Promise<Session> {
    this.place = undefined;
    const found = conversations(read);
    const { turn } = options;
    const newest = found.at(-1)?.reset;
    const last = turn ? found.findIndex(({ entries }) => entries.some(({ entryId }) => entryId === turn.to)) : -1;
    if (last >= 0) found.splice(last + 1);
    // One is begun once all before it are stored.
    let at = found.length - 1;
    while (at > 0 && (await this.newest(found[at]!.reset, options)) === undefined) at--;
    let kept = this.kept;
    for (; at < found.length; at++) {
      const { reset, entries } = found[at]!;
      if (kept.reset !== reset) kept = this.begun(reset);
      // Another process of OpenClaw may have written to it, and gone back behind that.
      else if (kept.ids.length && kept.ids.at(-1) !== (await this.newest(reset, options))) kept.feed.forget();
      await this.stored(kept, entries, [], reset === newest ? read.place : undefined, options);
    }
    // A turn that comes late is no reason to leave the conversation that goes on meanwhile.
    if (this.kept.reset !== newest || kept.reset === newest) this.kept = kept;
    return kept.session;
  }

  /** Whether an entry, if any is asked for, is one of the conversation that was brought last. */
  private mayHave(id: string | undefined, more: readonly Entry[]): boolean {
    return id === undefined || this.kept.ids.includes(id) || more.some(({ entryId }) => entryId === id);
  }

  /** The id of the session that keeps this conversation in a copy of the transcript, which has the ids of its entries. */
  inCopy(sessionId: string): string {
    return idOf(sessionId, this.kept.reset);
  }

  private begun(reset: string): Kept {
    const { agentId, sessionId, sessionKey } = this.ref;
    const named = { agentId, sessionId: idOf(sessionId, reset) };
    const session = this.client.session(sessionKey ? { ...named, sessionKey } : named);
    return { reset, session, feed: new Feed(this.client, session.ref), ids: [] };
  }

  /** The id of the newest message of a conversation's session. Undefined: there is none yet. */
  private async newest(reset: string, { timeoutMs, signal }: BringOptions): Promise<string | undefined> {
    try {
      return (await this.begun(reset).session.status({}, { timeoutMs, signal })).lastMessageId;
    } catch (error) {
      if (error instanceof SessionNotFound) return undefined;
      throw error;
    }
  }

  /**
   * Stores what of a conversation its session lacks. `before`: what of it is known to be stored; `place`: how far it was read.
   * False: the session no longer holds that.
   */
  private async stored(
    kept: Kept,
    entries: readonly Entry[],
    before: readonly string[],
    place: Place | undefined,
    { turn, ...options }: BringOptions,
  ): Promise<boolean> {
    const { feed, session } = kept;
    const ids = [...before, ...entries.map(({ entryId }) => entryId)];
    const held = ids.length ? ((await feed.held(ids, { ...options, left: ALL })) ?? 0) : 0;
    if (held < before.length) return false;
    const end = turn && ids.includes(turn.to) ? ids.lastIndexOf(turn.to) + 1 : ids.length;
    const first = turn?.isHeartbeat ? ids.indexOf(turn.from) : -1;
    const messages = entries.map((entry, at) => {
      const message = messageOf(entry);
      return first >= 0 && before.length + at >= first ? { ...message, isHeartbeat: true } : message;
    });
    let stored = held;
    try {
      for (const some of batches(messages.slice(held - before.length, end - before.length))) {
        await this.client.contextEngine.ingestBatch({ session: session.ref, messages: some }, options);
        stored += some.length;
        feed.wrote(ids.slice(0, stored));
      }
    } catch (error) {
      feed.forget(); // whether it is stored is not known
      throw error;
    }
    // What stands behind the turn is read again.
    if (end < ids.length) return true;
    kept.ids = ids;
    this.place = place;
    return true;
  }

  /** What follows a place. Undefined: all must be read. */
  private async read(from?: Place): Promise<Read | undefined> {
    const target = { ...this.ref, ...(this.storePath ? { storePath: this.storePath } : {}) };
    try {
      return await readOn(this.sdk, target, from);
    } catch (error) {
      // A place that no longer fits (a fence stands before it, say) is no reason to give up.
      if (from && error instanceof Error && error.name === "SessionTranscriptReadFenceError") return undefined;
      throw error;
    }
  }
}

/** The id of a conversation's session: OpenClaw's, and that of the reset that it begins with. */
function idOf(sessionId: string, reset: string): string {
  return reset ? `${sessionId}:${reset}` : sessionId;
}

/** One entry. What has no form here is kept as it is. */
export function messageOf({ entryId, message }: Entry): Message {
  const entry = { type: "message", id: entryId, message };
  try {
    const [made] = fromPi([entry]);
    if (made) return made;
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
  }
  const kind = { case: "opaque" as const, value: { format: PI, type: "message", json: compact(message) } };
  const native = create(NativeSchema, { format: PI, json: compact(entry) });
  return create(MessageSchema, { id: entryId, role: Role.CUSTOM, customRole: String(message["role"]), parts: [{ kind }], native });
}
