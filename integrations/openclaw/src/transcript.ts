import { create } from "@bufbuild/protobuf";
import { batches, type Client, Feed } from "@contextengine/client";
import { compact, FormatError, fromPi, PI } from "@contextengine/client/formats";
import { type Message, MessageSchema, NativeSchema, Role, type SessionRef } from "@contextengine/client/types";

import type { Entry, Sdk, TranscriptTarget } from "./openclaw.js";

/** Messages and bytes of a page of the transcript; OpenClaw's limit for one message is 64 MiB. */
const PAGE = { maxMessages: 1_000, maxBytes: 8 * 1024 * 1024 };

/** Whatever the session holds, OpenClaw's transcript says what is true. */
const ALL = { has: () => true };

/** How a transcript is brought. */
export interface BringOptions {
  /** The deadline of each call in milliseconds. */
  timeoutMs: number;
  /** Aborted where nobody waits for it any longer. */
  signal?: AbortSignal;
  /** The entry from which on all that comes is a heartbeat's. */
  heartbeatFrom?: string | undefined;
}

/**
 * OpenClaw's transcript of a session beside the session that keeps it. The entries' ids are the messages'. What is new is read
 * behind a cursor, which moves once it is stored: what could not be stored comes with the next turn. Where the transcript was
 * rewritten, or this process knows nothing of it yet, all of it is read, and what the session lacks is stored.
 */
export class Transcript {
  private readonly feed: Feed;
  private cursor: string | undefined;
  private ids: readonly string[] = [];
  private running: Promise<unknown> = Promise.resolve();
  /** Where the sessions of this transcript are stored, if OpenClaw said so. */
  storePath: string | undefined;

  constructor(
    private readonly client: Client,
    private readonly ref: SessionRef,
    private readonly target: TranscriptTarget,
    private readonly sdk: Pick<Sdk, "read">,
  ) {
    this.feed = new Feed(client, ref);
  }

  /** Stores what is new, one call after the other. Raises where the service is away or the transcript cannot be read. */
  bring(options: BringOptions): Promise<void> {
    const next = this.running.then(
      () => this.brought(options),
      () => this.brought(options),
    );
    this.running = next.catch(() => undefined);
    return next;
  }

  private async brought(options: BringOptions): Promise<void> {
    if (this.cursor !== undefined) {
      try {
        if (await this.stored(this.cursor, this.ids, options)) return;
      } catch (error) {
        // A cursor that no longer fits (a fence stands before it, say) is no reason to give up.
        if (!(error instanceof Error) || error.name !== "SessionTranscriptReadFenceError") throw error;
      }
    }
    if (!(await this.stored(undefined, [], options))) throw new Error("OpenClaw's transcript changes as it is read");
  }

  /** Reads what follows `before` and stores what of it the session lacks. False: all of it must be read. */
  private async stored(from: string | undefined, before: readonly string[], options: BringOptions): Promise<boolean> {
    const read = await this.read(from);
    if (!read) return false;
    const { entries, cursor } = read;
    const ids = [...before, ...entries.map(({ entryId }) => entryId)];
    const held = ids.length ? ((await this.feed.held(ids, { ...options, left: ALL })) ?? 0) : 0;
    if (held < before.length) return false;
    const messages = messagesOf(entries, options.heartbeatFrom).slice(held - before.length);
    let stored = held;
    for (const some of batches(messages)) {
      await this.client.contextEngine.ingestBatch({ session: this.ref, messages: some }, options);
      stored += some.length;
      this.feed.wrote(ids.slice(0, stored));
    }
    this.ids = ids;
    this.cursor = cursor;
    return true;
  }

  /** All entries behind a cursor, and the next one. Undefined: the cursor no longer fits. */
  private async read(from: string | undefined): Promise<{ entries: Entry[]; cursor: string | undefined } | undefined> {
    const target = { ...this.target, ...(this.storePath ? { storePath: this.storePath } : {}) };
    const entries: Entry[] = [];
    let cursor = from;
    let maxBytes = PAGE.maxBytes;
    for (;;) {
      const page = await this.sdk.read({ ...target, ...PAGE, maxBytes, ...(cursor === undefined ? {} : { cursor }) });
      if (page.kind === "missing") return { entries: [], cursor: undefined };
      if (page.kind === "unavailable") throw new Error(`OpenClaw's transcript cannot be read now: ${page.reason}`);
      if (page.kind === "reset") return undefined;
      entries.push(...page.entries);
      cursor = page.cursor;
      maxBytes = Math.max(PAGE.maxBytes, page.requiredBytes ?? 0);
      if (!page.hasMore && page.requiredBytes === undefined) return { entries, cursor };
    }
  }
}

/** Entries as the service keeps them, each in OpenClaw's own form besides. */
function messagesOf(entries: readonly Entry[], heartbeatFrom: string | undefined): Message[] {
  const begin = heartbeatFrom === undefined ? -1 : entries.findIndex(({ entryId }) => entryId === heartbeatFrom);
  return entries.map((entry, at) => {
    const message = messageOf(entry);
    return begin >= 0 && at >= begin ? { ...message, isHeartbeat: true } : message;
  });
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
