/**
 * Client of contextengine, the gRPC service that decides what a language model sees.
 *
 *     const client = new Client();
 *     const session = client.session({ agentId: "support", sessionId: "case-1" });
 *     const context = await session.assemble({ ingest: [user("Where is my order?")] });
 *     const reply = await callModel(context.messages);
 *     await session.afterTurn({ messages: [reply] });
 *
 * Messages, enums and schemas are in `@contextengine/client/types`, conversions from and to provider formats in
 * `@contextengine/client/formats`.
 */
export { SESSION_HEADER } from "./affinity.js";
export { Assembly, type Degraded, DeltaMismatch } from "./assembly.js";
export { batches } from "./batches.js";
export { Client, type ClientOptions, type LendOptions } from "./client.js";
export * from "./errors.js";
export { FALLBACK_REASON, makeUp } from "./fallback.js";
export { Feed, type FeedOptions } from "./feed.js";
export { newId, withIds } from "./ids.js";
export { type Answer, type Complete } from "./lending.js";
export { assistant, system, text, textOf, toolCall, toolResult, user } from "./messages.js";
export { type Rejected } from "./queue.js";
export { type AssembleOptions, type BearingOptions, Session } from "./session.js";
export { SpillDamaged } from "./spill.js";
export { type CallOptions, type Rpcs } from "./transport.js";
