import { SessionNotFound } from "@contextengine/client";

import type { Place } from "./openclaw.js";
import { agentOf, type Service } from "./service.js";

/** What `/contextengine status` says of the conversation that it is typed in. */
export async function statusOf(service: Service, place: Place): Promise<string> {
  const { sessionId = "", sessionKey = "" } = place;
  const { address, patienceMs } = service.settings;
  if (!sessionId && !sessionKey) return `contextengine at ${address}: there is no conversation here yet.`;
  // A key names the conversation as it goes on now, also where OpenClaw began it anew under the same id.
  const named = sessionKey ? { sessionKey } : { sessionId };
  const session = service.client.session({ agentId: place.agentId ?? agentOf(sessionKey), ...named });
  try {
    const found = await session.status({}, { timeoutMs: patienceMs });
    const lines = [
      `contextengine at ${address}: there.`,
      `Engine: ${found.engine?.id} ${found.engine?.version}`,
      `Stored: ${found.messageCount} messages, ${found.messageTokens} tokens`,
      `Summaries: ${found.summaryCount}, compactions: ${found.compactionCount}`,
      `In view: ${found.viewTokens} tokens`,
    ];
    if (found.jobs.length) lines.push(`Work waiting: ${found.jobs.length}`);
    if (found.engineFailure) lines.push(`The engine failed: ${found.engineFailure.operation}`);
    return lines.join("\n");
  } catch (error) {
    if (error instanceof SessionNotFound) return `contextengine at ${address}: there. Nothing of this conversation is stored yet.`;
    return `contextengine at ${address}: away (${error instanceof Error ? error.message : String(error)}).`;
  }
}
