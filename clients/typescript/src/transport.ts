import { setTimeout as sleep } from "node:timers/promises";

import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodBiDiStreaming,
  type DescMethodClientStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import {
  type CallOptions as GrpcOptions,
  type ChannelCredentials,
  type ChannelOptions,
  Client as Channel,
  Metadata,
  type ServiceError,
  status,
} from "@grpc/grpc-js";

import { SESSION_HEADER, sessionOf } from "./affinity.js";
import { Absence, Attempts } from "./attempts.js";
import { Breaker, HEALTH, type Heard, PROBE_MS } from "./breaker.js";
import { defaultTimeout, isSafeTwice } from "./calls.js";
import { ContextEngineError, InvalidField, typed } from "./errors.js";
import { ready, unsayable } from "./ids.js";
import { traceContext } from "./trace.js";

/** How one call differs from what the client is set to. */
export interface CallOptions {
  /** The deadline in milliseconds. Infinity: none. Undefined: the client's. */
  timeoutMs?: number | undefined;
  /** Cancels the call. */
  signal?: AbortSignal | undefined;
}

type Requests<Desc extends DescMessage> = Iterable<MessageInitShape<Desc>> | AsyncIterable<MessageInitShape<Desc>>;

type Rpc<M extends DescMethod> =
  M extends DescMethodUnary<infer I, infer O>
    ? (request: MessageInitShape<I>, options?: CallOptions) => Promise<MessageShape<O>>
    : M extends DescMethodServerStreaming<infer I, infer O>
      ? (request: MessageInitShape<I>, options?: CallOptions) => AsyncGenerator<MessageShape<O>, void>
      : M extends DescMethodClientStreaming<infer I, infer O>
        ? (requests: Requests<I>, options?: CallOptions) => Promise<MessageShape<O>>
        : M extends DescMethodBiDiStreaming<infer I, infer O>
          ? (requests: Requests<I>, options?: CallOptions) => AsyncGenerator<MessageShape<O>, void>
          : never;

/** The rpcs of a service as functions. Streams are iterated, and end when the iteration is left. */
export type Rpcs<S extends DescService> = { [K in keyof S["method"]]: Rpc<S["method"][K]> };

/** What a connection is set to. */
export interface TransportOptions {
  token: string;
  timeoutsMs: Record<string, number>;
  retryForMs: number;
  /** Whether a service that is known to be away is not waited for again. */
  breaker: boolean;
  metadata?: (() => Record<string, string>) | undefined;
}

/** `Service.Rpc`. */
export function nameOf(method: DescMethod): string {
  return `${method.parent.name}.${method.name}`;
}

/** A connection to a server. */
export class Transport {
  private readonly channel: Channel;
  private readonly absence = new Absence();
  /** Undefined: each call waits for the service by itself. */
  private readonly breaker: Breaker | undefined;
  /** What ends each call that runs: gRPC's channel lets them go on. */
  private readonly running = new Set<() => void>();
  private readonly closing = new AbortController();
  /** Aborted when this is closed. */
  readonly closed: AbortSignal = this.closing.signal;

  constructor(
    target: string,
    credentials: ChannelCredentials,
    channelOptions: ChannelOptions,
    private readonly options: TransportOptions,
  ) {
    this.channel = new Channel(target, credentials, channelOptions);
    this.breaker = options.breaker ? new Breaker(() => this.question()) : undefined;
  }

  /** Ends calls that run. */
  close(): void {
    this.closing.abort();
    for (const cancel of [...this.running]) cancel();
    this.channel.close();
  }

  /**
   * Throws where the call was cancelled before anything of it was sent. gRPC would send it all the same, and tell the server
   * afterwards: it might be done behind the caller's next one.
   */
  private wanted(signal: AbortSignal | undefined): void {
    const why = this.closed.aborted ? "the client was closed" : "cancelled before it was sent";
    if (this.isOver(signal)) throw new ContextEngineError(why, { code: status.CANCELLED, violations: [] });
  }

  /** Whether nobody wants a call any more. */
  private isOver(signal: AbortSignal | undefined): boolean {
    return this.closed.aborted || (signal?.aborted ?? false);
  }

  /** Cancels a call where its signal or this transport says so, until what is answered is called. */
  private cancelling(call: { cancel(): void }, signal?: AbortSignal): () => void {
    const cancel = () => call.cancel();
    signal?.addEventListener("abort", cancel);
    this.running.add(cancel);
    return () => {
      signal?.removeEventListener("abort", cancel);
      this.running.delete(cancel);
    };
  }

  /** The rpcs of a service. */
  service<S extends DescService>(service: S): Rpcs<S> {
    const rpcs: Record<string, unknown> = {};
    for (const method of service.methods) {
      rpcs[method.localName] = {
        unary: (request: never, options?: CallOptions) => this.unary(method as never, request, options),
        server_streaming: (request: never, options?: CallOptions) => this.replies(method, request, undefined, options),
        client_streaming: (requests: never, options?: CallOptions) => this.collected(method, requests, options),
        bidi_streaming: (requests: never, options?: CallOptions) => this.replies(method, undefined, requests, options),
      }[method.methodKind];
    }
    return rpcs as Rpcs<S>;
  }

  /** When a call must end, in milliseconds since 1970. Infinity: never. */
  deadline(method: DescMethod, options: CallOptions | undefined): number {
    const name = nameOf(method);
    return Date.now() + (options?.timeoutMs ?? this.options.timeoutsMs[name] ?? defaultTimeout(name));
  }

  /** One request, one reply. */
  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    given: MessageInitShape<I>,
    options?: CallOptions,
  ): Promise<MessageShape<O>> {
    const deadline = this.deadline(method, options);
    const request = checked(ready(method.input, create(method.input, given)));
    const retryFor = isSafeTwice(nameOf(method)) ? this.options.retryForMs : 0;
    const sent = () => this.sent(method, request, deadline, retryFor, options?.signal);
    const { breaker } = this;
    if (!breaker) return sent();
    this.wanted(options?.signal);
    const trial = await breaker.admit(() => this.isOver(options?.signal));
    try {
      const reply = await sent();
      breaker.answered();
      return reply;
    } catch (error) {
      breaker.failed(error, trial);
      throw error;
    }
  }

  /** As often as it may help. */
  private async sent<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageShape<I>,
    deadline: number,
    retryFor: number,
    signal: AbortSignal | undefined,
  ): Promise<MessageShape<O>> {
    const attempts = new Attempts(deadline, retryFor, this.absence);
    for (;;) {
      try {
        const reply = await this.once(method, request, deadline, signal);
        this.absence.end();
        return reply;
      } catch (raised) {
        const error = typed(raised);
        const pause = attempts.pause(error);
        if (pause === undefined) throw error;
        await this.sleep(pause, signal);
      }
    }
  }

  /** Between two attempts. Where the call is cancelled meanwhile, the attempt behind the pause says so. */
  private async sleep(pause: number, signal: AbortSignal | undefined): Promise<void> {
    if (this.isOver(signal)) return;
    const sleeping = new AbortController();
    const over = this.cancelling({ cancel: () => sleeping.abort() }, signal);
    await sleep(pause, undefined, { signal: sleeping.signal }).catch(() => undefined);
    over();
  }

  private async once<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageShape<I>,
    deadline: number,
    signal: AbortSignal | undefined,
  ): Promise<MessageShape<O>> {
    this.wanted(signal);
    return new Promise((resolve, reject) => {
      const call = this.channel.makeUnaryRequest(
        ...this.wire(method),
        request,
        this.metadata(sessionOf(request)),
        grpcOptions(deadline),
        (error: ServiceError | null, reply?: MessageShape<O>) => {
          over();
          if (error) reject(error);
          else resolve(reply as MessageShape<O>);
        },
      );
      const over = this.cancelling(call, signal);
    });
  }

  /** Asks whether the server serves. */
  private question(): Promise<Heard> {
    return new Promise((resolve) => {
      const bytes = (value: Buffer) => value;
      const options = grpcOptions(Date.now() + PROBE_MS);
      const call = this.channel.makeUnaryRequest(
        HEALTH,
        bytes,
        bytes,
        Buffer.alloc(0),
        this.metadata(),
        options,
        (error, reply) => {
          over();
          resolve(reply === undefined ? { code: error?.code ?? status.UNKNOWN } : { reply });
        },
      );
      const over = this.cancelling(call);
    });
  }

  /** Many replies, to one request or to many. */
  private async *replies<I extends DescMessage, O extends DescMessage>(
    method: DescMethod & { input: I; output: O },
    given: MessageInitShape<I> | undefined,
    requests: Requests<I> | undefined,
    options?: CallOptions,
  ): AsyncGenerator<MessageShape<O>, void> {
    this.wanted(options?.signal);
    const wired = this.wire<I, O>(method);
    const end = grpcOptions(this.deadline(method, options));
    const both = given ? undefined : this.channel.makeBidiStreamRequest(...wired, this.metadata(), end);
    const request = checked(ready(method.input, create(method.input, given)));
    const metadata = () => this.metadata(sessionOf(request));
    const call = both ?? this.channel.makeServerStreamRequest(...wired, request, metadata(), end);
    call.on("error", () => undefined); // told by the iteration; a cancelled call has nobody else to tell
    const over = this.cancelling(call, options?.signal);
    let failed: unknown;
    const sending =
      requests === undefined || both === undefined
        ? undefined
        : this.sendAll(method.input, requests, both).catch((error: unknown) => {
            failed = error;
            call.cancel();
          });
    try {
      for await (const reply of call) yield reply as MessageShape<O>;
    } catch (error) {
      throw failed ?? typed(error);
    } finally {
      over();
      call.cancel();
      void sending;
    }
  }

  /** Many requests, one reply. */
  private async collected<I extends DescMessage, O extends DescMessage>(
    method: DescMethod & { input: I; output: O },
    requests: Requests<I>,
    options?: CallOptions,
  ): Promise<MessageShape<O>> {
    // Read before anything is sent: what fails in the caller's list sends nothing.
    const all: MessageShape<I>[] = [];
    for await (const request of requests) all.push(checked(create(method.input, request)));
    const signal = options?.signal;
    this.wanted(signal);
    return new Promise((resolve, reject) => {
      const call = this.channel.makeClientStreamRequest(
        ...this.wire<I, O>(method),
        this.metadata(all[0] && sessionOf(all[0])),
        grpcOptions(this.deadline(method, options)),
        (error: ServiceError | null, reply?: MessageShape<O>) => {
          over();
          if (error) reject(typed(error));
          else resolve(reply as MessageShape<O>);
        },
      );
      const over = this.cancelling(call, signal);
      for (const request of all) call.write(request);
      call.end();
    });
  }

  private async sendAll<I extends DescMessage>(
    input: I,
    requests: Requests<I>,
    call: { write(request: MessageShape<I>): boolean; end(): void },
  ): Promise<void> {
    for await (const request of requests) call.write(checked(create(input, request)));
    call.end();
  }

  /** The path of an rpc, and how its messages are written and read. */
  private wire<I extends DescMessage, O extends DescMessage>(method: DescMethod & { input: I; output: O }) {
    return [
      `/${method.parent.typeName}/${method.name}`,
      (request: MessageShape<I>) => Buffer.from(toBinary(method.input, request)),
      (reply: Buffer) => fromBinary(method.output, reply),
    ] as const;
  }

  private metadata(session?: string): Metadata {
    const metadata = new Metadata();
    const named: Record<string, string> = session === undefined ? {} : { [SESSION_HEADER]: session };
    const given = { ...named, ...this.options.metadata?.() };
    const pairs = "traceparent" in given ? given : { ...traceContext(), ...given };
    for (const [name, value] of Object.entries(pairs)) metadata.add(name, value);
    if (this.options.token) metadata.set("authorization", `Bearer ${this.options.token}`);
    return metadata;
  }
}

function grpcOptions(deadline: number): GrpcOptions {
  return Number.isFinite(deadline) ? { deadline } : {};
}

/** The request, whose texts are all Unicode. Raises InvalidField. */
function checked<M extends object>(request: M): M {
  const field = unsayable(request);
  if (field === undefined) return request;
  const description = "has half a surrogate pair, which UTF-8 cannot say: give valid text, or bytes in `native`";
  throw new InvalidField(`${field} ${description}`, {
    code: status.INVALID_ARGUMENT,
    reason: "INVALID_FIELD",
    violations: [{ field, description }],
  });
}
