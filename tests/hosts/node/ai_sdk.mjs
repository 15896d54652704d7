/**
 * An agent of the AI SDK of Vercel, as people write one: it keeps its list, and its model is wrapped. The model asks who knows what to
 * say. Takes a line of JSON at a time from standard input, and answers each with one.
 *
 *     node ai_sdk.mjs SERVICE BRAIN WINDOW
 */
import { createInterface } from "node:readline";

import { APICallError, generateText, jsonSchema, stepCountIs, tool, wrapLanguageModel } from "ai";
import { MockLanguageModelV3 } from "ai/test";

import { Client } from "../../../clients/typescript/dist/src/index.js";
import { Keeper } from "../../../integrations/ai-sdk/dist/src/index.js";

const [address, brain, window] = process.argv.slice(2);
const system = "You are a careful assistant.";
const keeper = new Keeper(new Client(address, { breaker: true }), { window: Number(window) });

/** What of a prompt or of the list is said, in order. */
function textsOf(messages) {
  return messages.filter(({ role }) => role !== "system").flatMap(({ content }) => (typeof content === "string" ? [content] : content.map(textIn))).filter(Boolean);
}

function textIn({ text, output }) {
  return output === undefined ? text : output.value;
}

async function ask(path, given) {
  const reply = await fetch(`${brain}/${path}`, { method: "POST", body: JSON.stringify(given) });
  const responseBody = await reply.text();
  if (!reply.ok) throw new APICallError({ message: "Bad Request", url: brain, requestBodyValues: {}, statusCode: reply.status, responseBody });
  return JSON.parse(responseBody);
}

const count = { total: 100, noCache: 100, cacheRead: 0, cacheWrite: 0, text: 5, reasoning: 0 };
const mock = new MockLanguageModelV3({
  doGenerate: async ({ prompt }) => {
    const { words, calls, number } = await ask("answer", { texts: textsOf(prompt), asked: prompt.at(-1).role === "user" });
    const wanted = calls.map((given, at) => ({
      type: "tool-call",
      toolCallId: `call_${number}_${at}`,
      toolName: "look_up",
      input: JSON.stringify(given),
    }));
    const providerMetadata = { mock: { itemId: `item_${number}` } };
    const content = [...(words ? [{ type: "text", text: words, providerMetadata }] : []), ...wanted];
    const finishReason = { unified: wanted.length ? "tool-calls" : "stop", raw: undefined };
    return { content, finishReason, usage: { inputTokens: count, outputTokens: count }, warnings: [] };
  },
});
const tools = {
  look_up: tool({
    description: "Looks something up.",
    inputSchema: jsonSchema({ type: "object", properties: { of: { type: "string" } }, required: ["of"] }),
    execute: async (given) => (await ask("look_up", given)).found,
  }),
};

let messages = [];

/** Says something in a session, and hears the answer. What fails leaves the list as it was. */
async function say({ session, words }) {
  const model = wrapLanguageModel({ model: mock, middleware: keeper.middleware({ sessionId: session }) });
  const asked = [...messages, { role: "user", content: words }];
  const { response } = await generateText({ model, system, messages: asked, tools, stopWhen: stepCountIs(20) });
  messages = [...asked, ...response.messages];
}

for await (const line of createInterface({ input: process.stdin })) {
  const given = JSON.parse(line);
  let error;
  if (given.messages) messages = given.messages;
  try {
    if (given.words) await say(given);
  } catch (failed) {
    error = `${failed.message} ${failed.responseBody ?? ""}`;
  }
  process.stdout.write(`${JSON.stringify({ error, messages, texts: textsOf(messages) })}\n`);
}
