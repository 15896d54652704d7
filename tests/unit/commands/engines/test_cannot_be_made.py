"""What is told of engines that are installed and cannot serve, and of the scopes that requests
name."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contextengine_server.commands.engines.scope import scope_of
from contextengine_server.context.scope import Scope
from contextengine_server.engines.registration import Registration
from contextengine_server.errors import EngineFailed, UnknownEngine
from contextengine_server.health.checks import ERROR, OK, WARNING
from contextengine_server.session.address import Ref
from contextengine_server.store.errors import StoreUnavailable
from tests.integration.engines.broken import FRAGILE, Fragile
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import AGENT, S1, TENANT, Server, scope


def refusing() -> Registration:
    """An engine whose factory refuses."""

    def refuses(options: object) -> Fragile:
        raise RuntimeError("no licence")

    return replace(FRAGILE, make=refuses)


async def test_one_that_cannot_be_made_is_listed_with_its_reason(serve: Serve) -> None:
    server = await serve(engines=[refusing()])
    listed = {one.registration.id: one for one in (await server.engines.list.run(TENANT)).engines}
    assert listed["fragile"].engine is None
    assert (
        listed["fragile"].unavailable
        == "engine 'fragile' of plugin:test cannot be made: RuntimeError"
    )
    assert (listed["dag"].engine is not None, listed["dag"].unavailable) == (True, "")
    assert next(iter(listed)) == "dag"
    assert list(listed)[1:] == sorted(list(listed)[1:])


async def test_one_that_was_refused_is_told_as_failed_to_load(serve: Serve) -> None:
    server = await serve(engines=[replace(FRAGILE, id=" ")])
    (refused,) = (await server.engines.list.run(TENANT)).refused
    with pytest.raises(EngineFailed) as told:
        await server.engines.get.run(scope(), refused.id)
    assert told.value.metadata == {
        "engine": refused.id,
        "operation": "load",
        "how": str(refused.why),
    }
    assert str(told.value) == (
        f"engine {refused.id!r} failed to load: {refused.why}: mend or remove its plugin"
    )


async def test_one_that_is_not_there_is_told_with_those_that_are(server: Server) -> None:
    with pytest.raises(UnknownEngine) as told:
        await server.engines.get.run(scope(), "none")
    ids = server.registry.ids
    assert str(told.value) == (
        f"engine 'none' is not registered. Available engines: {', '.join(ids)}"
    )
    assert told.value.metadata == {"engine": "none", "available": ",".join(ids)}


async def test_what_is_got_says_who_chose_it(server: Server) -> None:
    found = await server.engines.get.run(scope(), "")
    assert (found.status.registration.id, found.source, found.options_source) == (
        "dag",
        "configuration",
        "configuration",
    )
    assert found.values.model_dump()["fresh_tail_turns"] == 1
    other = await server.engines.get.run(scope(), "legacy")
    assert (other.source, other.options_source) == ("request", "configuration")
    assert other.policy_source == "configuration"


async def test_a_request_names_a_session_an_agent_or_the_tenant(server: Server) -> None:
    await server.ingest("a", ref=Ref(AGENT, "s7", "chat"))
    addresses = server.core.addresses
    for ref, named in [
        (S1, scope()),
        (Ref(AGENT, key="chat"), Scope(TENANT, AGENT, "s7")),
        (Ref(AGENT), Scope(TENANT, AGENT, "")),
        (Ref(""), Scope(TENANT, "", "")),
    ]:
        assert await scope_of(addresses, TENANT, ref) == named


async def test_a_doctor_finds_a_session_whose_engine_is_gone(serve: Serve) -> None:
    server = await serve(engines=[FRAGILE])
    await server.ingest("a")
    await server.engines.assign.run(scope(), "fragile", {}, clear=False)
    other = await serve()
    (found,) = [
        one for one in await other.engines.doctor.run(TENANT, S1) if one.name == "session.engine"
    ]
    ids = ", ".join(other.registry.ids)
    assert found.status == WARNING
    assert found.found == f"engine 'fragile' is not registered. Available engines: {ids}"
    assert found.advice == "Assign one of the engines that exist."


async def test_a_doctor_says_where_rows_cannot_be_read(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.ingest("a")

    async def gone(scope: Scope) -> None:
        raise StoreUnavailable("the disk is gone")

    monkeypatch.setattr(server.store, "head", gone)
    checks = await server.engines.doctor.run(TENANT, S1)
    named = {one.name: one for one in checks}
    assert named["session.engine"].status == OK
    assert named["session.engine"].found == "dag, chosen by configuration"
    assert (checks[-1].name, checks[-1].status, checks[-1].found, checks[-1].advice) == (
        "session.integrity.unreadable",
        ERROR,
        "rows of the session cannot be read as they are stored",
        "Restore the database from a backup, unless the checks of the store say why it cannot be"
        " read at all.",
    )


async def test_failures_are_struck_off_where_asked(server: Server) -> None:
    failures = server.core.selection.failures
    server.core.selection.failed(scope(), "dag", "assemble", KeyError())
    await server.engines.doctor.run(TENANT, S1)
    assert failures.of(TENANT, "dag") is not None
    await server.engines.doctor.run(TENANT, S1, clear_failures=True)
    assert failures.of(TENANT, "dag") is None
