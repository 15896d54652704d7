import { createHash } from "node:crypto";

import type { SessionRef } from "./types.js";

/**
 * The metadata that names a call's session, so that a proxy can keep it at one of several servers. Servers do not read it: any
 * server serves any call.
 */
export const SESSION_HEADER = "contextengine-session";

/**
 * What names the session of a request for who is between: a hash, since ids may be anything and are nobody else's business. A
 * child is made where its parent is. Undefined: the request names none.
 */
export function sessionOf(request: object): string | undefined {
  const { session, parent, child } = request as Partial<Record<"session" | "parent" | "child", SessionRef>>;
  const ref = session ?? parent ?? child;
  const named = ref?.sessionId || ref?.sessionKey;
  if (!ref || !named) return undefined;
  return createHash("sha256").update(`${ref.agentId}\0${named}`).digest("hex").slice(0, 32);
}
