"""Three servers over one PostgreSQL: what an operator or an owner does at one is told once, by that
one, and holds at all of them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from structlog.testing import capture_logs

from contextengine import AsyncClient
from contextengine import types as t
from contextengine.messages import user
from contextengine_server.app import running
from contextengine_server.config.load import load_settings
from contextengine_server.plugins.engines import installed_engines
from tests import postgres
from tests.integration.api_infra.test_audit import told
from tests.integration.harness import ALICE, PATIENCE_S, TOKENS, ref

SERVERS = 3


async def test_what_is_done_at_one_server_is_told_once(tmp_path: Path) -> None:
    postgres.require()
    flags = {
        "server.address": "127.0.0.1:0",
        "store.url": postgres.place(tmp_path),
        "auth.tokens": [{**TOKENS[0], "name": "alice's own"}, *TOKENS[1:]],
        "auth.owners": ["alice"],
    }
    settings = load_settings(None, flags, {}, installed_engines())
    with capture_logs() as logs:
        async with AsyncExitStack() as stack:
            clients = []
            for _ in range(SERVERS):
                app = await stack.enter_async_context(running(settings))
                client = AsyncClient(app.address, token=ALICE, fallback=False)
                clients.append(await stack.enter_async_context(client))
            first, second, third = clients
            await first.engines.set_quota(tenant="alice", quota=t.Quota(waits=7))
            async with asyncio.timeout(PATIENCE_S):
                for client in clients:
                    while await _waits(client) != 7:
                        await asyncio.sleep(0.02)
            await second.ingest(ref(), user("a secret word"))
            await third.sessions.delete(ref())
            for client in clients:
                assert not (await client.sessions.list()).sessions
    [line] = told(logs, "quota_set")
    assert (line["of"], line["quota"], line["caller"]) == ("alice", {"waits": 7}, "alice's own")
    [line] = told(logs, "deleted")
    assert (line["session"], line["sessions"], line["caller"]) == ("s1", 1, "alice's own")
    assert "a secret word" not in str(logs)


async def _waits(client: AsyncClient) -> int:
    """The quota that is in force at a server."""
    reply = await client.engines.list_quotas(tenant="alice")
    return reply.tenants[0].in_force.waits
