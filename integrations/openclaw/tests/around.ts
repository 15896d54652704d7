/** What tests of the engine have around it. */
import assert from "node:assert/strict";
import { connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

import { SessionNotFound } from "@contextengine/client";
import { toPi } from "@contextengine/client/formats";

import type { SmallHost } from "../examples/host.js";
import type { AgentMessage } from "../src/openclaw.js";

export const WIDE = 100_000;

/** Closed: nobody is there. Deaf: what is sent arrives, and from then on nothing comes back. */
type Way = "open" | "closed" | "deaf";

/** A way to the service that CONTEXTENGINE_ADDRESS names. */
export async function relayed() {
  let way: Way = "open";
  const open = new Set<Socket>();
  const [host, port] = String(process.env["CONTEXTENGINE_ADDRESS"]).split(":");
  const relay = createServer((socket) => {
    if (way === "closed") return void socket.destroy();
    const there = connect(Number(port), host);
    for (const [one, other] of [[socket, there], [there, socket]] as const) {
      open.add(one.on("error", () => undefined).on("close", () => (open.delete(one), other.destroy())));
    }
    socket.pipe(there);
    there.on("data", (some) => void (way === "open" && socket.write(some)));
  });
  await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
  const ended = () => open.forEach((socket) => socket.destroy());
  return {
    address: `127.0.0.1:${(relay.address() as { port: number }).port}`,
    turn(next: Way) {
      if (next !== "deaf") ended();
      way = next;
    },
    close() {
      ended();
      relay.close();
    },
  };
}

/** Waits until the service answers the host's plugin. */
export async function answered({ service }: SmallHost): Promise<void> {
  for (;;) {
    try {
      return void (await service.client.engines.list({}, { timeoutMs: 500 }));
    } catch {
      await sleep(50);
    }
  }
}

/** What the service holds of a conversation, in order, in OpenClaw's form. */
export async function stored(host: SmallHost, reset = ""): Promise<AgentMessage[]> {
  const sessionId = reset ? `${host.sessionId}:${reset}` : host.sessionId;
  const found: AgentMessage[] = [];
  try {
    for await (const { kind } of host.service.client.session({ agentId: host.agentId, sessionId }).export()) {
      if (kind.case === "message" && !kind.value.retiredRevision && kind.value.message) found.push(...toPi([kind.value.message]));
    }
  } catch (error) {
    // Nothing was said in it.
    if (!(error instanceof SessionNotFound)) throw error;
  }
  return found;
}

/** The service holds each conversation as the transcript has it, unless nothing was said in one. */
export async function holdsAll(host: SmallHost): Promise<void> {
  for (const [at, { reset, begins }] of host.conversations.entries()) {
    if (begins !== host.conversations[at + 1]?.begins) assert.deepEqual(await stored(host, reset), host.said(at));
  }
}
