/** contextengine as the context engine of OpenClaw. */
import { buildMemorySystemPromptAddition, delegateCompactionToRuntime } from "openclaw/plugin-sdk/core";
import {
  readSessionTranscriptRawDelta,
  readSessionTranscriptVisibleMessageDelta,
} from "openclaw/plugin-sdk/session-transcript-runtime";

import { Engine, ENGINE } from "./engine.js";
import type { Api, Sdk } from "./openclaw.js";
import { Service, settingsOf } from "./service.js";
import { statusOf } from "./status.js";
import { NAMES, toolsOf } from "./tools.js";

const SDK: Sdk = {
  read: readSessionTranscriptVisibleMessageDelta,
  events: readSessionTranscriptRawDelta,
  memory: buildMemorySystemPromptAddition,
  delegate: delegateCompactionToRuntime,
};
/** OpenClaw registers a plugin more than once: a service for each way that it is set to. */
const SERVICES = new Map<string, Service>();

function service(config: Record<string, unknown>): Service {
  const settings = settingsOf(config, process.env);
  const name = JSON.stringify(settings);
  const known = SERVICES.get(name) ?? new Service(settings, SDK);
  SERVICES.set(name, known);
  return known;
}

export default {
  id: ENGINE,
  name: "contextengine",
  description: "Keeps every message in a contextengine service and sends what fits.",
  register(api: Api): void {
    const shared = () => service(api.pluginConfig ?? {});
    api.registerContextEngine(ENGINE, () => new Engine(shared(), SDK, api.logger));
    api.registerTool((place) => toolsOf(shared(), place), { names: NAMES });
    api.registerCommand({
      name: "contextengine",
      description: "Says what contextengine keeps of this conversation.",
      acceptsArgs: true,
      handler: async (place) => ({ text: await statusOf(shared(), place) }),
    });
  },
};
