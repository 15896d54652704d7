import { setTimeout as sleep } from "node:timers/promises";

import { Client, DeadlinePassed, type Session, Unavailable } from "@contextengine/client";
import type { EngineInfo } from "@contextengine/client/types";

import type { Named, Sdk, TranscriptTarget } from "./openclaw.js";
import { Transcript } from "./transcript.js";

/** Sessions that are remembered. One that is forgotten is read whole again. */
const MOST = 1_000;

/** What the plugin is set to. */
export interface Settings {
  address: string;
  token: string;
  tls: boolean;
  /** Who compacts. */
  compaction: "service" | "openclaw";
  /** How long a turn waits for one call, in milliseconds. */
  patienceMs: number;
}

/** The settings of the plugin's configuration, of the environment where that says nothing. */
export function settingsOf(config: Record<string, unknown>, environment: NodeJS.ProcessEnv): Settings {
  const asked = (name: string) => environment[`CONTEXTENGINE_${name}`] ?? "";
  return {
    address: String(config["address"] ?? (asked("ADDRESS") || "127.0.0.1:50051")),
    token: String(config["token"] ?? asked("TOKEN")),
    tls: Boolean(config["tls"] ?? ["1", "true", "yes"].includes(asked("TLS").toLowerCase())),
    compaction: config["compaction"] === "openclaw" ? "openclaw" : "service",
    patienceMs: Number(config["patienceMs"] ?? 2_000),
  };
}

/** A session of OpenClaw beside the one that keeps it. */
export interface Talk {
  readonly transcript: Transcript;
  /** Its session as it was when the service last said which engine serves it. */
  introduced: Session | undefined;
  engine: EngineInfo | undefined;
  /** Tokens for messages that OpenClaw gave last. */
  budget: number | undefined;
}

/**
 * The service as this process has it: one client for all engines, which OpenClaw makes anew for each turn, and their
 * sessions.
 */
export class Service {
  readonly client: Client;
  private readonly talks = new Map<string, Talk>();
  /** The agents of OpenClaw's sessions, which it does not name in each call: a key of all agents (`global`) has none. */
  private readonly agents = new Map<string, string>();

  constructor(
    readonly settings: Settings,
    private readonly sdk: Pick<Sdk, "read" | "events">,
  ) {
    const { address, token, tls } = settings;
    this.client = new Client(address, { token, tls, retryForMs: 0, breaker: true, fallback: false });
  }

  /** The session of a call. */
  talk(named: Named): Talk {
    const ref = this.refOf(named);
    const name = JSON.stringify([ref.agentId, ref.sessionId]);
    const known = this.talks.get(name) ?? this.begun(ref);
    this.talks.delete(name);
    this.talks.set(name, known);
    const [oldest] = this.talks.keys();
    if (this.talks.size > MOST && oldest !== undefined) this.talks.delete(oldest);
    const [first] = this.agents.keys();
    if (this.agents.size > MOST && first !== undefined) this.agents.delete(first);
    known.transcript.storePath ??= named.sessionTarget?.storePath;
    return known;
  }

  /**
   * What a call answers that may take long, as long as the service answers anything meanwhile: one that does not costs
   * `patienceMs`, half of it until it is asked, half for that. `given`: whoever called no longer wants it.
   */
  async answered<T>(call: (signal: AbortSignal) => Promise<T>, given?: AbortSignal): Promise<T> {
    const half = this.settings.patienceMs / 2;
    const stop = new AbortController();
    const running = call(given ? AbortSignal.any([given, stop.signal]) : stop.signal);
    const ended = running.then(
      () => true,
      () => true,
    );
    while (!(await Promise.race([ended, sleep(half, false, { ref: false })]))) {
      try {
        await this.client.engines.list({}, { timeoutMs: half });
      } catch (error) {
        // Whoever refuses is there.
        if (!(error instanceof Unavailable || error instanceof DeadlinePassed)) continue;
        stop.abort();
        throw error;
      }
    }
    return running;
  }

  private begun(ref: TranscriptTarget): Talk {
    const transcript = new Transcript(this.client, ref, this.sdk);
    return { transcript, introduced: undefined, engine: undefined, budget: undefined };
  }

  /** The agent and session that OpenClaw names. */
  private refOf({ sessionId, sessionKey, sessionTarget }: Named): TranscriptTarget {
    const agentId = sessionTarget?.agentId ?? this.agents.get(sessionId) ?? agentOf(sessionKey);
    this.agents.delete(sessionId);
    this.agents.set(sessionId, agentId);
    return { agentId, sessionId, ...(sessionKey ? { sessionKey } : {}) };
  }
}

/** The agent of a key, `agent:NAME:…`. OpenClaw's own agent is `main`. */
export function agentOf(sessionKey: string | undefined): string {
  return /^agent:([^:]+):/.exec(sessionKey ?? "")?.[1] ?? "main";
}
