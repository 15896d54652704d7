/** The engine against the service that CONTEXTENGINE_ADDRESS names. */
import assert from "node:assert/strict";
import { connect, createServer } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { toPi } from "@contextengine/client/formats";

import { SmallHost } from "../examples/host.js";
import type { AgentMessage, AssembleResult } from "../src/openclaw.js";
import { statusOf } from "../src/status.js";
import { toolsOf } from "../src/tools.js";

const MUCH = "and what of this ".repeat(60);
const WIDE = 100_000;

function textsOf(result: AssembleResult | undefined): string[] {
  return (result?.messages ?? []).map((message) => JSON.stringify(message["content"]));
}

/** What the service holds, in order, in OpenClaw's form. */
async function stored(host: SmallHost): Promise<AgentMessage[]> {
  const { sessionId } = host;
  const found: AgentMessage[] = [];
  for await (const { kind } of host.service.client.session({ agentId: "main", sessionId }).export()) {
    if (kind.case === "message" && !kind.value.retiredRevision && kind.value.message) found.push(...toPi([kind.value.message]));
  }
  return found;
}

/** Waits until the service owes the session nothing. */
async function rested({ service, sessionId }: SmallHost): Promise<void> {
  const session = service.client.session({ agentId: "main", sessionId });
  while ((await session.status({})).jobs.length) await sleep(10);
}

async function holdsAll(host: SmallHost): Promise<void> {
  assert.deepEqual(
    await stored(host),
    host.entries.map(({ message }) => message),
  );
}

test("turns are stored as the transcript has them, and shown as they were said", async () => {
  const host = new SmallHost({});
  await host.turn("one", "first", WIDE);
  const shown = await host.turn("two", "second", WIDE, ["found", "found more"]);
  await holdsAll(host);
  // What the turn itself adds is OpenClaw's to append.
  for (const { messages } of shown) assert.deepEqual(messages, host.entries.slice(0, 2).map(({ message }) => message));
  assert.deepEqual(host.warnings, []);
  host.service.client.close();
});

test("a turn keeps its first budget, and what it begins with", async () => {
  const host = new SmallHost({});
  let last: string[] | undefined;
  let within = 0;
  for (let at = 0; at < 60; at++) {
    const shown = await host.turn(`question ${at} ${MUCH}`, `answer ${at} ${MUCH}`, 16_000, ["found"]);
    const [first, again] = shown.map(textsOf);
    within += Number(first?.every((text, index) => again?.[index] === text));
    assert.ok((shown[0]?.estimatedTokens ?? 0) <= 16_000);
    last = first;
    // Else it depends on the machine whether a compaction is done amid a turn, or ever.
    await rested(host);
  }
  assert.equal(within, 60, "turns keep what they began with");
  assert.ok(last?.some((text) => text.includes("trust=untrusted")));
  await holdsAll(host);
  host.service.client.close();
});

test("a service that is away loses no turn and shows OpenClaw's own list within the budget", async () => {
  const listening = createServer();
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  const { port } = listening.address() as { port: number };
  await new Promise((resolve) => listening.close(resolve));
  const away = new SmallHost({ address: `127.0.0.1:${port}` });
  await away.turn(`one ${MUCH}`, "first", WIDE);
  const [wide] = await away.turn("two", "second", WIDE);
  assert.deepEqual(wide?.messages, away.entries.slice(0, 2).map(({ message }) => message));
  for (let at = 0; at < 20; at++) await away.turn(`more ${at} ${MUCH}`, "well", WIDE);
  const [narrow] = await away.turn("last", "done", 2_000);
  const texts = textsOf(narrow);
  assert.ok(texts.length > 0 && texts.length < away.entries.length - 2, `${texts.length}`);
  assert.equal(away.outbox.length, 23);
  assert.ok(away.warnings.length > 0);
  away.service.client.close();
  // The same transcript and outbox once the service is there.
  const host = new SmallHost({});
  Object.assign(host, { sessionId: away.sessionId, entries: away.entries, outbox: away.outbox });
  const [shown] = await host.turn("back", "again", WIDE);
  assert.equal(host.outbox.length, 0);
  assert.equal(shown?.messages.length, away.entries.length - 2);
  await holdsAll(host);
  host.service.client.close();
});

test("a service that falls silent is waited for as long as a turn waits, and one that works as long as it takes", async () => {
  // What is sent arrives, and from then on nothing comes back.
  let deaf = false;
  const [host, port] = String(process.env["CONTEXTENGINE_ADDRESS"]).split(":");
  const relay = createServer((socket) => {
    const there = connect(Number(port), host);
    socket.on("error", () => undefined).on("close", () => there.destroy());
    there.on("error", () => undefined).on("close", () => socket.destroy());
    socket.pipe(there);
    there.on("data", (some) => void (deaf || socket.write(some)));
  });
  await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
  const small = new SmallHost({ address: `127.0.0.1:${(relay.address() as { port: number }).port}` });
  await small.turn("one", "first", WIDE);
  assert.equal(await small.service.answered(() => sleep(2_500, "late")), "late");
  deaf = true;
  let stopped = false;
  const never = (signal: AbortSignal) =>
    new Promise<never>((_, reject) => {
      signal.onabort = () => reject((stopped = true));
    });
  await assert.rejects(small.service.answered(never), /DEADLINE_EXCEEDED/);
  assert.ok(stopped);
  await small.turn("two", "second", WIDE);
  assert.equal(small.outbox.length, 1);
  small.service.client.close();
  relay.close();
});

test("a failed turn is in the transcript and comes with the next", async () => {
  const host = new SmallHost({});
  await host.turn("one", "first", WIDE);
  host.append({ role: "user", content: "failed" });
  const [shown] = await host.turn("two", "second", WIDE);
  assert.ok(textsOf(shown).includes('"failed"'));
  await holdsAll(host);
  host.service.client.close();
});

test("a branch takes the session back", async () => {
  const host = new SmallHost({});
  for (const words of ["one", "two", "three"]) await host.turn(words, `${words} done`, WIDE);
  host.branch(2);
  const [shown] = await host.turn("else", "else done", WIDE);
  assert.equal(shown?.messages.length, 2);
  await holdsAll(host);
  host.service.client.close();
});

test("a turn that comes again is a duplicate", async () => {
  const host = new SmallHost({});
  await host.turn("one", "first", WIDE);
  const again = { ...host.named, advancementKey: "the same", admission: { entryId: "" }, messages: [] };
  assert.deepEqual(await host.engine().commitTurn(again), { status: "committed" });
  assert.deepEqual(await host.engine().commitTurn(again), { status: "duplicate" });
  host.service.client.close();
});

test("the service compacts, or OpenClaw where it is told to, and says what it did", async () => {
  const host = new SmallHost({});
  for (let at = 0; at < 20; at++) await host.turn(`question ${at} ${MUCH}`, `answer ${at} ${MUCH}`, WIDE);
  const compact = { ...host.named, tokenBudget: 4_000, force: true, runtimeContext: { trigger: "manual" } };
  const done = await host.engine().compact(compact);
  assert.ok(done.ok && done.compacted, done.reason);
  assert.ok((done.result?.tokensAfter ?? Infinity) < (done.result?.tokensBefore ?? 0));
  assert.equal(host.delegated, 0);
  host.service.client.close();

  const own = new SmallHost({ compaction: "openclaw" });
  assert.equal(own.engine().info.ownsCompaction, false);
  for (let at = 0; at < 12; at++) await own.turn(`one ${at}`, "done", WIDE);
  await own.engine().compact({ ...own.named, force: true });
  assert.equal(own.delegated, 1);
  const [shown] = await own.turn("four", "four done", WIDE);
  const [first] = textsOf(shown);
  assert.deepEqual(own.warnings, []);
  assert.ok(first?.includes("what was said before"), first);
  own.service.client.close();
});

test("the memory's words are beside the system prompt and paid for", async () => {
  const memory = "remember this ".repeat(400);
  const host = new SmallHost({}, memory);
  for (let at = 0; at < 12; at++) await host.turn(`question ${at} ${MUCH}`, `answer ${at} ${MUCH}`, 4_000);
  const [shown] = await host.turn("and now", "nothing", 4_000);
  assert.ok(shown?.systemPromptAddition?.startsWith(memory));
  assert.ok((shown?.estimatedTokens ?? Infinity) < 4_000 - 800, `${shown?.estimatedTokens}`);
  host.service.client.close();
});

test("a child that is forked is shown what its parent knew", async () => {
  const host = new SmallHost({});
  await host.turn("one", "first", WIDE);
  const child = new SmallHost({});
  const spawn = { parentSessionKey: host.named.sessionKey, parentSessionId: host.sessionId };
  const names = { childSessionKey: child.named.sessionKey, childSessionId: child.sessionId };
  const prepared = await host.engine().prepareSubagentSpawn({ ...spawn, ...names, contextMode: "fork" });
  assert.ok(prepared);
  // OpenClaw copies the transcript with the ids of its entries.
  child.entries = [...host.entries];
  const [shown] = await child.turn("two", "second", WIDE);
  assert.equal(shown?.messages.length, 2);
  await host.engine().onSubagentEnded({ childSessionKey: child.named.sessionKey, reason: "completed" });
  await host.engine().onSubagentEnded({ childSessionKey: "agent:main:never", reason: "swept" });
  assert.deepEqual(host.warnings, []);
  const other = { childSessionKey: "agent:main:taken-back", childSessionId: `${host.sessionId}-b` };
  const taken = await host.engine().prepareSubagentSpawn({ ...spawn, ...other });
  await taken?.rollback();
  for (const { service } of [host, child]) service.client.close();
});

test("the tools find what was said, and the status says what is kept", async () => {
  const host = new SmallHost({});
  await host.turn("the word is xylophone", "noted", WIDE);
  const tools = toolsOf(host.service, host.named) ?? [];
  assert.deepEqual(
    tools.map(({ name }) => name),
    ["ctx_search", "ctx_inspect", "ctx_expand"],
  );
  const found = await tools[0]?.execute("1", { query: "xylophone" });
  assert.ok(JSON.stringify(found?.content).includes("xylophone"));
  assert.equal(toolsOf(host.service, {}), null);
  const said = await statusOf(host.service, host.named);
  assert.match(said, /Stored: 2 messages/);
  assert.match(await statusOf(host.service, { sessionId: "none" }), /Nothing of this conversation/);
  host.service.client.close();
});
