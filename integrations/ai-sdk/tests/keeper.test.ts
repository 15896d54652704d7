/** Agents of the real AI SDK against the service that CONTEXTENGINE_ADDRESS names. */
import assert from "node:assert/strict";
import { createServer, type Server, type Socket } from "node:net";
import { test, type TestContext } from "node:test";

import { textOf } from "@contextengine/client";
import { fromAiSdk } from "@contextengine/client/formats";
import { generateText, type ModelMessage, wrapLanguageModel } from "ai";
import { MockLanguageModelV3 } from "ai/test";

import { SmallAgent } from "../examples/host.js";
import type { KeeperOptions } from "../src/index.js";
import { kept, prompted } from "../src/list.js";

const MUCH = "and what of this ".repeat(60);
/** Less than a third of it is left for messages. */
const WINDOW = 24_000;

function agentOf(t: TestContext, options: KeeperOptions = {}, address?: string): SmallAgent {
  const agent = new SmallAgent({ window: WINDOW, ...options }, address);
  t.after(() => agent.client.close());
  return agent;
}

/** The port of a server that takes connections and answers nothing. */
async function listening(t: TestContext): Promise<{ port: number; server: Server }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => void sockets.add(socket));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { port: (server.address() as { port: number }).port, server };
}

/** What of a list a model is told, whatever else a host or the SDK says of it. */
function said(list: readonly unknown[]): unknown[] {
  return fromAiSdk(list as ModelMessage[]).map(({ role, parts }) => [
    role,
    ...parts.map(({ kind }) => {
      if (kind.case === "toolCall") return [kind.value.name, Buffer.from(kind.value.argumentsJson).toString()];
      if (kind.case === "toolResult") return [kind.value.callId, kind.value.isError, kind.value.parts.map(({ kind }) => kind.value)];
      return kind.value;
    }),
  ]);
}

function texts(list: readonly unknown[]): string[] {
  return fromAiSdk(list as ModelMessage[]).map(textOf);
}

/** Whether a prompt holds summaries, and all of them say of when they are. */
function dated(prompt: readonly unknown[]): boolean {
  const summaries = texts(prompt).filter((text) => text.includes("trust=untrusted"));
  return summaries.length > 0 && !summaries.some((text) => text.includes("time=unknown"));
}

async function holdsAll(agent: SmallAgent): Promise<void> {
  assert.deepEqual(said(await agent.stored()), said(agent.messages));
}

test("what fits is sent as the host has it, and each turn is stored once and in order", async (t) => {
  const agent = agentOf(t);
  for (let at = 0; at < 40; at++) {
    await agent.turn(`question ${at} ${MUCH}`, `answer ${at} ${MUCH}`, { rounds: at % 3 ? 0 : 2, missing: at % 2 === 0, stream: at % 4 === 1 });
    const newest = agent.calls.at(-1)?.prompt ?? [];
    assert.ok(texts(newest.slice(1)).some((text) => text.startsWith(`question ${at} `)));
    await agent.rested();
  }
  await holdsAll(agent);
  assert.deepEqual(agent.warnings, []);
  const last = agent.calls.at(-1)?.prompt ?? [];
  assert.ok(last.length < agent.messages.length / 2, `${last.length} of ${agent.messages.length}`);
  assert.deepEqual(last[0], { role: "system", content: "You are kind." });
  assert.ok(dated(last));
});

test("as long as all of it fits, each request begins as the one before it ended", async (t) => {
  const agent = agentOf(t, { window: 200_000 });
  for (let at = 0; at < 12; at++) await agent.turn(`question ${at}`, `answer ${at}`, { rounds: at % 3, stream: at % 2 === 1, missing: true });
  // As it is sent: version 7 of the SDK leaves out what is undefined, once a step is behind it.
  const sent = agent.calls.map(({ prompt }) => prompt.map((message) => JSON.stringify(message, sorted)));
  for (const [at, prompt] of sent.entries()) assert.deepEqual(prompt.slice(0, sent[at - 1]?.length ?? 0), sent[at - 1] ?? []);
});

/** For JSON.stringify: members in one order. */
function sorted(_: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}

test("a reply is stored before the next call, streamed or not", async (t) => {
  for (const stream of [false, true]) {
    const agent = agentOf(t);
    assert.equal(await agent.turn("one", "first", { stream, rounds: 1 }), "first");
    await holdsAll(agent);
    const status = await agent.client.session({ agentId: "ai-sdk", sessionId: agent.sessionId }).status();
    assert.equal(status.totalUsage?.inputTokens, 800n);
    assert.equal(status.totalUsage?.cacheReadTokens, 1_200n);
  }
});

test("what the provider's own tool found, and what it painted, is part of the reply", async (t) => {
  for (const stream of [false, true]) {
    const agent = agentOf(t);
    const called = { toolCallId: "web", toolName: "web_search", providerExecuted: true as const };
    agent.script.push([
      { type: "tool-call", ...called, input: '{"of":"it"}' },
      { type: "tool-result", ...called, result: { found: "much" } },
      { type: "file", mediaType: "image/png", data: "aGVsbG8=" },
    ]);
    await agent.turn("one", "", { stream });
    const [, reply] = await agent.stored();
    assert.deepEqual((reply?.content as { type: string }[]).map(({ type }) => type), ["tool-call", "tool-result", "file"]);
    agent.script.length = 0;
    await agent.turn("two", "second", { stream });
    await holdsAll(agent);
    const sent = JSON.stringify(agent.calls.at(-1)?.prompt);
    assert.ok(sent.includes("much") && sent.includes("image/png") && !sent.includes("No result"), sent);
    const status = await agent.client.session({ agentId: "ai-sdk", sessionId: agent.sessionId }).status();
    assert.equal(status.messageCount, 4n);
    assert.equal(status.lastSequence, 4n);
  }
});

test("a long loop of tools stays within the window by prepareStep", async (t) => {
  const agent = agentOf(t);
  for (let at = 0; at < 3; at++) {
    await agent.stepped(`question ${at} ${MUCH}`, `answer ${at} ${MUCH}`, 30, { toolTokens: 100 });
    await agent.rested();
  }
  await holdsAll(agent);
  const last = agent.calls.at(-1)?.prompt ?? [];
  assert.ok(last.length < agent.messages.length / 2, `${last.length} of ${agent.messages.length}`);
  const [first] = last;
  assert.ok(first?.role === "system" && first.content.startsWith("You are kind.\n\n"), JSON.stringify(first));
  assert.ok(dated(last));
  assert.deepEqual(agent.warnings, []);
});

test("prepareStep puts nothing in the place of a system prompt that it does not know", async (t) => {
  const agent = agentOf(t);
  await agent.stepped(`question ${MUCH}`, "answer", 40, { system: "" });
  const [first, second] = agent.calls.at(-1)?.prompt ?? [];
  assert.deepEqual(first, { role: "system", content: "You are kind." });
  assert.equal(second?.role, "user");
});

test("what the host takes back or edits leaves the view", async (t) => {
  const agent = agentOf(t);
  for (const words of ["one", "two", "three"]) await agent.turn(words, `${words} done`);
  agent.messages = agent.messages.slice(0, 2);
  await agent.turn("else", "else done");
  await holdsAll(agent);
  assert.deepEqual(texts(agent.calls.at(-1)?.prompt.slice(1) ?? []), ["one", "one done", "else"]);
});

test("a list that was cut off at its beginning goes on where it was", async (t) => {
  const agent = agentOf(t);
  for (const words of ["one", "two", "three"]) await agent.turn(words, `${words} done`);
  const whole = agent.messages;
  agent.messages = whole.slice(2);
  await agent.turn("four", "four done");
  agent.messages = [...whole, ...agent.messages.slice(-2)];
  await holdsAll(agent);
});

test("marks that the host moves are sent as it has them now", async (t) => {
  const agent = agentOf(t);
  const mark = { anthropic: { cacheControl: { type: "ephemeral" } } };
  await agent.turn("one", "first");
  for (let at = 0; at < 6; at++) {
    const bare = agent.messages.map(({ providerOptions, ...message }) => message as ModelMessage);
    agent.messages = bare.map((message, index) => (index === bare.length - 1 ? { ...message, providerOptions: mark } : message));
    await agent.turn(`more ${at}`, "well");
  }
  const marked = agent.calls.at(-1)?.prompt.filter(({ providerOptions }) => providerOptions?.["anthropic"]);
  assert.equal(marked?.length, 1);
});

test("pictures and addresses come back as a model's prompt has them", async (t) => {
  const agent = agentOf(t);
  const picture = new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10, 0, 1, 2, 3]);
  agent.messages = [
    { role: "user", content: [{ type: "text", text: "see" }, { type: "image", image: picture }] },
    { role: "assistant", content: "seen" },
  ];
  await agent.turn("and?", "well");
  await agent.turn("again?", "well");
  const [, first] = agent.calls.at(-1)?.prompt ?? [];
  assert.ok(first?.role === "user");
  const [, file] = first.content;
  assert.ok(file?.type === "file" && file.mediaType === "image/png");
  // Version 7 of the SDK says what the data is.
  const { data = file.data } = file.data as { data?: unknown };
  assert.deepEqual(Buffer.from(data as Uint8Array), Buffer.from(picture));
  assert.deepEqual(agent.warnings, []);
});

test("data of files says what it is where the SDK wants it so", () => {
  const picture = new Uint8Array([137, 80, 78, 71]);
  const message: ModelMessage = { role: "user", content: [{ type: "image", image: picture, mediaType: "image/png" }] };
  const [plain, tagged] = [false, true].map((tags) => prompted(message, tags).content);
  assert.deepEqual(plain, [{ type: "file", mediaType: "image/png", data: picture }]);
  assert.deepEqual(tagged, [{ type: "file", mediaType: "image/png", data: { type: "data", data: picture } }]);
  for (const content of [plain, tagged]) {
    const [kind] = kept([{ role: "user", content } as ModelMessage])[0]?.parts.map(({ kind }) => kind) ?? [];
    assert.ok(kind?.case === "image" && kind.value.source.case === "data");
    assert.deepEqual(Buffer.from(kind.value.source.value), Buffer.from(picture));
  }
});

test("a call names its session itself, or none and is left alone", async (t) => {
  const agent = agentOf(t);
  const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };
  const finishReason = { unified: "stop" as const, raw: undefined };
  const mock = new MockLanguageModelV3({ doGenerate: { content: [{ type: "text", text: "well" }], finishReason, usage, warnings: [] } });
  const model = wrapLanguageModel({ model: mock, middleware: agent.keeper.middleware() });
  await generateText({ model, prompt: "a title" });
  assert.deepEqual(await agent.stored().catch(() => []), []);
  const { sessionId } = agent;
  await generateText({ model, prompt: "hello", providerOptions: { contextengine: { sessionId } } });
  assert.deepEqual(texts(await agent.stored()), ["hello", "well"]);
});

test("a service that is away costs no turn and loses none", async (t) => {
  const { port, server } = await listening(t);
  await new Promise((resolve) => server.close(resolve));
  const away = agentOf(t, {}, `127.0.0.1:${port}`);
  const began = performance.now();
  for (let at = 0; at < 20; at++) await away.turn(`question ${at} ${MUCH}`, `answer ${at} ${MUCH}`, { rounds: 1, stream: at % 2 === 0 });
  // Two calls of the model a turn, before and behind each a question of 50 ms at most.
  assert.ok(performance.now() - began < 20_000, `${performance.now() - began}`);
  assert.ok(away.warnings.length > 0);
  const last = away.calls.at(-1)?.prompt ?? [];
  assert.ok(last.length > 5 && last.length < away.messages.length, `${last.length}`);
  // The same conversation once the service is there.
  const agent = agentOf(t);
  agent.messages = away.messages;
  await agent.turn("back?", "back");
  await holdsAll(agent);
  assert.deepEqual(agent.warnings, []);
});

test("a failure that is told to nobody ends no conversation", async (t) => {
  const { port, server } = await listening(t);
  await new Promise((resolve) => server.close(resolve));
  let told = 0;
  const warn = () => {
    if (told++ === 1) throw new Error("the log is full");
  };
  const agent = agentOf(t, { warn }, `127.0.0.1:${port}`);
  await assert.rejects(agent.turn("one", "first"), /the log is full/);
  agent.script.length = 0;
  assert.equal(await agent.turn("two", "second"), "second");
});

test("a service that hangs costs its patience once", async (t) => {
  const { port } = await listening(t);
  const agent = agentOf(t, { patienceMs: 1_000 }, `127.0.0.1:${port}`);
  const began = performance.now();
  for (let at = 0; at < 10; at++) assert.equal(await agent.turn(`question ${at}`, `answer ${at}`), `answer ${at}`);
  assert.ok(performance.now() - began < 10_000 / 2, `${performance.now() - began}`);
});
