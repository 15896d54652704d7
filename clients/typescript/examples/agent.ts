/**
 * An agent's loop against a model that is made up: it calls one tool, then answers.
 *
 *     node dist/examples/agent.js [ADDRESS [SESSION [QUESTION ...]]]
 *
 * Without a session it begins one; without questions it asks two of its own. Where OTEL_EXPORTER_OTLP_ENDPOINT is set,
 * each turn is a trace that goes there.
 */
import { assistant, Client, newId, type Session, textOf, toolCall, toolResult, user } from "../src/index.js";
import { type Message, Role, type ToolCallPart } from "../src/types.js";
import { startTracing, traced, tracedCall } from "./tracing.js";

/** Stands in for a provider: asks for the tool once a question, then answers with what the tool said. */
function model(messages: readonly Message[]): { reply: Message; calls: ToolCallPart[] } {
  const last = messages.at(-1);
  if (!last) throw new Error("nothing was asked");
  if (last.role === Role.TOOL) return { reply: assistant(`It is ${textOf(last)}.`), calls: [] };
  const [order = ""] = /\d+/.exec(textOf(last)) ?? [];
  const calls = [toolCall(`call-${order}`, "find_order", { order })];
  return { reply: assistant("", calls), calls };
}

async function turn(session: Session, question: string): Promise<void> {
  let ingest = [user(question)];
  for (;;) {
    const context = await tracedCall("Assemble", () => session.assemble({ ingest }));
    if (context.degraded) console.log("the service is away:", context.degraded.reason);
    const { reply, calls } = model(context.messages);
    if (!calls.length) {
      console.log(textOf(reply));
      await tracedCall("AfterTurn", () => session.afterTurn({ messages: [reply] }));
      return;
    }
    ingest = [reply, ...calls.map(({ callId }) => toolResult(callId, "in Utrecht, due tomorrow"))];
  }
}

const [target, sessionId = newId(), ...asked] = process.argv.slice(2);
const questions = asked.length ? asked : ["Where is order 4711?", "And order 4712?"];
const stopTracing = startTracing();
const client = new Client(target);
const session = client.session({ agentId: "example", sessionId });
for (const question of questions) await traced("invoke_agent example", () => turn(session, question));
client.close();
await stopTracing();
