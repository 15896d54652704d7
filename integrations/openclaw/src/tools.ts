import { ContextEngineError } from "@contextengine/client";
import type { Json } from "@contextengine/client/formats";

import type { Place, Tool } from "./openclaw.js";
import { agentOf, type Service } from "./service.js";
import definitions from "./tools.json" with { type: "json" };

interface Definition {
  name: string;
  description: string;
  parameters: Json;
}

const DEFINITIONS: readonly Definition[] = definitions;
/** Names that the manifest declares. */
export const NAMES = DEFINITIONS.map(({ name }) => name);
/** What most engines offer, until the session's has said what it does. */
const USUAL = ["ctx_search", "ctx_inspect", "ctx_expand"];
/** A search through much may take this long, in milliseconds. */
const TOOL_MS = 30_000;

/** The tools by which the model finds what is no longer shown. None where no conversation is named. */
export function toolsOf(service: Service, place: Place): Tool[] | null {
  const { sessionId, sessionKey = "" } = place;
  if (!sessionId && !sessionKey) return null;
  const agentId = place.agentId ?? agentOf(sessionKey);
  const target = place.agentId === undefined ? {} : { sessionTarget: { agentId } };
  const named = sessionId ? service.talk({ sessionId, ...(sessionKey ? { sessionKey } : {}), ...target }) : undefined;
  const offered = named?.engine?.tools ?? USUAL;
  const session = () => named?.transcript.session ?? service.client.session({ agentId, sessionKey });
  const run = async (name: string, args: Json, signal?: AbortSignal): Promise<string> => {
    try {
      const argumentsJson = Buffer.from(JSON.stringify(args ?? {}));
      const what = { name, argumentsJson };
      const reply = await service.answered((stop) => session().callTool(what, { timeoutMs: TOOL_MS, signal: stop }), signal);
      return Buffer.from(reply.resultJson).toString();
    } catch (error) {
      if (!(error instanceof ContextEngineError)) throw error;
      return JSON.stringify({ error: error.message });
    }
  };
  return DEFINITIONS.filter(({ name }) => offered.includes(name)).map((definition) => ({
    ...definition,
    label: definition.name,
    execute: async (_, args, signal) => {
      const text = await run(definition.name, args, signal);
      return { content: [{ type: "text", text }], details: JSON.parse(text) as unknown };
    },
  }));
}
