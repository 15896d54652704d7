/** What this plugin uses of OpenClaw 2026.9.6, in its names. Of the transcript's reader OpenClaw ships no types. */

declare module "openclaw/plugin-sdk/core" {
  /** Compacts with OpenClaw's own summarizer, as its engine `legacy` does. */
  export function delegateCompactionToRuntime(
    params: import("./openclaw.js").CompactParams,
  ): Promise<import("./openclaw.js").CompactResult>;
  /** What the memory plugin says beside the system prompt. Undefined: nothing. */
  export function buildMemorySystemPromptAddition(params: {
    availableTools: Set<string>;
    citationsMode?: string | undefined;
    agentSessionKey?: string | undefined;
  }): string | undefined;
}

declare module "openclaw/plugin-sdk/session-transcript-runtime" {
  /** A page of the messages of a session's active branch, behind a cursor. */
  export const readSessionTranscriptVisibleMessageDelta: import("./openclaw.js").Sdk["read"];
  /** A page of all entries of a session, behind a cursor. */
  export const readSessionTranscriptRawDelta: import("./openclaw.js").Sdk["events"];
}
