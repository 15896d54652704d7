"""Retention as a server does it: sessions go by rule, and a tenant over its cap is told so."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from tests.integration.assemble.asking import say
from tests.integration.harness import PATIENCE_S, Clock, House, house, ref


async def test_old_sessions_go_while_the_server_runs(tmp_path: Path) -> None:
    clock = Clock()
    rules = [{"agent": "agent", "max_age": "1d"}]
    more = {"retention.rules": rules, "retention.interval": 1}
    async with house(tmp_path, clock=clock, **more) as at:
        await at.client.ingest(ref("old"), say("old"))
        clock.advance(2 * 86_400)
        await at.client.ingest(ref("new"), say("new"))
        async with asyncio.timeout(PATIENCE_S):
            while len((await at.client.sessions.list()).sessions) > 1:
                await asyncio.sleep(0.1)
        (left,) = (await at.client.sessions.list()).sessions
        assert left.session_id == "new"


async def fill(at: House, session: t.SessionRef) -> None:
    """Writes until it may no more."""
    async with asyncio.timeout(PATIENCE_S):
        for number in range(10_000):
            await at.client.ingest(session, say(f"m{number}", 500))


async def test_a_tenant_over_its_cap_is_told_what_to_do(tmp_path: Path) -> None:
    async with house(tmp_path, **{"retention.caps": [{"max_bytes": 20_000}]}) as at:
        with pytest.raises(ContextEngineError) as caught:
            await fill(at, ref("large"))
        assert caught.value.code.name == "RESOURCE_EXHAUSTED"
        assert caught.value.metadata["field"] == "retention.caps"
        assert caught.value.metadata["limit"] == "20000"
        assert "delete sessions" in str(caught.value)
        assert (await at.client.assemble(ref("large"))).items
        await at.client.sessions.delete(ref("large"))
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    await at.client.ingest(ref("small"), say("again"))
                    break
                except ContextEngineError:
                    await asyncio.sleep(0.1)
