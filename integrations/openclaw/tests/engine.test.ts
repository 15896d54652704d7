/** The engine against the service that CONTEXTENGINE_ADDRESS names. */
import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { assistant, SmallHost } from "../examples/host.js";
import type { AssembleResult } from "../src/openclaw.js";
import { statusOf } from "../src/status.js";
import { toolsOf } from "../src/tools.js";
import { answered, holdsAll, relayed, stored, WIDE } from "./around.js";

const MUCH = "and what of this ".repeat(60);

function textsOf(result: AssembleResult | undefined): string[] {
  return (result?.messages ?? []).map((message) => JSON.stringify(message["content"]));
}

/** Waits until the service owes the session nothing. */
async function rested({ service, sessionId }: SmallHost): Promise<void> {
  const session = service.client.session({ agentId: "main", sessionId });
  while ((await session.status({})).jobs.length) await sleep(10);
}

/** A host whose transcript has turns that the service never heard of. */
function spoken(config: Record<string, unknown>, turns: number): SmallHost {
  const host = new SmallHost(config);
  for (let at = 0; at < turns; at++) said(host, `more ${at} ${MUCH}`);
  return host;
}

/** Writes down a turn: its first and last entry. */
function said(host: SmallHost, words: string) {
  const { entryId: from } = host.append({ role: "user", content: words });
  return { from, to: host.append(assistant([{ type: "text", text: "well" }])).entryId };
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
  const config = { address: `127.0.0.1:${port}` };
  const away = spoken(config, 22);
  const [wide] = await away.turn("two", "second", WIDE);
  assert.deepEqual(wide?.messages, away.entries.slice(0, 44).map(({ message }) => message));
  const other = spoken(config, 22);
  const [narrow] = await other.turn("last", "done", 2_000);
  const texts = textsOf(narrow);
  assert.ok(texts.length > 0 && texts.length < 44, `${texts.length}`);
  other.service.client.close();
  // OpenClaw runs what follows without the engine, until that is committed.
  await away.turn("three", "third", WIDE);
  assert.equal(away.outbox.length, 1);
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

test("a service that comes back amid a turn has the model see no message twice", async () => {
  const relay = await relayed();
  const host = new SmallHost({ address: relay.address });
  await host.turn("one", "first", WIDE);
  relay.turn("closed");
  host.restart();
  const turn = await host.begin("two");
  const before = (await turn.ask(WIDE)).messages;
  turn.work([{ id: "call", text: "found" }]);
  relay.turn("open");
  await answered(host);
  assert.deepEqual((await turn.ask(WIDE)).messages, before);
  await turn.accept("second");
  await host.drain(host.engine());
  await holdsAll(host);
  host.service.client.close();
  relay.close();
});

test("what is committed late is that turn, and its heartbeat", async () => {
  const host = new SmallHost({});
  for (const isHeartbeat of [true, false]) host.outbox.push({ key: `${isHeartbeat}`, ...said(host, "words"), isHeartbeat });
  said(host, "not accepted");
  await host.drain(host.engine());
  assert.equal(host.outbox.length, 0);
  const session = host.service.client.session({ agentId: "main", sessionId: host.sessionId });
  const beats: boolean[] = [];
  for await (const { kind } of session.export()) if (kind.case === "message") beats.push(Boolean(kind.value.message?.isHeartbeat));
  assert.deepEqual(beats, [true, true, false, false]);
  host.service.client.close();
});

test("a service that falls silent is waited for as long as a turn waits, and one that works as long as it takes", async () => {
  const relay = await relayed();
  const small = new SmallHost({ address: relay.address });
  await small.turn("one", "first", WIDE);
  assert.equal(await small.service.answered(() => sleep(2_500, "late")), "late");
  relay.turn("deaf");
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

test("what OpenClaw keeps for people alone is stored, and shown to no model", async () => {
  const host = new SmallHost({});
  host.append({ role: "user", content: "/status", excludeFromContext: true });
  await host.turn("one", "first", WIDE);
  const mirror = { provider: "openclaw", model: "delivery-mirror" };
  host.append({ ...assistant([{ type: "text", text: "first" }]), ...mirror });
  const [shown] = await host.turn("two", "second", WIDE);
  assert.deepEqual(shown?.messages, host.shown().slice(0, 2));
  await holdsAll(host);
  host.service.client.close();
});

test("a key that names no agent leaves a conversation with the agent that OpenClaw names", async () => {
  const host = new SmallHost({});
  Object.assign(host, { agentId: "work", sessionKey: "global" });
  for (const words of ["one", "two", "three"]) {
    const before = host.shown();
    for (const { messages } of await host.turn(words, "well", WIDE, ["found"])) assert.deepEqual(messages, before);
  }
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

test("a conversation that begins anew is shown nothing of before, which stays stored", async () => {
  const host = new SmallHost({});
  await host.turn("one", "first", WIDE, ["found"]);
  host.reset();
  host.note();
  assert.deepEqual((await host.turn("two", "second", WIDE))[0]?.messages, []);
  assert.equal((await host.turn("three", "third", WIDE))[0]?.messages.length, 2);
  assert.match(await statusOf(host.service, host.named), /Stored: 4 messages/);
  host.reset(2);
  host.restart();
  assert.equal((await host.turn("four", "fourth", WIDE))[0]?.messages.length, 2);
  await holdsAll(host);
  // One that nothing was said in, and one of which the service hears late.
  host.reset();
  host.reset();
  const late = new SmallHost({});
  for (const words of ["one", "two"]) {
    said(late, words);
    late.reset();
  }
  for (const one of [host, late]) {
    assert.deepEqual((await one.turn("the last", "well", WIDE))[0]?.messages, []);
    await holdsAll(one);
    assert.deepEqual(one.warnings, []);
    one.service.client.close();
  }
});

test("a turn of before a reset that is committed late changes nothing of what is shown", async () => {
  const host = new SmallHost({});
  await host.turn("one", "first", WIDE);
  const late = said(host, "two");
  host.reset();
  const turn = await host.begin("three");
  assert.deepEqual((await turn.ask(WIDE)).messages, []);
  host.outbox.push({ key: "late", ...late, isHeartbeat: false });
  await host.drain(host.engine());
  assert.deepEqual((await turn.ask(WIDE)).messages, []);
  await turn.accept("third");
  assert.equal((await host.turn("four", "fourth", WIDE))[0]?.messages.length, 2);
  await holdsAll(host);
  assert.deepEqual(host.warnings, []);
  host.service.client.close();
});

test("a turn that comes again is a duplicate", async () => {
  const host = new SmallHost({});
  await host.turn("one", "first", WIDE);
  const again = { ...host.named, advancementKey: "the same", admission: { entryId: "" }, terminal: { entryId: "" }, messages: [] };
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
  const host = new SmallHost({}, () => memory);
  for (let at = 0; at < 12; at++) await host.turn(`question ${at} ${MUCH}`, `answer ${at} ${MUCH}`, 4_000);
  const [shown] = await host.turn("and now", "nothing", 4_000);
  assert.ok(shown?.systemPromptAddition?.startsWith(memory));
  assert.ok((shown?.estimatedTokens ?? Infinity) < 4_000 - 800, `${shown?.estimatedTokens}`);
  host.service.client.close();
});

test("a memory plugin that fails costs its words alone", async () => {
  const host = new SmallHost({}, () => assert.fail("the memory is broken"));
  await host.turn("one", "first", WIDE);
  const [shown] = await host.turn("two", "second", WIDE);
  assert.equal(shown?.messages.length, 2);
  assert.match(host.warnings[0] ?? "", /the memory is broken/);
  await holdsAll(host);
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
  child.copies(host);
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

test("a child of a conversation that began anew holds nothing of before", async () => {
  const host = new SmallHost({});
  await host.turn("one", "first", WIDE);
  host.reset();
  await host.turn("two", "second", WIDE);
  const child = new SmallHost({});
  const spawn = { parentSessionKey: host.named.sessionKey, parentSessionId: host.sessionId };
  const names = { childSessionKey: child.named.sessionKey, childSessionId: child.sessionId };
  await host.engine().prepareSubagentSpawn({ ...spawn, ...names, contextMode: "fork" });
  child.copies(host);
  const [shown] = await child.turn("three", "third", WIDE);
  assert.deepEqual(shown?.messages, host.shown());
  assert.deepEqual(await stored(child), []);
  assert.deepEqual([...host.warnings, ...child.warnings], []);
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
