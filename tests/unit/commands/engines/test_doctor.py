"""Doctor: what is wrong, and what of it can be put right."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.commands.lifecycle.record_host_change import Rewound
from contextengine_server.context.scope import Scope
from contextengine_server.health import integrity
from contextengine_server.health.checks import OK, healthy
from contextengine_server.recall.audit import stale_passages
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Assignment
from tests.unit.commands.house import S1, TENANT, Rows, Server, incoming, request, scope

Meanwhile = Callable[[int], Awaitable[None]]


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


async def test_an_assignment_to_an_engine_that_is_gone_is_an_error(server: Server) -> None:
    """A plug-in was removed, or the server is older than the assignment."""
    assert healthy(await server.engines.doctor.run(TENANT, None))
    for session in ("", "s1"):
        await server.store.assign(Assignment(TENANT, "agent", session, "nonesuch"))
    await server.store.assign(Assignment(TENANT, "", "", "legacy"))
    checks = await server.engines.doctor.run(TENANT, None)
    assert not healthy(checks)
    (check,) = [one for one in checks if one.name == "engine.assignment"]
    assert check.found.startswith(
        f"nonesuch is assigned to agent agent of tenant {TENANT}, session s1 of agent agent of"
    )
    # Whose engines are whose is nobody else's business.
    assert healthy(await server.engines.doctor.run("another", None))


async def test_failures_are_told_to_whom_they_belong_and_struck_off(server: Server) -> None:
    selection, doctor = server.core.selection, server.engines.doctor
    selection.failed(scope(), "dag", "assemble", ValueError("21,247 tokens"))

    async def told(tenant: str, **how: bool) -> list[str]:
        checks = await doctor.run(tenant, None, **how)
        return [check.found for check in checks if check.name == "engine.failures"]

    assert await told("another") == []
    listed = await server.engines.list.run("another")
    assert not any(one.failure for one in listed.engines)
    (found,) = await told(TENANT, clear_failures=True)
    assert "21,247 tokens" in found
    assert await told(TENANT) == []


async def test_a_success_takes_a_failure_away(server: Server) -> None:
    await server.talk(1, 6)
    for operation in ("assemble", "compact"):
        server.core.selection.failed(scope(), "dag", operation, ValueError("for once"))
        assert (await server.context.get_status.run(TENANT, S1, 0)).failure is not None
        if operation == "assemble":
            await server.assemble()
        else:
            await server.compact(4_000)
        assert (await server.context.get_status.run(TENANT, S1, 0)).failure is None


LEAK = "decided secretly to use ZX-077 because the user wrote 2026"


@pytest.mark.parametrize("form", ["part", "tags", "openly"])
async def test_a_summary_that_quotes_private_reasoning_is_found(server: Server, form: str) -> None:
    """Earlier versions gave it to summarizers. What was said openly as well is no secret."""
    answer = pb.Message(role=pb.ROLE_ASSISTANT, id="thinks")
    if form == "part":
        answer.parts.add().reasoning.text = f"Well.\n{LEAK}. So be it."
    answer.parts.add().text.text = {
        "part": "Done, the parcel is on its way.",
        "tags": f"<think>{LEAK}</think>Done, the parcel is on its way.",
        "openly": f"<think>{LEAK}</think>I {LEAK}.",
    }[form]
    await server.context.ingest.run(TENANT, S1, incoming(answer), None)
    await server.talk(1, 6)
    assert await wrong(server) == []
    server.summarizer.says = f"assistant: {LEAK}. The rest was about files."
    assert (await server.compact(4_000)).done.summaries
    checks = {one.name: one for one in await server.engines.doctor.run(TENANT, S1)}
    assert healthy(list(checks.values()))
    assert ("session.integrity.private_summary" in checks) == (form != "openly")


async def test_a_summary_that_stood_in_for_a_better_one_is_listed(server: Server) -> None:
    server.summarizer.says = "A model says what the files were about, in a few words."
    await server.talk(1, 6)
    assert (await server.compact(4_000)).done.summaries
    assert await wrong(server) == []
    server.summarizer.says = "I'm sorry, I can't help with that."
    await server.talk(7, 6)
    assert (await server.compact(4_000)).done.summaries
    (name,) = await wrong(server)
    assert name == "session.integrity.stand_in_summary"


async def looked_at(server: Server, monkeypatch: pytest.MonkeyPatch, meanwhile: Meanwhile) -> int:
    """How often a session is looked at that is changed in the middle of the first two looks. What
    is found must be sound."""
    looks = 0

    async def passages(store: Store, scope: Scope) -> int:
        nonlocal looks
        looks += 1
        if looks < 3:
            await meanwhile(looks)
        return await stale_passages(store, scope)

    monkeypatch.setattr(integrity, "stale_passages", passages)
    checks = await server.engines.doctor.run(TENANT, S1)
    assert healthy(checks), checks
    return looks


async def test_a_session_that_goes_on_meanwhile_is_looked_at_once(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was when that began: a long one that is compacted all the while would never be."""
    await server.talk(1, 12)

    async def goes_on(look: int) -> None:
        await server.ingest(f"more {look}")
        await server.compact(4_000)
        assert (await server.head()).summary_count

    assert await looked_at(server, monkeypatch, goes_on) == 1


async def test_a_session_that_is_rewound_meanwhile_is_looked_at_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.talk(1, 6)

    async def rewound(look: int) -> None:
        change = Rewound(6 - look)
        await server.context.record_host_change.run(TENANT, S1, change, request(f"r{look}"))

    assert await looked_at(server, monkeypatch, rewound) == 3
