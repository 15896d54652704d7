/**
 * Agents that are written with the Node SDKs of OpenAI and Anthropic, as people write them: they keep their own list, call a tool
 * where the model wants it, and know of no service. Prints the list at the end and the digest of each reply as it came.
 *
 *     node agents.mjs chat|responses|messages whole|stream BASE SESSION TURNS
 */
import { createHash } from "node:crypto";

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const [kind, how, base, session, turns] = process.argv.slice(2);
const stream = how === "stream";
const SYSTEM = "You are a careful assistant.";
const TOOL = "look_up";
const SCHEMA = { type: "object", properties: { of: { type: "string" } }, required: ["of"] };
const headers = { "X-ContextEngine-Session": session };

/** Digests of the bytes that came, one a reply. */
const digests = [];

/** What the SDKs fetch by: beside it, the bytes of each reply are looked at. */
async function listening(url, init) {
  const reply = await fetch(url, init);
  const [mine, theirs] = reply.body.tee();
  const at = digests.push(undefined) - 1;
  digests[at] = (async () => {
    const digest = createHash("sha256");
    for await (const chunk of mine) digest.update(chunk);
    return digest.digest("hex");
  })();
  return new Response(theirs, { status: reply.status, headers: reply.headers });
}

const settings = { apiKey: "key", maxRetries: 0, fetch: listening };
const openai = () => new OpenAI({ ...settings, baseURL: `${base}/v1` });

/** One model call each: what the model says, and its calls by id with their arguments. */
const AGENTS = {
  chat: () => {
    const client = openai();
    const messages = [{ role: "system", content: SYSTEM }];
    return {
      messages,
      async step() {
        const tools = [{ type: "function", function: { name: TOOL, parameters: SCHEMA } }];
        const asked = { model: "mock-1", messages, tools };
        const reply = stream
          ? await client.chat.completions.stream(asked, { headers }).finalChatCompletion()
          : await client.chat.completions.create(asked, { headers });
        const { role, content, tool_calls } = reply.choices[0].message;
        messages.push({ role, content, ...(tool_calls?.length ? { tool_calls } : {}) });
        return { text: content ?? "", calls: (tool_calls ?? []).map((call) => [call.id, JSON.parse(call.function.arguments)]) };
      },
      answer(answers) {
        for (const [id, content] of answers) messages.push({ role: "tool", tool_call_id: id, content });
      },
    };
  },
  responses: () => {
    const client = openai();
    const messages = [];
    return {
      messages,
      async step() {
        const tools = [{ type: "function", name: TOOL, parameters: SCHEMA, strict: false }];
        const asked = { model: "mock-1", input: messages, instructions: SYSTEM, store: false, tools };
        const reply = stream
          ? await client.responses.stream(asked, { headers }).finalResponse()
          : await client.responses.create(asked, { headers });
        // What the SDK adds for its users is not the API's.
        for (const { parsed_arguments, ...item } of reply.output) {
          messages.push(item.content ? { ...item, content: item.content.map(({ parsed, ...part }) => part) } : item);
        }
        const calls = reply.output.filter(({ type }) => type === "function_call");
        return { text: reply.output_text, calls: calls.map((call) => [call.call_id, JSON.parse(call.arguments)]) };
      },
      answer(answers) {
        for (const [id, output] of answers) messages.push({ type: "function_call_output", call_id: id, output });
      },
    };
  },
  messages: () => {
    const client = new Anthropic({ ...settings, baseURL: base });
    const messages = [];
    return {
      messages,
      async step() {
        const tools = [{ name: TOOL, input_schema: SCHEMA }];
        const asked = { model: "mock-1", system: SYSTEM, messages, max_tokens: 500, tools };
        const reply = stream
          ? await client.messages.stream(asked, { headers }).finalMessage()
          : await client.messages.create(asked, { headers });
        messages.push({ role: "assistant", content: reply.content });
        const calls = reply.content.filter(({ type }) => type === "tool_use");
        const said = reply.content.filter(({ type }) => type === "text").map(({ text }) => text);
        return { text: said.join(""), calls: calls.map(({ id, input }) => [id, input]) };
      },
      answer(answers) {
        const content = answers.map(([id, result]) => ({ type: "tool_result", tool_use_id: id, content: result }));
        messages.push({ role: "user", content });
      },
    };
  },
};

const agent = AGENTS[kind]();
for (let turn = 0; turn < Number(turns); turn++) {
  agent.messages.push({ role: "user", content: `Question ${turn}? ${"please ".repeat(60)}` });
  for (;;) {
    const { text, calls } = await agent.step();
    if (!calls.length) {
      if (!text.startsWith("Answer")) throw new Error(`the model said ${text}`);
      break;
    }
    agent.answer(calls.map(([id, given]) => [id, `${JSON.stringify(given)} is ${"so ".repeat(120)}`]));
  }
}
const list = kind === "chat" ? agent.messages.slice(1) : agent.messages;
console.log(JSON.stringify({ messages: list, digests: await Promise.all(digests) }));
