/** Prompts that a provider refuses for their length, against the service that CONTEXTENGINE_ADDRESS names. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";

import { create } from "@bufbuild/protobuf";
import { AssembleResponseSchema, BudgetSchema } from "@contextengine/client/types";
import { APICallError } from "ai";

import { SmallAgent } from "../examples/host.js";
import { isRefusal, said, smaller } from "../src/overflow.js";

const MUCH = "and what of this ".repeat(60);

/** As a provider of the SDK throws it: the code stands in the reply alone. */
function refusal(): APICallError {
  const responseBody = JSON.stringify({ error: { code: "context_length_exceeded", message: "no" } });
  return new APICallError({ message: "no", url: "http://provider", requestBodyValues: {}, statusCode: 400, responseBody });
}

/** An agent that has said something. Its model was told to answer `again` next. */
async function talking(t: TestContext): Promise<SmallAgent> {
  const agent = new SmallAgent({ window: 200_000 });
  t.after(() => agent.client.close());
  for (let at = 0; at < 6; at++) await agent.turn(`question ${at} ${MUCH}`, `answer ${at} ${MUCH}`);
  return agent;
}

/** The characters that the calls of the model since were sent. */
function sizes(agent: SmallAgent, since: number): number[] {
  return agent.calls.slice(since).map(({ prompt }) => JSON.stringify(prompt).length);
}

/** That the last turn was made again once, with less that ends as it did, and is stored. */
async function madeAgain(agent: SmallAgent, before: number): Promise<void> {
  const [refused = 0, answered = 0, ...more] = sizes(agent, before);
  assert.ok(refused && answered && !more.length);
  assert.ok(answered < 0.75 * refused, `${answered} after ${refused}`);
  const [first, second] = agent.calls.slice(before).map(({ prompt }) => JSON.stringify(prompt.at(-1)));
  assert.equal(second, first);
  assert.equal((await agent.stored()).length, agent.messages.length);
  assert.deepEqual(agent.warnings, []);
}

for (const stream of [false, true]) {
  test(`a prompt that is too long is made again once with less, ${stream ? "streamed" : "whole"}`, async (t) => {
    const agent = await talking(t);
    const before = agent.calls.length;
    agent.refusals.push({ error: refusal() });
    assert.equal(await agent.turn("and now?", "well then", { stream }), "well then");
    await madeAgain(agent, before);
    const session = agent.client.session({ agentId: "ai-sdk", sessionId: agent.sessionId });
    assert.ok((await session.status()).compactionCount >= 1);
  });
}

test("a stream that begins with the refusal is one", async (t) => {
  const agent = await talking(t);
  const before = agent.calls.length;
  agent.refusals.push({ error: { type: "error", error: { code: "context_length_exceeded" } }, streamed: true });
  assert.equal(await agent.turn("and now?", "well then", { stream: true }), "well then");
  await madeAgain(agent, before);
});

test("what is refused twice fails as the provider says", async (t) => {
  const agent = await talking(t);
  const before = agent.calls.length;
  agent.refusals.push({ error: refusal() }, { error: refusal() }, { error: refusal() });
  await assert.rejects(agent.turn("and now?", "well then"), (error) => error instanceof APICallError && isRefusal(error));
  assert.equal(sizes(agent, before).length, 2);
});

test("what fails otherwise is not made again", async (t) => {
  const agent = await talking(t);
  const before = agent.calls.length;
  const error = new APICallError({ message: "no such model", url: "http://provider", requestBodyValues: {}, statusCode: 404 });
  agent.refusals.push({ error });
  await assert.rejects(agent.turn("and now?", "well then"), (failed) => failed === error);
  agent.refusals.push({ error });
  assert.equal(await agent.keeper.refused(agent.sessionId, error), false);
  assert.equal(sizes(agent, before).length, 1);
});

test("a prompt that is too long fails as the provider says while the service is away", async (t) => {
  const agent = new SmallAgent({}, "127.0.0.1:9");
  t.after(() => agent.client.close());
  const error = refusal();
  agent.refusals.push({ error });
  await assert.rejects(agent.turn("hello", "well"), (failed) => failed === error);
  assert.equal(agent.calls.length, 1);
});

test("by prepareStep the next context is smaller where the refusal is told", async (t) => {
  const agent = await talking(t);
  const before = agent.calls.length;
  agent.refusals.push({ error: refusal() });
  const failed: unknown = await agent.stepped("and now?", "", 0).catch((error: unknown) => error);
  agent.script.splice(0);
  assert.equal(await agent.keeper.refused(agent.sessionId, failed), true);
  assert.equal(await agent.stepped("and now?", "well then", 0), "well then");
  await madeAgain(agent, before);
});

test("what an error came of is looked at, and no more of it than the service takes", () => {
  assert.ok(isRefusal(new Error("failed", { cause: new Error("prompt is too long: 210000 tokens > 200000 maximum") })));
  assert.ok(isRefusal("This model's maximum context length is 8192 tokens"));
  assert.ok(!isRefusal(new Error("rate limited")) && !isRefusal(undefined) && !isRefusal(null));
  assert.equal(said("x".repeat(10_000)).length, 8_192);
  const loop = new Error("round");
  loop.cause = loop;
  assert.equal(said(loop).split("\n").length, 5);
});

test("another attempt has half of what was shown, by what the first was asked for with", () => {
  const response = create(AssembleResponseSchema, { estimatedTokens: 1_000n, budget: { window: 9_000n, messages: 1_200n } });
  const window = { systemPrompt: { case: "systemPromptText" as const, value: "kind" }, window: 9_000n };
  const less = smaller(create(BudgetSchema, { kind: { case: "window", value: window } }), response);
  assert.ok(less.kind.case === "window" && less.kind.value.systemPrompt.value === "kind");
  assert.equal(less.kind.value.window, 8_300n);
  const alone = smaller(create(BudgetSchema), create(AssembleResponseSchema, { estimatedTokens: 1_000n }));
  assert.deepEqual(alone.kind, { case: "messageTokens", value: 500n });
});
