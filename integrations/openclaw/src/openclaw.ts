/** OpenClaw's shapes, as far as this plugin reads or answers them. */
import type { Json } from "@contextengine/client/formats";

/** A message of OpenClaw: role, content, timestamp, and more by role. */
export type AgentMessage = Json;

/** Which session, as most calls name it. */
export interface Named {
  sessionId: string;
  sessionKey?: string;
  sessionTarget?: { agentId?: string; storePath?: string };
}

export interface AssembleParams extends Named {
  messages: AgentMessage[];
  /** Tokens for messages; of the later calls of a turn less is taken off than of the first. */
  tokenBudget?: number;
  availableTools?: Set<string>;
  citationsMode?: string;
  model?: string;
}

export interface AssembleResult {
  messages: AgentMessage[];
  estimatedTokens: number;
  systemPromptAddition?: string;
  promptAuthority?: "assembled" | "preassembly_may_overflow";
  contextProjection?: { mode: "per_turn" | "thread_bootstrap"; epoch?: string; fingerprint?: string };
}

export interface CommitParams extends Named {
  advancementKey: string;
  admission: { entryId: string };
  terminal: { entryId: string };
  messages: AgentMessage[];
  isHeartbeat?: boolean;
}

export interface CompactParams extends Named {
  agentId?: string;
  tokenBudget?: number;
  force?: boolean;
  currentTokenCount?: number;
  compactionTarget?: "budget" | "threshold";
  customInstructions?: string;
  runtimeContext?: Json;
  abortSignal?: AbortSignal;
}

export interface CompactResult {
  ok: boolean;
  compacted: boolean;
  reason?: string;
  result?: { summary?: string; firstKeptEntryId?: string; tokensBefore: number; tokensAfter?: number };
}

export interface SpawnParams {
  parentSessionKey: string;
  childSessionKey: string;
  contextMode?: "isolated" | "fork";
  parentSessionId?: string;
  childSessionId?: string;
  ttlMs?: number;
}

export type EndReason = "deleted" | "completed" | "swept" | "released";

export interface TranscriptTarget {
  agentId: string;
  sessionId: string;
  sessionKey?: string;
  storePath?: string;
}

/** A message of the transcript. Its id stays, also in the transcript of a fork. */
export interface Entry {
  entryId: string;
  /** What of the active branch it stands right below, a message or not. */
  parentId?: string | null;
  message: AgentMessage;
}

/** An entry of any type, of a branch that was left as well. */
export interface Event {
  type: string;
  id?: string;
  parentId?: string | null;
  /** Of a reset: the first entry that is still shown. */
  firstKeptEntryId?: string;
  /** Of a leaf: the entry behind which the conversation goes on. */
  targetId?: string | null;
}

/** A page behind a cursor, or that it no longer fits. */
export type TranscriptPage<T> =
  | ({ kind: "page"; cursor: string; hasMore: boolean; requiredBytes?: number } & T)
  | { kind: "reset"; cursor: string; reason: string }
  | { kind: "missing" }
  | { kind: "unavailable"; reason: string };

/** Where a page begins, and how much it may hold. */
export interface Paging {
  cursor?: string;
  maxBytes?: number;
}

/** What of OpenClaw's SDK the engine calls. */
export interface Sdk {
  read(params: TranscriptTarget & Paging & { maxMessages?: number }): Promise<TranscriptPage<{ entries: Entry[] }>>;
  events(params: TranscriptTarget & Paging & { maxEvents?: number }): Promise<TranscriptPage<{ events: { event: Event }[] }>>;
  memory(params: {
    availableTools: Set<string>;
    citationsMode?: string | undefined;
    agentSessionKey?: string | undefined;
  }): string | undefined;
  delegate(params: CompactParams): Promise<CompactResult>;
}

export interface Logger {
  warn(text: string): void;
}

/** A tool of OpenClaw, as an agent calls it. */
export interface Tool {
  name: string;
  label: string;
  description: string;
  parameters: Json;
  execute(id: string, args: Json, signal?: AbortSignal): Promise<{ content: Json[]; details: unknown }>;
}

/** Where a tool or a command is called. */
export interface Place {
  agentId?: string;
  sessionId?: string;
  sessionKey?: string;
}

/** What OpenClaw hands to `register`. */
export interface Api {
  pluginConfig?: Json;
  logger: Logger;
  registerContextEngine(id: string, factory: () => unknown): void;
  registerTool(factory: (place: Place) => Tool[] | null, options: { names: readonly string[] }): void;
  registerCommand(command: {
    name: string;
    description: string;
    acceptsArgs: boolean;
    handler(place: Place & { args?: string }): Promise<{ text: string }>;
  }): void;
}
