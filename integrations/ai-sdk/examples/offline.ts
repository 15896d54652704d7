/** Talks for forty turns with the SDK's mock of a model, and prints what it is sent at the end. Needs a running service. */
import { SmallAgent } from "./host.js";

const agent = new SmallAgent({ window: 16_000, warn: (text) => console.error(text) });
for (let at = 1; at < 40; at++) {
  await agent.turn(`Question ${at}: what of part ${at}?`, `Part ${at} is done. ${"All is well. ".repeat(60)}`, { rounds: at % 3 ? 0 : 1 });
  await agent.rested();
}
await agent.turn("And now?", "Nothing more.");
const sent = agent.calls.at(-1)?.prompt ?? [];
for (const { role, content } of sent) console.log(`${role}: ${JSON.stringify(content).slice(0, 160)}`);
console.log(`${sent.length} of ${agent.messages.length} messages`);
agent.client.close();
