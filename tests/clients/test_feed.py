"""A feed of the client for TypeScript, of whose call nothing was heard. That of Python is held in
tests/integration/test_conversation.py."""

from __future__ import annotations

import json

import pytest

from tests.clients.drivers import NAMED, ROOT
from tests.clients.node import ran

BROUGHT = """
import { connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, Feed, user } from "./dist/src/index.js";

const [host, port] = process.env.CONTEXTENGINE_ADDRESS.split(":");
let hears = true;
const relay = createServer((socket) => {
  const there = connect(Number(port), host).on("error", () => socket.destroy());
  socket.on("error", () => there.destroy()).pipe(there);
  there.on("data", (some) => void (hears && socket.write(some)));
});
await new Promise((resolve) => relay.listen(0, "127.0.0.1", resolve));
const ref = { agentId: "feed", sessionId: "talk" };
const beside = new Client(process.env.CONTEXTENGINE_ADDRESS);
const client = new Client(`127.0.0.1:${relay.address().port}`, { retryForMs: 0 });
const feed = new Feed(client, ref);
const list = (ids) => [...ids].map((id) => ({ ...user(id), id }));
const held = async () => {
  const { messageCount, lastMessageId } = await beside.contextEngine.getStatus({ session: ref });
  return `${messageCount} ${lastMessageId}`;
};

await feed.bring(list("abc"));
hears = false;
await feed.bring(list("abcd"), { timeoutMs: 300 }).catch(() => undefined);
while ((await held()) !== "4 d") await sleep(10);
hears = true;
for (;;) {
  try {
    await feed.bring(list("abcx"), { timeoutMs: 1_000 });
    break;
  } catch { await sleep(50); }
}
console.log(JSON.stringify(await held()));
process.exit();
"""

pytestmark = pytest.mark.skipif("typescript" not in NAMED, reason="TypeScript is not built here")


def test_what_it_stored_leaves_the_view_where_the_host_goes_on_without(address: str) -> None:
    told = ran(ROOT / "clients" / "typescript", address, "--input-type=module", "-e", BROUGHT)
    assert json.loads(told) == "4 x"
