import { equals, toBinary } from "@bufbuild/protobuf";
import { status } from "@grpc/grpc-js";

import { ContextEngineError, QueueFull, TooLarge } from "./errors.js";
import { Spill } from "./spill.js";
import { type AfterTurnRequest, AfterTurnRequestSchema, type SessionRef, SessionRefSchema } from "./types.js";

export const MAX_MESSAGES = 10_000;
export const MAX_BYTES = 64 * 1024 * 1024;
const MAX_REJECTED = 1_000;

/** What a service says of a request that it will never take. */
const FOR_GOOD = new Set([status.INVALID_ARGUMENT, status.ALREADY_EXISTS, status.OUT_OF_RANGE]);

/** A queued request that the service refused for what it is. */
export interface Rejected {
  request: AfterTurnRequest;
  error: ContextEngineError;
}

/** What could not be sent while the service was away, in order, within bounds. */
export class Queue {
  readonly rejected: Rejected[] = [];
  private readonly entries: AfterTurnRequest[];
  private readonly spill: Spill | undefined;
  private messages: number;
  private bytes: number;

  constructor(
    private readonly maxMessages: number,
    private readonly maxBytes: number,
    spillFile: string | undefined,
  ) {
    this.spill = spillFile === undefined ? undefined : new Spill(spillFile);
    this.entries = this.spill?.read() ?? [];
    this.messages = this.entries.reduce((sum, entry) => sum + weight(entry), 0);
    this.bytes = this.entries.reduce((sum, entry) => sum + size(entry), 0);
  }

  /** Queues an entry. Raises QueueFull, and then changes nothing. */
  add(entry: AfterTurnRequest): void {
    const [messages, bytes] = [this.messages + weight(entry), this.bytes + size(entry)];
    if (messages > this.maxMessages || bytes > this.maxBytes) {
      throw new QueueFull(
        `${this.messages} messages of ${this.bytes} bytes wait for the service; ` +
          `${this.maxMessages} and ${this.maxBytes} bytes are the limits`,
        { code: status.RESOURCE_EXHAUSTED, reason: "QUEUE_FULL" },
      );
    }
    try {
      this.spill?.append(entry);
    } catch (error) {
      // The agent goes on without its disk, too.
      const failure = { code: status.RESOURCE_EXHAUSTED, reason: "QUEUE_FULL" };
      throw new QueueFull(`the spill file cannot be written: ${String(error)}`, failure);
    }
    this.entries.push(entry);
    [this.messages, this.bytes] = [messages, bytes];
  }

  /** The oldest entry of a session. */
  first(session: SessionRef): AfterTurnRequest | undefined {
    return this.entries.find((entry) => isOf(entry, session));
  }

  /** The sessions that have entries, the one with the oldest entry first. */
  sessions(): SessionRef[] {
    const named = new Map<string, SessionRef>();
    for (const { session } of this.entries) {
      if (session) named.set(JSON.stringify([session.agentId, session.sessionId, session.sessionKey]), session);
    }
    return [...named.values()];
  }

  /** Takes out an entry that the service has answered. False: another call had sent it as well, and was quicker. */
  sent(entry: AfterTurnRequest): boolean {
    const index = this.entries.indexOf(entry);
    if (index < 0) return false;
    this.entries.splice(index, 1);
    this.messages -= weight(entry);
    this.bytes -= size(entry);
    if (!this.entries.length) this.spill?.clear();
    return true;
  }

  /** Takes out an entry that was refused for good. Raises the error where sending it again may help. */
  failed(entry: AfterTurnRequest, error: unknown): void {
    if (!(error instanceof ContextEngineError)) throw error;
    if (!FOR_GOOD.has(error.code) && !(error instanceof TooLarge)) throw error;
    if (!this.sent(entry)) return;
    this.rejected.push({ request: entry, error });
    if (this.rejected.length > MAX_REJECTED) this.rejected.shift();
  }

  /** How many messages wait, of a session or of all. */
  count(session?: SessionRef): number {
    return this.entries.reduce((sum, entry) => (isOf(entry, session) ? sum + weight(entry) : sum), 0);
  }

  /** Closes the spill file, which keeps what it holds. */
  close(): void {
    this.spill?.close();
  }
}

/** How many messages an entry counts as. */
function weight(entry: AfterTurnRequest): number {
  return Math.max(1, entry.messages.length);
}

function size(entry: AfterTurnRequest): number {
  return toBinary(AfterTurnRequestSchema, entry).length;
}

function isOf(entry: AfterTurnRequest, session: SessionRef | undefined): boolean {
  return session === undefined || (entry.session !== undefined && equals(SessionRefSchema, entry.session, session));
}
