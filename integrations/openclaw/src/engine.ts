import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type CallOptions, ContextEngineError, type Session } from "@contextengine/client";
import {
  AfterTurnResponse_Status as Status,
  type CompactResponse,
  CompactionTarget,
  ContextMode,
  SubagentEndReason,
  type UsageSchema,
} from "@contextengine/client/types";

import { alone, budgetOf, resultOf } from "./context.js";
import type {
  AgentMessage,
  AssembleParams,
  AssembleResult,
  CommitParams,
  CompactParams,
  CompactResult,
  EndReason,
  Logger,
  Named,
  Sdk,
  SpawnParams,
} from "./openclaw.js";
import { agentOf, type Service, type Talk } from "./service.js";

export const ENGINE = "contextengine";
const VERSION = "0.1.0";
/** What OpenClaw does with an engine, in its embedded runner or its harness for Codex. */
const CAPABILITIES = [
  "bootstrap",
  "assemble-before-prompt",
  "after-turn",
  "compact",
  "compacts-transcript",
  "thread-bootstrap-projection",
];
const HOST = { hostId: "openclaw", capabilities: CAPABILITIES };
/** How long a turn that was accepted is handed over, in milliseconds. OpenClaw keeps it where that fails. */
const COMMIT_MS = 15_000;
/** Code points of a focus that the service takes. */
const MOST_FOCUS = 800;

const REASONS: Record<EndReason, SubagentEndReason> = {
  completed: SubagentEndReason.COMPLETED,
  deleted: SubagentEndReason.DELETED,
  released: SubagentEndReason.RELEASED,
  swept: SubagentEndReason.SWEPT,
};

/**
 * contextengine, as OpenClaw calls a context engine; OpenClaw makes one for each turn. Nothing that it calls within a turn
 * raises: an engine that does is not asked again as long as OpenClaw runs. What must not be lost does: a turn that is not
 * committed stays in OpenClaw's outbox.
 */
export class Engine {
  readonly info;
  /** The first budget of the turn and its model: later calls of a turn take less off, and would begin another epoch each. */
  private turn: { budget: number; model: string | undefined } | undefined;
  /**
   * The transcript before this turn. What the turn adds is committed at its end, and OpenClaw hides it only from the first call
   * of the turn: where the service was away then, the turn goes on without it.
   */
  private before: "unread" | "brought" | "away" = "unread";

  constructor(
    private readonly service: Service,
    private readonly sdk: Pick<Sdk, "memory" | "delegate">,
    private readonly logger: Logger,
  ) {
    this.info = {
      id: ENGINE,
      name: "contextengine",
      version: VERSION,
      ownsCompaction: service.settings.compaction === "service",
      transcriptSemantics: {
        currentTurnFence: "before-current-turn-entry-v1",
        turnAdvancementIdempotency: "atomic-idempotent-v1",
      },
    };
  }

  /** A run begins: what the transcript holds is stored. */
  async bootstrap(named: Named): Promise<{ bootstrapped: boolean; reason?: string }> {
    this.before = "unread";
    const error = await this.trying(() => this.bring(this.service.talk(named)));
    return error ? { bootstrapped: false, reason: error.message } : { bootstrapped: true };
  }

  /** OpenClaw hands turns over by `commitTurn`. */
  async ingest(): Promise<{ ingested: boolean }> {
    return { ingested: false };
  }

  /** What the model is shown before the turn's own messages. */
  async assemble(params: AssembleParams): Promise<AssembleResult> {
    const { messages, availableTools = new Set(), citationsMode, model } = params;
    const beside = this.remembered(params);
    const tokens = this.room(params);
    const talk = this.service.talk(params);
    talk.budget = tokens ?? talk.budget;
    let result: AssembleResult | undefined;
    if (this.before !== "away") {
      await this.trying(async () => {
        if (this.before === "unread") await this.bring(talk);
        const budget = budgetOf(tokens, beside);
        const more = { model: model ?? "", availableTools: [...availableTools], citationsMode: citationsMode ?? "" };
        const reply = await talk.transcript.session.assemble({ ...(budget ? { budget } : {}), ...more }, this.patience);
        result = resultOf(reply, messages, beside);
      });
    }
    if (this.before === "unread") this.before = "away";
    return result ?? alone(messages, tokens, beside);
  }

  /** Stores an accepted turn. Raises where that fails: OpenClaw keeps the turn then, and comes again. */
  async commitTurn(params: CommitParams): Promise<{ status: "committed" | "duplicate" }> {
    const status = await this.service.answered((signal) => this.committed(params, { timeoutMs: COMMIT_MS, signal }));
    this.before = "unread";
    this.turn = undefined;
    return { status: status === Status.DUPLICATE ? "duplicate" : "committed" };
  }

  /** Makes the history smaller, here or in OpenClaw. */
  async compact(params: CompactParams): Promise<CompactResult> {
    const talk = this.service.talk(params);
    const manual = params.runtimeContext?.["trigger"] === "manual";
    if (this.service.settings.compaction === "openclaw") return this.delegated(talk, params);
    let reply: CompactResponse | undefined;
    const error = await this.trying(async () => {
      // Amid a turn the transcript has the turn's own messages, which are OpenClaw's until it is accepted.
      if (manual) await this.bring(talk);
      const what = asked(params, talk);
      reply = await this.service.answered((signal) => talk.transcript.session.compact(what, { signal }), params.abortSignal);
    });
    if (params.abortSignal?.aborted) throw params.abortSignal.reason;
    if (!reply) return { ok: false, compacted: false, reason: `contextengine: ${error?.message}` };
    if (reply.delegation) return this.delegated(talk, params);
    const { ok, compacted, reason, tokensBefore, tokensAfter, summaryText, firstKeptMessageId } = reply;
    return {
      ok,
      compacted,
      reason,
      result: {
        tokensBefore: Number(tokensBefore),
        ...(tokensAfter === undefined ? {} : { tokensAfter: Number(tokensAfter) }),
        ...(summaryText ? { summary: summaryText } : {}),
        ...(firstKeptMessageId ? { firstKeptEntryId: firstKeptMessageId } : {}),
      },
    };
  }

  /** A child begins. A service that is away does not stop it: it begins without what its parent knew. */
  async prepareSubagentSpawn(params: SpawnParams): Promise<{ rollback(): Promise<void> } | undefined> {
    const { parentSessionKey, childSessionKey, parentSessionId = "", childSessionId = "", ttlMs } = params;
    let token: string | undefined;
    const known = parentSessionId ? this.service.talk({ sessionId: parentSessionId, sessionKey: parentSessionKey }) : undefined;
    const parent = known?.transcript.session ?? this.handle(parentSessionKey);
    const isFork = params.contextMode === "fork";
    const sessionId = (isFork && childSessionId && known?.transcript.inCopy(childSessionId)) || childSessionId;
    await this.trying(async () => {
      const child = { agentId: agentOf(childSessionKey), sessionId, sessionKey: childSessionKey };
      const contextMode = isFork ? ContextMode.FORK : ContextMode.ISOLATED;
      const ttl = ttlMs === undefined ? {} : { ttl: durationFromMs(ttlMs) };
      const prepared = await parent.prepareSubagent({ child, contextMode, ...ttl }, this.patience);
      token = prepared.spawnToken;
    });
    if (token === undefined) return undefined;
    const prepared = token;
    return { rollback: async () => void (await parent.rollbackSubagent(prepared, this.patience)) };
  }

  /** A child ended, maybe one that was never prepared. */
  async onSubagentEnded({ childSessionKey, reason }: { childSessionKey: string; reason: EndReason }): Promise<void> {
    await this.trying(() => this.handle(childSessionKey).endAsSubagent({ reason: REASONS[reason] }, this.patience));
  }

  /** The client outlives the engine. */
  async dispose(): Promise<void> {}

  private get patience(): { timeoutMs: number } {
    return { timeoutMs: this.service.settings.patienceMs };
  }

  private handle(sessionKey: string) {
    return this.service.client.session({ agentId: agentOf(sessionKey), sessionKey });
  }

  /** What the memory plugin says. Another's, which may fail. */
  private remembered({ availableTools = new Set(), citationsMode, sessionKey }: AssembleParams): string {
    try {
      return this.sdk.memory({ availableTools, citationsMode, agentSessionKey: sessionKey }) ?? "";
    } catch (error) {
      this.warned(error);
      return "";
    }
  }

  /** Tokens for messages: the turn's first budget, as long as it fits. */
  private room({ tokenBudget, model }: AssembleParams): number | undefined {
    if (tokenBudget === undefined) return this.turn?.budget;
    if (this.turn === undefined || this.turn.model !== model) this.turn = { budget: tokenBudget, model };
    return Math.min(this.turn.budget, tokenBudget);
  }

  private async committed(params: CommitParams, options: { timeoutMs: number; signal: AbortSignal }): Promise<Status> {
    const talk = this.service.talk(params);
    const { advancementKey, admission, terminal, isHeartbeat = false } = params;
    const session = await talk.transcript.bring({ ...options, turn: { from: admission.entryId, to: terminal.entryId, isHeartbeat } });
    await this.introduced(talk, session, options);
    const usage = usageOf(params.messages);
    return (await session.afterTurn({ advancementKey, isHeartbeat, ...(usage ? { usage } : {}) }, options)).status;
  }

  private async bring(talk: Talk): Promise<void> {
    await this.introduced(talk, await talk.transcript.bring(this.patience), this.patience);
    this.before = "brought";
  }

  /** Says of each session once who the host is, and hears which engine serves it. */
  private async introduced(talk: Talk, session: Session, options: CallOptions): Promise<void> {
    if (talk.introduced === session) return;
    talk.engine = (await session.bootstrap({ host: HOST }, options)).engine;
    talk.introduced = session;
  }

  /** OpenClaw compacts by itself; what it did is told to the service. */
  private async delegated(talk: Talk, params: CompactParams): Promise<CompactResult> {
    const done = await this.sdk.delegate(params);
    const { summary, firstKeptEntryId } = done.result ?? {};
    if (!done.compacted || !summary || !firstKeptEntryId) return done;
    await this.trying(async () => {
      const value = { summary, firstKeptMessageId: firstKeptEntryId };
      await talk.transcript.session.recordHostChange({ change: { case: "compacted", value } }, this.patience);
    });
    return done;
  }

  /** A call that a turn survives. Answers what it failed with. */
  private async trying(call: () => Promise<unknown>): Promise<Error | undefined> {
    try {
      await call();
    } catch (error) {
      return this.warned(error);
    }
    return undefined;
  }

  private warned(error: unknown): Error {
    const found = error instanceof Error ? error : new Error(String(error));
    this.logger.warn(`contextengine: ${found instanceof ContextEngineError ? found.message : (found.stack ?? found.message)}`);
    return found;
  }
}

/** What a compaction is asked for. The budget is that of the next turn where one is known. */
function asked(params: CompactParams, talk: Talk) {
  const { tokenBudget, force = false, currentTokenCount, compactionTarget, customInstructions = "", runtimeContext } = params;
  const given = [tokenBudget, talk.budget].filter((tokens) => tokens !== undefined);
  const budget = given.length ? budgetOf(Math.min(...given), "") : undefined;
  return {
    force,
    focus: [...customInstructions].slice(0, MOST_FOCUS).join(""),
    target: compactionTarget === "threshold" ? CompactionTarget.THRESHOLD : CompactionTarget.BUDGET,
    trigger: String(runtimeContext?.["trigger"] ?? ""),
    forceReason: String(runtimeContext?.["forceReason"] ?? ""),
    ...(budget ? { budget } : {}),
    ...(currentTokenCount === undefined ? {} : { currentTokenCount: BigInt(Math.floor(currentTokenCount)) }),
  };
}

/** What the last call of a turn was billed. */
function usageOf(messages: readonly AgentMessage[]): MessageInitShape<typeof UsageSchema> | undefined {
  const last = messages.findLast((message) => message["role"] === "assistant")?.["usage"];
  const told = (last ?? {}) as Record<string, unknown>;
  const tokens = (name: string) => {
    const value = told[name];
    return typeof value === "number" && value >= 0 ? BigInt(Math.floor(value)) : 0n;
  };
  if (!tokens("input") && !tokens("cacheRead")) return undefined;
  return {
    inputTokens: tokens("input"),
    outputTokens: tokens("output"),
    cacheReadTokens: tokens("cacheRead"),
    cacheWriteTokens: tokens("cacheWrite"),
    totalTokens: tokens("totalTokens"),
  };
}
