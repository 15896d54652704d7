"""A call that was cancelled before it was sent is not sent, by the client for TypeScript: gRPC for
Node would send it, and it might be done behind the caller's next one."""

from __future__ import annotations

import json

import pytest

from tests.clients.drivers import NAMED, ROOT
from tests.clients.node import ran

ASKED = """
import { Client, user } from "./dist/src/index.js";
const client = new Client(process.env.CONTEXTENGINE_ADDRESS);
const signal = AbortSignal.abort();
const codes = [];
for (let at = 0; at < 20; at++) {
  const session = client.session({ agentId: "cancelled", sessionId: `${at}` });
  const asked = { live: { messages: [user("said")], storeNew: true } };
  const streamed = async () => { for await (const _ of session.export({}, { signal })); };
  const calls = [
    session.assemble(asked, { signal }), session.ingest({ message: user("said") }, { signal }),
    streamed(),
    client.sessions.import([{ kind: { case: "header", value: {} } }], { signal }),
  ];
  for (const { reason } of await Promise.allSettled(calls)) codes.push(reason?.code ?? 0);
}
const { sessions } = await client.sessions.list({ agentId: "cancelled" });
console.log(JSON.stringify([[...new Set(codes)], sessions.length]));
client.close();
"""
CANCELLED = 1

pytestmark = pytest.mark.skipif("typescript" not in NAMED, reason="TypeScript is not built here")


def test_it_is_not_sent(address: str) -> None:
    told = ran(ROOT / "clients" / "typescript", address, "--input-type=module", "-e", ASKED)
    assert json.loads(told) == [[CANCELLED], 0]
