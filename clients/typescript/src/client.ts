import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type ChannelCredentials, type ChannelOptions, credentials } from "@grpc/grpc-js";

import { isLoopback, RETRY_FOR, serviceConfig } from "./calls.js";
import { type Complete, Lending } from "./lending.js";
import { MAX_BYTES, MAX_MESSAGES, Queue, type Rejected } from "./queue.js";
import { Session } from "./session.js";
import { type CallOptions, nameOf, type Rpcs, Transport } from "./transport.js";
import {
  type AfterTurnRequest,
  type AttachRequest_HelloSchema,
  type AttachResponse_Job,
  ContextEngine,
  Engines,
  Projection,
  Recall,
  Runtime,
  type SessionRef,
  SessionRefSchema,
  Sessions,
} from "./types.js";

const SERVICES = [ContextEngine, Sessions, Engines, Recall, Projection, Runtime];

/** What a client is set to. */
export interface ClientOptions {
  /** The bearer token. It goes unencrypted only to this machine, unless `insecure` is set. */
  token?: string;
  /** True: TLS with the system's root certificates. */
  tls?: boolean;
  /** gRPC's own credentials, for mTLS or roots of one's own. Excludes `tls`. */
  credentials?: ChannelCredentials;
  /** True lets the token travel unencrypted to another machine. */
  insecure?: boolean;
  /** Deadlines in milliseconds by `Service.Rpc`; Infinity: none. */
  timeoutsMs?: Record<string, number>;
  /**
   * How long unary calls are sent again while the service is away (UNAVAILABLE), counted for all of them from when it went,
   * never beyond a deadline. 10 s; 0: they are not.
   */
  retryForMs?: number;
  /**
   * True: once a call has found the service dead or hung, each further one waits 50 ms at most for it and fails as that one
   * did, until the service answers a question that goes on beside them (grpc.health.v1). Where calls hang all the same, it
   * is asked the later each time, after a minute at most. Off by default.
   */
  breaker?: boolean;
  /** Called before every rpc, answers metadata to send along. */
  metadata?: () => Record<string, string>;
  /** The largest request and reply. 64 MiB by default. */
  maxMessageBytes?: number;
  /** Between pings on an idle connection. A server takes one every five minutes; 310 seconds by default. */
  keepaliveMs?: number;
  /** What session handles do while the service is away: true, the default, bears it, false raises. */
  fallback?: boolean;
  /** The most messages that wait for the service to come back. 10,000 by default. */
  maxQueuedMessages?: number;
  /** The most bytes that wait for the service to come back. 64 MiB by default. */
  maxQueuedBytes?: number;
  /** A file that outlives this process with what waits. One client at a time. */
  spillFile?: string;
  /** Further gRPC channel options; they win over those set here. */
  channelOptions?: ChannelOptions;
}

/** How a model is lent: the harness, what it lends and how much at once, and when to end. */
export type LendOptions = MessageInitShape<typeof AttachRequest_HelloSchema> & {
  /** Ends the lending. */
  signal?: AbortSignal;
  /** Is told of each job that `complete` failed on. By default it goes to the console. */
  failed?: (job: AttachResponse_Job, error: unknown) => void;
};

/** A client of one server. Connects at the first call. Close it when done. */
export class Client {
  /** The life of sessions, and the context of each model call. */
  readonly contextEngine: Rpcs<typeof ContextEngine>;
  /** Listing, moving, erasing and watching sessions. */
  readonly sessions: Rpcs<typeof Sessions>;
  /** The engines that the server hosts. */
  readonly engines: Rpcs<typeof Engines>;
  /** Finding and bringing back what an assembly does not show. */
  readonly recall: Rpcs<typeof Recall>;
  /** Rendering contexts for harnesses and providers. */
  readonly projection: Rpcs<typeof Projection>;
  /** Lending a model to the server. */
  readonly runtime: Rpcs<typeof Runtime>;
  /** @internal */
  readonly transport: Transport;
  /** What waits for the service to come back. Undefined: nothing ever does. @internal */
  readonly queue: Queue | undefined;

  constructor(target = "127.0.0.1:50051", options: ClientOptions = {}) {
    const methods = SERVICES.flatMap((service) => service.methods);
    const names = methods.map(nameOf);
    const streams = methods.filter(({ methodKind }) => methodKind !== "unary").map(nameOf);
    const unknown = Object.keys(options.timeoutsMs ?? {}).filter((name) => !names.includes(name));
    if (unknown.length) throw new RangeError(`timeoutsMs: unknown rpc ${unknown.join(", ")}`);
    const { retryForMs = RETRY_FOR } = options;
    if (!(retryForMs >= 0)) throw new RangeError(`retryForMs is ${retryForMs}: it must be 0 or above`);
    if (options.tls && options.credentials) throw new RangeError("credentials excludes tls: give one of them");
    const encrypted = options.credentials ?? (options.tls ? credentials.createSsl() : undefined);
    if (options.token && !encrypted && !options.insecure && !isLoopback(target)) {
      throw new RangeError(
        `the token would travel unencrypted to ${target}: set tls or credentials, ` +
          "or insecure where the network is trusted",
      );
    }
    const { maxQueuedMessages = MAX_MESSAGES, maxQueuedBytes = MAX_BYTES } = options;
    this.queue =
      options.fallback === false ? undefined : new Queue(maxQueuedMessages, maxQueuedBytes, options.spillFile);
    const limit = options.maxMessageBytes ?? 64 * 1024 * 1024;
    this.transport = new Transport(
      target,
      encrypted ?? credentials.createInsecure(),
      {
        "grpc.max_send_message_length": limit,
        "grpc.max_receive_message_length": limit,
        "grpc.keepalive_time_ms": options.keepaliveMs ?? 310_000,
        "grpc.service_config": serviceConfig(streams),
        // What is too large to be held is not sent again.
        "grpc.per_rpc_retry_buffer_size": limit,
        "grpc.retry_buffer_size": 2 * limit,
        // A restarted server is found again within about a second.
        "grpc.initial_reconnect_backoff_ms": 100,
        "grpc.max_reconnect_backoff_ms": 1_000,
        ...options.channelOptions,
      },
      {
        token: options.token ?? "",
        timeoutsMs: options.timeoutsMs ?? {},
        retryForMs,
        breaker: options.breaker ?? false,
        metadata: options.metadata,
      },
    );
    this.contextEngine = this.transport.service(ContextEngine);
    this.sessions = this.transport.service(Sessions);
    this.engines = this.transport.service(Engines);
    this.recall = this.transport.service(Recall);
    this.projection = this.transport.service(Projection);
    this.runtime = this.transport.service(Runtime);
  }

  /** A handle on one session, which need not exist yet. Nothing is sent. One of `sessionId` and `sessionKey` is required. */
  session(ref: MessageInitShape<typeof SessionRefSchema>): Session {
    if (!ref.sessionId && !ref.sessionKey) throw new RangeError("a session needs sessionId or sessionKey");
    return new Session(this, create(SessionRefSchema, ref));
  }

  /**
   * Lends a model to the server until the signal is aborted or this client is closed: each job is given to `complete`, which
   * answers a text, or a completion that says more. What it raises is told to the server as a failure that may pass, and to
   * `failed` here. A stream that breaks is opened anew, and answers that were not received go out again. Raises the error that
   * no new stream would mend.
   */
  async lend(
    complete: Complete,
    {
      signal = new AbortController().signal,
      failed = (job, error) => console.warn(`contextengine: the lent model failed on job ${job.jobId}`, error),
      ...hello
    }: LendOptions = {},
  ): Promise<void> {
    await new Lending(this.runtime, hello, complete, failed).run(AbortSignal.any([signal, this.transport.closed]));
  }

  /** How many messages wait for the service to come back, of a session or of all. */
  pending(session?: SessionRef): number {
    return this.queue?.count(session) ?? 0;
  }

  /** What had waited and was then refused for what it is, the newest last; the last thousand. */
  get rejected(): readonly Rejected[] {
    return this.queue?.rejected ?? [];
  }

  /**
   * Sends what waits, of a session or of all, the oldest first. Raises ContextEngineError where some of it cannot be sent, of
   * several sessions the first one's: it goes on with the others, all within one deadline.
   */
  async flush(session?: SessionRef, options: CallOptions = {}): Promise<void> {
    const { queue } = this;
    if (!queue || !this.pending(session)) return;
    const deadline = this.transport.deadline(ContextEngine.method.afterTurn, options);
    const { signal } = options;
    const errors: unknown[] = [];
    for (const one of session ? [session] : queue.sessions()) {
      try {
        await this.flushOf(queue, one, deadline, signal);
      } catch (error) {
        errors.push(error);
        if (signal?.aborted || Date.now() >= deadline) break;
      }
    }
    if (errors.length) throw errors[0];
  }

  /**
   * Calls need not wait for each other: an entry goes only after the one before it was answered, and one that two calls send is
   * stored once.
   */
  private async flushOf(queue: Queue, session: SessionRef, deadline: number, signal: AbortSignal | undefined): Promise<void> {
    let entry: AfterTurnRequest | undefined;
    while ((entry = queue.first(session)) !== undefined) {
      try {
        await this.contextEngine.afterTurn(entry, { timeoutMs: Math.max(1, deadline - Date.now()), signal });
      } catch (error) {
        queue.failed(entry, error);
        continue;
      }
      queue.sent(entry);
    }
  }

  /** Ends calls that run. What waits to be sent stays in the spill file, if there is one. */
  close(): void {
    this.transport.close();
    this.queue?.close();
  }
}
