"""Which engines there are, and which one serves whom: the configuration's, or an operator's choice.
An agent never chooses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contextengine import AsyncClient, ContextEngineError
from contextengine import types as t
from contextengine.messages import assistant, tool_call, tool_result, user
from contextengine_server.engines.registration import Registration
from contextengine_server.errors import UnknownEngine
from contextengine_server.store.rows import Assignment
from tests.integration.engines.broken import FRAGILE, REFUSING, SECRET, WANTING
from tests.integration.harness import BOB, RUNTIME, House, house, problem, ref, texts

TENANT, AGENT = t.SessionRef(), t.SessionRef(agent_id="agent")
SHIPPED = ["dag", "compressor", "layered", "legacy", "pipeline"]


async def serving(client: AsyncClient, session: t.SessionRef) -> tuple[str, str]:
    """The engine that serves a session and who chose it, as every rpc that says so agrees."""
    status = await client.get_status(session)
    assembly = await client.assemble(session)
    resolved = await client.engines.get(session=session)
    introduced = await client.bootstrap(session)
    assert status.engine == resolved.engine.info == introduced.engine
    assert (assembly.engine_id, assembly.engine_version) == (
        status.engine.id,
        status.engine.version,
    )
    assert status.engine_source == resolved.source
    return status.engine.id, status.engine_source


async def options_of(client: AsyncClient, session: t.SessionRef) -> dict[str, tuple[object, str]]:
    reply = await client.engines.get(session=session)
    return {option.name: (json.loads(option.value_json), option.source) for option in reply.options}


async def test_the_default_stands_first(house: House) -> None:
    reply = await house.client.engines.list()
    assert reply.default_engine_id == "dag"
    assert [engine.info.id for engine in reply.engines] == SHIPPED
    for engine in reply.engines:
        assert engine.available
        assert (engine.owner, engine.unavailable_reason) == ("core", "")
        assert engine.info.name
        assert engine.info.version


async def test_the_configuration_chooses(tmp_path: Path) -> None:
    async with house(tmp_path, **{"engine.default": "legacy"}) as configured:
        await configured.client.ingest(ref(), user("hello"))
        assert await serving(configured.client, ref()) == ("legacy", "configuration")
        reply = await configured.client.engines.list()
        assert [engine.info.id for engine in reply.engines] == [
            "legacy",
            "compressor",
            "dag",
            "layered",
            "pipeline",
        ]


async def test_an_engine_that_is_not_there_starts_no_server(tmp_path: Path) -> None:
    with pytest.raises(UnknownEngine) as caught:
        async with house(tmp_path, **{"engine.default": "nonesuch"}):
            pass
    assert "dag, layered, legacy" in caught.value.text


async def test_nearer_choices_win(house: House) -> None:
    client = house.client
    await client.ingest(ref(), user("hello"))
    assert await serving(client, ref()) == ("dag", "configuration")
    await client.engines.assign(engine_id="legacy")
    assert await serving(client, ref()) == ("legacy", "tenant")
    await client.engines.assign(scope=AGENT, engine_id="dag")
    assert await serving(client, ref()) == ("dag", "agent")
    reply = await client.engines.assign(scope=ref(), engine_id="legacy")
    assert (reply.engine.id, reply.source) == ("legacy", "session")
    assert await serving(client, ref()) == ("legacy", "session")
    await client.ingest(ref("other"), user("hello"))
    assert await serving(client, ref("other")) == ("dag", "agent")
    await client.ingest(ref("other", agent="another"), user("hello"))
    assert await serving(client, ref("other", agent="another")) == ("legacy", "tenant")
    await house.restart()
    assert await serving(house.client, ref()) == ("legacy", "session")
    for scope, left in (
        (ref(), ("dag", "agent")),
        (AGENT, ("legacy", "tenant")),
        (TENANT, ("dag", "configuration")),
    ):
        reply = await house.client.engines.assign(scope=scope, clear=True)
        assert (reply.engine.id, reply.source) == left if scope is not TENANT else reply.source
        assert await serving(house.client, ref()) == left


async def test_a_choice_for_a_key_serves_its_current_session(house: House) -> None:
    await house.client.ingest(ref("s1", key="main"), user("hello"))
    await house.client.engines.assign(scope=ref("", key="main"), engine_id="legacy")
    assert await serving(house.client, ref("s1")) == ("legacy", "pattern")


async def test_a_choice_made_for_a_session_to_come(house: House) -> None:
    await house.client.engines.assign(scope=ref(), engine_id="legacy")
    assert (await house.client.bootstrap(ref())).engine.id == "legacy"


@pytest.mark.parametrize(
    "scope", [t.SessionRef(session_id="s1"), t.SessionRef(session_key="main")], ids=["id", "key"]
)
async def test_a_session_without_its_agent_is_no_scope(house: House, scope: t.SessionRef) -> None:
    with pytest.raises(ContextEngineError) as caught:
        await house.client.engines.assign(scope=scope, engine_id="legacy")
    assert problem(caught.value) == ("INVALID_ARGUMENT", "INVALID_FIELD", ["scope.agent_id"])
    with pytest.raises(ContextEngineError) as caught:
        await house.client.engines.get(session=scope)
    assert problem(caught.value) == ("INVALID_ARGUMENT", "INVALID_FIELD", ["session.agent_id"])
    await house.client.ingest(ref(), user("hello"))
    assert await serving(house.client, ref()) == ("dag", "configuration")


async def test_options_are_chosen_as_engines_are(house: House) -> None:
    client = house.client
    await client.ingest(ref(), user("hello"))
    assert (await options_of(client, ref()))["freshTailTurns"] == (8, "default")
    await client.engines.assign(options_json=b'{"freshTailTurns": 5, "leafTargetTokens": 900}')
    await client.engines.assign(scope=ref(), options_json=b'{"fresh_tail_turns": 3}')
    options = await options_of(client, ref())
    assert options["freshTailTurns"][0] == 3
    assert options["leafTargetTokens"][0] == 900, "what is nearer says nothing of it"
    assert (await client.get_status(ref())).engine.tail_steps == 3
    await client.ingest(ref("other"), user("hello"))
    assert (await options_of(client, ref("other")))["freshTailTurns"] == (5, "tenant")


async def test_options_within_options_are_chosen_one_by_one(house: House) -> None:
    """A cap for the day leaves the tenant's for the hour as it is."""
    client = house.client
    await client.ingest(ref(), user("hello"))
    await client.engines.assign(
        options_json=b'{"summarizerSpend": {"maxTokensPerTenantPerHour": 1000}}'
    )
    await client.engines.assign(
        scope=ref(), options_json=b'{"summarizerSpend": {"maxTokensPerTenantPerDay": 5000}}'
    )
    caps = (await client.get_status(ref())).summarizers
    assert (caps.max_tokens_per_hour, caps.max_tokens_per_day) == (1000, 5000)


FORMER_CAP = b'{"summarizerSpend": {"maxTokensPerTenantPerHour": 1234}}'
OUR_CAP = b'{"summarizer": {"spend": {"max_tokens_per_tenant_per_hour": 1234}}}'


@pytest.mark.parametrize("cap", [FORMER_CAP, OUR_CAP], ids=["former name", "our name"])
async def test_what_governs_a_tenants_summaries_holds_for_every_engine(
    house: House, cap: bytes
) -> None:
    """A tenant's cap is the tenant's, and not that of its sessions with one engine."""
    client = house.client
    for name, engine in (("one", "dag"), ("two", "legacy")):
        await client.ingest(ref(name), user("hello"))
        await client.engines.assign(scope=ref(name), engine_id=engine)

    async def caps() -> list[int]:
        return [
            (await client.get_status(ref(name))).summarizers.max_tokens_per_hour
            for name in ("one", "two")
        ]

    assert await caps() == [500_000, 500_000]
    await client.engines.assign(options_json=cap)
    assert await caps() == [1234, 1234]
    await house.restart()
    client = house.client
    assert await caps() == [1234, 1234]
    await client.engines.assign(
        scope=ref("two"), engine_id="legacy", options_json=cap.replace(b"1234", b"77")
    )
    assert await caps() == [1234, 77]
    (spend,) = [
        json.loads(option.value_json)
        for option in (await client.engines.get(session=ref("two"))).options
        if option.name == "summarizer.spend"
    ]
    assert spend["max_tokens_per_tenant_per_hour"] == 77


async def test_a_policy_that_an_earlier_version_stored_still_holds(house: House) -> None:
    """It kept the policy among the options of an engine."""
    await house.client.ingest(ref(), user("hello"))
    kept = (
        b'{"dag":{"summarizer_spend":{"max_tokens_per_tenant_per_hour":55},"fresh_tail_turns":3}}'
    )
    await house.app.store.assign(Assignment("default", "", "", "", kept))
    await house.restart()
    status = await house.client.get_status(ref())
    assert (status.summarizers.max_tokens_per_hour, status.engine.tail_steps) == (55, 3)
    await house.client.engines.assign(scope=ref(), engine_id="legacy")
    assert (await house.client.get_status(ref())).summarizers.max_tokens_per_hour == 55


@pytest.mark.parametrize(
    "options",
    [
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff",
        b'{"noSuchOption": 1}',
        b'{"freshTailTurns": 0}',
        b'{"freshTailTurns": 51}',
        b'{"freshTailTurns": "many"}',
        b'{"freshTailTurns": 1e999}',
        b'{"freshTailTurns": 9223372036854775808}',
        b'{"freshTailTurns": null}',
        b'{"freshTailTurns": 3, "fresh_tail_turns": 4}',
        b'{"contextThreshold": NaN}',
        b'{"\\ud800": 1}',
        b'{"x": "' + b"y" * 70_000 + b'"}',
        b"[" * 10_000,
    ],
    ids=lambda raw: raw[:24].decode("utf-8", "replace"),
)
async def test_options_that_cannot_be_are_refused(house: House, options: bytes) -> None:
    with pytest.raises(ContextEngineError) as caught:
        await house.client.engines.assign(engine_id="dag", options_json=options)
    assert problem(caught.value) == ("INVALID_ARGUMENT", "INVALID_FIELD", ["options_json"])
    await house.client.ingest(ref(), user("hello"))
    assert await serving(house.client, ref()) == ("dag", "configuration")


async def test_an_unknown_engine_is_refused_and_the_ids_are_listed(house: House) -> None:
    for call in (
        house.client.engines.assign(engine_id="nonesuch"),
        house.client.engines.get(engine_id="nonesuch"),
    ):
        with pytest.raises(ContextEngineError) as caught:
            await call
        assert problem(caught.value)[:2] == ("FAILED_PRECONDITION", "UNKNOWN_ENGINE")
        assert caught.value.metadata == {
            "engine": "nonesuch",
            "available": "compressor,dag,layered,legacy,pipeline",
        }
    await house.client.ingest(ref(), user("hello"))


async def test_where_the_chosen_engine_is_gone_nothing_runs(tmp_path: Path) -> None:
    async with house(tmp_path, engines=[FRAGILE]) as home:
        await home.client.ingest_batch(ref(), [user("hello"), user("you")])
        await home.client.engines.assign(scope=ref(), engine_id="fragile")
        assert await serving(home.client, ref()) == ("fragile", "session")
        home.engines = []
        await home.restart()
        for call in (
            home.client.assemble(ref()),
            home.client.ingest(ref(), user("more")),
            home.client.after_turn(ref(), [user("more")]),
            home.client.bootstrap(ref()),
            home.client.compact(ref()),
            home.client.get_status(ref()),
        ):
            with pytest.raises(ContextEngineError) as caught:
                await call
            assert problem(caught.value)[:2] == ("FAILED_PRECONDITION", "UNKNOWN_ENGINE")
            assert caught.value.metadata["available"] == "compressor,dag,layered,legacy,pipeline"
        assert texts(await home.rows(ref())) == ["hello", "you"], (
            "it can still be read, and nothing was stored"
        )
        await home.client.ingest(ref("other"), user("hello"))
        checks = (await home.client.engines.doctor(session=ref())).checks
        (check,) = [check for check in checks if check.name == "session.engine"]
        assert check.status != t.DoctorResponse.STATUS_OK
        assert "dag, layered, legacy" in check.found
        await home.client.engines.assign(scope=ref(), clear=True)
        assert await serving(home.client, ref()) == ("dag", "configuration")


async def test_a_choice_goes_with_its_session(house: House) -> None:
    await house.client.ingest(ref(), user("hello"))
    await house.client.engines.assign(scope=ref(), engine_id="legacy")
    await house.client.sessions.delete(ref())
    await house.client.ingest(ref(), user("again"))
    assert await serving(house.client, ref()) == ("dag", "configuration")


async def test_only_operators_choose(guarded: House) -> None:
    runtime = guarded.client_of(RUNTIME)
    with pytest.raises(ContextEngineError) as caught:
        await runtime.engines.assign(engine_id="legacy")
    assert problem(caught.value)[:2] == ("PERMISSION_DENIED", "PERMISSION_DENIED")
    assert {engine.info.id for engine in (await runtime.engines.list()).engines} == set(SHIPPED)


async def test_a_choice_binds_its_tenant_alone(guarded: House) -> None:
    bob = guarded.client_of(BOB)
    for client in (guarded.client, bob):
        await client.ingest(ref(), user("hello"))
    await guarded.client.engines.assign(engine_id="legacy")
    assert await serving(guarded.client, ref()) == ("legacy", "tenant")
    assert await serving(bob, ref()) == ("dag", "configuration")


async def test_how_many_warm_sessions_an_engine_serves(guarded: House) -> None:
    bob = guarded.client_of(BOB)
    for name in ("one", "two", "three"):
        await guarded.client.ingest(ref(name), user("hello"))
    await bob.ingest(ref(), user("hello"))
    await guarded.client.engines.assign(scope=ref("one"), engine_id="legacy")
    counts = {e.info.id: e.session_count for e in (await guarded.client.engines.list()).engines}
    assert counts == {"compressor": 0, "dag": 2, "layered": 0, "legacy": 1, "pipeline": 0}
    counts = {e.info.id: e.session_count for e in (await bob.engines.list()).engines}
    assert counts == {"compressor": 0, "dag": 1, "layered": 0, "legacy": 0, "pipeline": 0}


@pytest.mark.parametrize(
    "registration", [WANTING, REFUSING], ids=["no engine", "a factory that raises"]
)
async def test_what_is_no_engine_is_shown_and_not_chosen(
    tmp_path: Path, registration: Registration
) -> None:
    async with house(tmp_path, engines=[registration]) as home:
        (listed,) = [
            e for e in (await home.client.engines.list()).engines if e.info.id == registration.id
        ]
        assert not listed.available
        assert listed.unavailable_reason
        assert SECRET not in str(listed)
        assert listed.owner == "plugin:test"
        with pytest.raises(ContextEngineError) as caught:
            await home.client.engines.assign(engine_id=registration.id)
        assert problem(caught.value)[:2] == ("INTERNAL", "ENGINE_FAILED")
        assert caught.value.metadata["engine"] == registration.id
        assert SECRET not in str(caught.value)
        await home.client.ingest(ref(), user("hello"))
        assert await serving(home.client, ref()) == ("dag", "configuration")


def looking(number: int) -> list[t.Message]:
    """A model's call, and what the tool answered."""
    call = tool_call(f"c{number}", "look")
    return [assistant(tool_calls=[call]), tool_result(f"c{number}", f"seen {number}")]


async def test_a_turn_goes_on_with_the_engine_that_it_began_with(house: House) -> None:
    client, session = house.client, ref("s1")
    call, seen = looking(1)
    first = await client.assemble(session, ingest=[user("go"), call])
    await client.engines.assign(scope=session, engine_id="legacy")
    await client.ingest(session, seen)
    for more in ([], looking(2), [looking(3)[0]]):
        reply = await client.assemble(session, ingest=more)
        assert (reply.engine_id, reply.context_projection.epoch) == (
            "dag",
            first.context_projection.epoch,
        )
        assert (await client.get_status(session)).engine.id == "dag"
    # Others are between two turns.
    await client.ingest(ref("s2"), user("go"))
    await client.engines.assign(scope=ref("s2"), engine_id="legacy")
    assert (await client.assemble(ref("s2"))).engine_id == "legacy"
    # The model says its last word, and the turn is over.
    await client.ingest_batch(session, [looking(3)[1], assistant("that is all")])
    assert (await client.assemble(session)).engine_id == "legacy"
    assert await serving(client, session) == ("legacy", "session")


@pytest.mark.parametrize("way", ["ingest", "live"])
async def test_what_the_user_says_next_ends_a_turn(way: str, house: House) -> None:
    client, session = house.client, ref("s1")
    said = [user("go", id="u1"), *looking(1)]
    for number, message in enumerate(said):
        message.id = f"m{number}"
    await client.ingest_batch(session, said)
    await client.engines.assign(engine_id="legacy")
    assert (await client.assemble(session)).engine_id == "dag"
    new = user("stop", id="u2")
    live = t.LiveList(messages=[*said, new], store_new=True)
    reply = await client.assemble(
        session, **({"ingest": [new]} if way == "ingest" else {"live": live})
    )
    assert reply.engine_id == "legacy"
    # What is assigned while nothing is assigned any more holds at the next turn, too.
    await client.ingest_batch(session, looking(2))
    await client.engines.assign(clear=True)
    assert (await client.assemble(session)).engine_id == "legacy"
    await client.ingest(session, assistant("done"))
    assert (await client.assemble(session)).engine_id == "dag"
