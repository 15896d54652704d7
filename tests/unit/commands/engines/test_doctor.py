"""Doctor: what is wrong, and what of it can be put right."""

from __future__ import annotations

from msgspec.structs import replace

from contextengine_server.health.checks import OK, healthy
from tests.unit.commands.house import S1, TENANT, Rows, Server, scope


async def wrong(server: Server) -> list[str]:
    checks = await server.engines.doctor.run(TENANT, S1)
    return [check.name for check in checks if check.status != OK]


async def test_a_sound_session(server: Server) -> None:
    await server.talk(1, 6)
    await server.compact(4_000)
    checks = await server.engines.doctor.run(TENANT, S1)
    assert healthy(checks), checks
    found = {check.name: check.found for check in checks}
    assert found["session.engine"] == "dag, chosen by configuration"


async def test_without_a_session_only_the_server_is_looked_at(server: Server) -> None:
    checks = await server.engines.doctor.run(TENANT, None)
    assert healthy(checks)
    assert not [check for check in checks if check.name.startswith("session.")]


async def test_what_follows_from_the_messages_is_put_right(server: Server, rows: Rows) -> None:
    await server.ingest("a", "b")
    stored = rows.tables.sessions[scope()]
    stored.head = replace(stored.head, message_tokens=99)
    assert await wrong(server)
    assert (await server.head()).message_tokens == 99
    await server.engines.doctor.run(TENANT, S1, repair=True)
    assert not await wrong(server)
    assert (await server.head()).message_tokens == (await server.assemble()).tokens


async def test_a_session_that_is_not_there_leaves_nothing(server: Server) -> None:
    assert healthy(await server.engines.doctor.run(TENANT, S1))
