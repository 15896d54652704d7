/**
 * An agent's loop against a model that is made up: it calls one tool, then answers.
 *
 *     node dist/examples/agent.js 127.0.0.1:50051
 */
import { assistant, Client, newId, type Session, textOf, toolCall, toolResult, user } from "../src/index.js";
import { type Message, Role, type ToolCallPart } from "../src/types.js";

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
    const context = await session.assemble({ ingest });
    if (context.degraded) console.log("the service is away:", context.degraded.reason);
    const { reply, calls } = model(context.messages);
    if (!calls.length) {
      console.log(textOf(reply));
      await session.afterTurn({ messages: [reply] });
      return;
    }
    ingest = [reply, ...calls.map(({ callId }) => toolResult(callId, "in Utrecht, due tomorrow"))];
  }
}

const client = new Client(process.argv[2]);
const session = client.session({ agentId: "example", sessionId: newId() });
for (const question of ["Where is order 4711?", "And order 4712?"]) await turn(session, question);
client.close();
