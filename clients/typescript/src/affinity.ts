import { createHash } from "node:crypto";

import { isMessage } from "@bufbuild/protobuf";

import { ImportRequestSchema, type SessionRef, WatchRequestSchema } from "./types.js";

/**
 * The metadata that names a call's session, so that a proxy can keep it at one of several servers. Servers do not read it: any
 * server serves any call.
 */
export const SESSION_HEADER = "contextengine-session";

/**
 * What names the session of a request for who is between: a hash, since ids may be anything and are nobody else's business. A
 * child is made where its parent is. Of an import, the first request names it; of what is watched, agent and session do.
 * Undefined: the request names none.
 */
export function sessionOf(request: object): string | undefined {
  if (isMessage(request, WatchRequestSchema)) {
    return request.agentId ? named(request.agentId, request.sessionId) : undefined;
  }
  if (isMessage(request, ImportRequestSchema)) {
    return request.kind.case === "header" ? sessionOf(request.kind.value) : undefined;
  }
  const { session, parent, child } = request as Partial<Record<"session" | "parent" | "child", SessionRef>>;
  const ref = session ?? parent ?? child;
  return ref && named(ref.agentId, ref.sessionId || ref.sessionKey);
}

function named(agentId: string, session: string): string | undefined {
  if (!session) return undefined;
  return createHash("sha256").update(`${agentId}\0${session}`).digest("hex").slice(0, 32);
}
