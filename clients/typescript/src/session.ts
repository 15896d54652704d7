import { create, type DescMessage, type DescMethodUnary, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import { status } from "@grpc/grpc-js";

import { Assembly, extend } from "./assembly.js";
import type { Client } from "./client.js";
import { type ContextEngineError, isBorne, QueueFull } from "./errors.js";
import { makeUp } from "./fallback.js";
import { newId, ready } from "./ids.js";
import { MAX_MESSAGES, type Queue } from "./queue.js";
import type { CallOptions } from "./transport.js";
import {
  type AfterTurnRequest,
  AfterTurnRequestSchema,
  type AfterTurnResponse,
  type AssembleRequest,
  AssembleRequestSchema,
  type BootstrapResponse,
  type CallToolResponse,
  type CommitCompactionResponse,
  type CompactResponse,
  ContextEngine,
  type DeleteResponse,
  type DisposeSessionResponse,
  type EndSessionResponse,
  type EndSubagentResponse,
  type ExportResponse,
  type GetStatusResponse,
  type IngestBatchResponse,
  type IngestResponse,
  type ListToolsResponse,
  LiveListSchema,
  type MaintainResponse,
  type Message,
  type PrepareSubagentSpawnResponse,
  ProjectionAction,
  ProjectionTarget,
  type ProjectResponse,
  ProjectResponseSchema,
  type RecordHostChangeResponse,
  type ReportUsageResponse,
  ReportUsageResponseSchema,
  type ResetSessionResponse,
  type RollbackSubagentSpawnResponse,
  type SessionRef,
  Sessions,
  type ShouldCompactResponse,
  type UpdateModelResponse,
  type WatchResponse,
} from "./types.js";

const rpcs = ContextEngine.method;
type Rpcs = typeof rpcs;
/** A request as the handle takes it: without the session, which it sets. */
type Asked<K extends keyof Rpcs> = Omit<MessageInitShape<Rpcs[K]["input"]>, "session" | "$typeName">;
type Of<M> = M extends { input: infer I extends DescMessage } ? Omit<MessageInitShape<I>, "session" | "$typeName"> : never;

/** How one call of a session handle differs from what the client is set to. */
export interface BearingOptions extends CallOptions {
  /** What it does while the service is away: true bears it, false raises. Undefined: as the client does. */
  fallback?: boolean | undefined;
}

/** How one assembly differs. */
export interface AssembleOptions extends BearingOptions {
  /** False asks for everything again. */
  delta?: boolean;
  /**
   * The host's own list, for the degraded case alone: while the service is away the context is made of it, so that a handle
   * that has seen nothing yet does not answer an empty one. It is not sent.
   */
  hostMessages?: readonly Message[] | undefined;
}

/**
 * A handle on one session of an agent. It remembers its last assembly, so that replies carry only what is new.
 *
 * While the service is away, `assemble` answers a context made by the client, marked `degraded`; what is written waits and is
 * sent before the next call; `ingest`, `ingestBatch`, `afterTurn` and `reportUsage` then answer an empty reply. Each of these
 * calls may choose for itself: `fallback: true` bears it, `fallback: false` raises.
 */
export class Session {
  /** What the service is told is held. */
  private held: Assembly | undefined;
  /** The last good assembly, for contexts made without the service. */
  private last: Assembly | undefined;
  /** What was handed over since. */
  private later: Message[] = [];

  constructor(
    private readonly client: Client,
    /** Names the session in every call. */
    readonly ref: SessionRef,
  ) {}

  /** How many messages of the session wait for the service to come back. */
  get pending(): number {
    return this.client.pending(this.ref);
  }

  /** Sends what waits. Raises ContextEngineError where the service is away. */
  flush(options?: CallOptions): Promise<void> {
    return this.client.flush(this.ref, options);
  }

  /** Introduces a host and the session to each other. Optional. */
  bootstrap(request: Asked<"bootstrap"> = {}, options?: CallOptions): Promise<BootstrapResponse> {
    return this.client.contextEngine.bootstrap({ ...request, session: this.ref }, options);
  }

  /**
   * Answers the whole context for one model call. Stores `ingest` first. Raises DeltaMismatch where the reply does not fit what is held; the next call then gets everything.
   */
  async assemble(request: Asked<"assemble"> = {}, options: AssembleOptions = {}): Promise<Assembly> {
    return this.assembled(this.asked(request), options);
  }

  /**
   * Assembles and projects for Codex in one call. Give the turn's `prompt`, and in `projection` the binding of the last
   * projection with the native thread in it; its target need not be set. Store the binding of the answer with the thread.
   */
  async projectCodex(given: Asked<"assemble">, callOptions?: CallOptions): Promise<ProjectResponse> {
    const projection = { ...given.projection, target: ProjectionTarget.CODEX };
    const request = this.asked({ ...given, projection });
    const { degraded, response } = await this.assembled(request, { ...callOptions });
    if (degraded === undefined) return response.projection ?? create(ProjectResponseSchema);
    const { projection: asked, prompt } = request;
    const binding = asked?.binding;
    return create(ProjectResponseSchema, {
      target: ProjectionTarget.CODEX,
      renderer: asked?.renderer ?? "",
      instructions: asked?.baseInstructions ?? "",
      prompt: prompt.flatMap(({ kind }) => (kind.case === "text" ? [kind.value.text] : [])).join("\n"),
      action: binding?.threadId ? ProjectionAction.RESUME : ProjectionAction.START,
      ...(binding ? { binding } : {}),
      warnings: [`degraded: ${degraded.reason}, the context of the session is not in this projection`],
    });
  }

  /** Stores one message durably. The same id with other content is MessageConflict. */
  ingest(request: Asked<"ingest">, options?: BearingOptions): Promise<IngestResponse> {
    return this.write(rpcs.ingest, request, options, ({ message }) => (message ? [message] : []));
  }

  /** Stores messages durably, all or none. */
  ingestBatch(request: Asked<"ingestBatch">, options?: BearingOptions): Promise<IngestBatchResponse> {
    return this.write(rpcs.ingestBatch, request, options, ({ messages }) => messages);
  }

  /** Says that a turn is over and hands over what it added. Conflicts are listed and stop nothing. */
  afterTurn(request: Asked<"afterTurn"> = {}, options?: BearingOptions): Promise<AfterTurnResponse> {
    return this.write(rpcs.afterTurn, request, options, ({ messages }) => messages);
  }

  /** Says what the provider billed for an assembly, or that it refused one for its length. */
  async reportUsage(request: Asked<"reportUsage">, options?: BearingOptions): Promise<ReportUsageResponse> {
    try {
      return await this.behind(rpcs.reportUsage, request, options);
    } catch (error) {
      this.bearing(error, options?.fallback);
      return create(ReportUsageResponseSchema);
    }
  }

  /** Compacts the stored view, or proposes to. */
  compact(request: Asked<"compact"> = {}, options?: CallOptions): Promise<CompactResponse> {
    return this.behind(rpcs.compact, request, options);
  }

  /** Answers whether a compaction is due. */
  shouldCompact(request: Asked<"shouldCompact"> = {}, options?: CallOptions): Promise<ShouldCompactResponse> {
    return this.client.contextEngine.shouldCompact({ ...request, session: this.ref }, options);
  }

  /** Takes or refuses what a compaction with `proposeOnly` proposed. */
  commitCompaction(request: Asked<"commitCompaction">, options?: CallOptions): Promise<CommitCompactionResponse> {
    return this.client.contextEngine.commitCompaction({ ...request, session: this.ref }, options);
  }

  /**
   * Answers the transcript rewrites that the engine would like; with `lend`, jobs for a model that the host can lend only now,
   * whose results go into `completions` of the next call.
   */
  maintain(request: Asked<"maintain"> = {}, options?: CallOptions): Promise<MaintainResponse> {
    return this.client.contextEngine.maintain({ ...request, session: this.ref }, options);
  }

  /** Says what the harness did to its own transcript. */
  recordHostChange(request: Asked<"recordHostChange">, options?: CallOptions): Promise<RecordHostChangeResponse> {
    return this.changing(this.behind(rpcs.recordHostChange, request, options));
  }

  /** Sets the session's model, its window and its factor. */
  updateModel(request: Asked<"updateModel">, options?: CallOptions): Promise<UpdateModelResponse> {
    return this.client.contextEngine.updateModel({ ...request, session: this.ref }, options);
  }

  /** Answers how the session is: counts, tokens, engine, jobs, usage. */
  status(request: Asked<"getStatus"> = {}, options?: CallOptions): Promise<GetStatusResponse> {
    return this.client.contextEngine.getStatus({ ...request, session: this.ref }, options);
  }

  /** Answers the tools that the session's engine offers to the model. */
  listTools(request: Asked<"listTools"> = {}, options?: CallOptions): Promise<ListToolsResponse> {
    return this.client.contextEngine.listTools({ ...request, session: this.ref }, options);
  }

  /** Runs such a tool. Bad arguments and unknown tools answer a JSON error. Sent once. */
  callTool(request: Asked<"callTool">, options?: CallOptions): Promise<CallToolResponse> {
    return this.client.contextEngine.callTool({ ...request, session: this.ref }, options);
  }

  /** Prepares the context of a child of this session before it starts. What waits is sent first: a fork is to show it. */
  prepareSubagent(
    request: Omit<Asked<"prepareSubagentSpawn">, "parent">,
    options?: CallOptions,
  ): Promise<PrepareSubagentSpawnResponse> {
    return this.sent(rpcs.prepareSubagentSpawn, { ...request, parent: this.ref }, options);
  }

  /** Takes a preparation of this session back. Safe twice and after expiry. */
  rollbackSubagent(spawnToken: string, options?: CallOptions): Promise<RollbackSubagentSpawnResponse> {
    return this.client.contextEngine.rollbackSubagentSpawn({ spawnToken, parent: this.ref }, options);
  }

  /** Says that this session, a child, ended. An unknown child is no error. */
  endAsSubagent(request: Omit<Asked<"endSubagent">, "child"> = {}, options?: CallOptions): Promise<EndSubagentResponse> {
    return this.client.contextEngine.endSubagent({ ...request, child: this.ref }, options);
  }

  /** Empties the session's view. Rows stay. */
  reset(request: Asked<"resetSession"> = {}, options?: CallOptions): Promise<ResetSessionResponse> {
    return this.changing(this.behind(rpcs.resetSession, request, options));
  }

  /** Ends the conversation for now. A later write opens it again. */
  end(request: Asked<"endSession"> = {}, options?: CallOptions): Promise<EndSessionResponse> {
    return this.behind(rpcs.endSession, request, options);
  }

  /** Frees what the server holds in memory for the session. */
  dispose(options?: CallOptions): Promise<DisposeSessionResponse> {
    return this.client.contextEngine.disposeSession({ session: this.ref }, options);
  }

  /** Erases the session and everything derived from it, what waits to be sent included. This cannot be undone. */
  delete(request: Of<typeof Sessions.method.delete> = {}, options?: CallOptions): Promise<DeleteResponse> {
    return this.changing(this.behind(Sessions.method.delete, request, options));
  }

  /** Streams the session's rows as they are stored: the session, its messages in order, its summaries. */
  export(request: Of<typeof Sessions.method.export> = {}, options?: CallOptions): AsyncGenerator<ExportResponse, void> {
    return this.client.sessions.export({ ...request, session: this.ref }, options);
  }

  /** Streams what happens to the session, from now or from a resume position. */
  watch(resumePosition = "", options?: CallOptions): AsyncGenerator<WatchResponse, void> {
    const { agentId, sessionId } = this.ref;
    return this.client.sessions.watch({ agentId, sessionId, resumePosition }, options);
  }

  private asked(request: Asked<"assemble">): AssembleRequest {
    return ready(AssembleRequestSchema, create(AssembleRequestSchema, { ...request, session: this.ref }));
  }

  private async assembled(request: AssembleRequest, options: AssembleOptions): Promise<Assembly> {
    const held = options.delta === false ? undefined : this.held;
    request.knownContextHash = held?.response.contextHash ?? new Uint8Array();
    request.knownEpoch = held?.response.contextProjection?.epoch ?? "";
    let response;
    try {
      response = await this.behind(rpcs.assemble, request, options);
    } catch (error) {
      return this.without(request, error, options);
    }
    this.held = undefined;
    this.held = this.last = extend(held?.items ?? [], response);
    this.later = [];
    return this.held;
  }

  /** The context without the service. Raises the error where it is not borne. */
  private without(request: AssembleRequest, error: unknown, { fallback, hostMessages }: AssembleOptions): Assembly {
    const { queue, cause } = this.bearing(error, fallback);
    let unqueued = queue ? 0 : request.ingest.length;
    if (queue && request.ingest.length) {
      try {
        queue.add(this.entry(request.ingest, request.requestId));
      } catch (full) {
        if (!(full instanceof QueueFull)) throw full;
        unqueued = request.ingest.length;
      }
    }
    // What is ingested stands in the host's list already.
    const live = hostMessages && create(LiveListSchema, { messages: [...hostMessages] });
    const shown = live ? { ...request, ingest: [], live } : request;
    const response = makeUp(shown, this.last?.items, this.last?.response, this.later);
    this.handed(request.ingest);
    const reason = cause.reason || status[cause.code];
    return new Assembly(response.items, response, { reason, error: cause, unqueued });
  }

  /** Writes messages, or queues them. */
  private async write<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    given: object,
    options: BearingOptions | undefined,
    messagesOf: (request: MessageShape<I>) => Message[],
  ): Promise<MessageShape<O>> {
    const init = { ...given, session: this.ref } as unknown as MessageInitShape<I>;
    const request = ready(method.input, create(method.input, init));
    const entry: AfterTurnRequest =
      method.input.typeName === AfterTurnRequestSchema.typeName
        ? (request as unknown as AfterTurnRequest)
        : this.entry(messagesOf(request), (request as { requestId?: string }).requestId);
    let reply: MessageShape<O>;
    try {
      reply = await this.behind(method, request, options);
    } catch (error) {
      const { queue } = this.bearing(error, options?.fallback);
      if (!queue) throw error;
      queue.add(entry);
      reply = create(method.output);
    }
    this.handed(entry.messages.slice(Math.max(0, Number(entry.prePromptMessageCount ?? 0n))));
    return reply;
  }

  private entry(messages: Message[], requestId?: string): AfterTurnRequest {
    return create(AfterTurnRequestSchema, { session: this.ref, messages, requestId: requestId || newId() });
  }

  private handed(messages: readonly Message[]): void {
    this.later = [...this.later, ...messages].slice(-MAX_MESSAGES);
  }

  /** The client's queue, if it has one, and the error. Raises the error where it is not borne. */
  private bearing(error: unknown, fallback?: boolean): { queue: Queue | undefined; cause: ContextEngineError } {
    const { queue } = this.client;
    if (!(fallback ?? queue !== undefined) || !isBorne(error)) throw error;
    return { queue, cause: error };
  }

  /** After a change that succeeded the session is not what the last good assembly showed. */
  private async changing<T>(change: Promise<T>): Promise<T> {
    const reply = await change;
    this.last = undefined;
    this.later = [];
    return reply;
  }

  /** Calls behind what waits. */
  private behind<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: object,
    options?: CallOptions,
  ): Promise<MessageShape<O>> {
    return this.sent(method, { ...request, session: this.ref }, options);
  }

  /** Sends what waits, then the request, within one deadline. */
  private async sent<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: object,
    options: CallOptions = {},
  ): Promise<MessageShape<O>> {
    const deadline = this.client.transport.deadline(method, options);
    const left = () => ({ timeoutMs: Math.max(1, deadline - Date.now()), signal: options.signal });
    await this.client.flush(this.ref, left());
    return this.client.transport.unary(method, request as never, left());
  }
}
