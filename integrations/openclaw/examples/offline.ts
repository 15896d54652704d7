/** Plays forty turns as OpenClaw would, and prints what its model would be shown at the end. Needs a running service. */
import { SmallHost } from "./host.js";

const host = new SmallHost({});
for (let at = 1; at < 40; at++) {
  await host.turn(`Question ${at}: what of part ${at}?`, `Part ${at} is done. ${"All is well. ".repeat(60)}`, 4_000);
}
const [shown] = await host.turn("And now?", "Nothing more.", 4_000);
for (const { role, content } of shown?.messages ?? []) {
  console.log(`${String(role)}: ${JSON.stringify(content).slice(0, 160)}`);
}
console.log(`${shown?.messages.length} of ${host.entries.length - 2} messages, about ${shown?.estimatedTokens} tokens`);
host.service.client.close();
