"""DisposeSession: memory is freed and nothing else."""

from __future__ import annotations

from tests.unit.commands.house import S1, TENANT, Server, scope


async def test_what_is_held_is_let_go(server: Server) -> None:
    await server.ingest("a")
    assert await server.context.dispose_session.run(TENANT, S1)
    assert server.core.cache.find(scope()) is None
    assert server.core.cache.bytes == 0
    assert not await server.context.dispose_session.run(TENANT, S1)
    assert await server.shown() == ["a"]


async def test_a_session_in_use_stays(server: Server) -> None:
    await server.ingest("a")
    async with server.core.sessions.open(scope()):
        assert not await server.context.dispose_session.run(TENANT, S1)
    assert server.core.cache.find(scope()) is not None
