"""An engine that fails is recorded, shown, and answered for by `on_engine_failure`; what was stored
stays stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.messages import assistant, user
from tests.integration.engines.broken import FRAGILE, REFUSING, SAID, SECRET, Fragile
from tests.integration.harness import (
    ALICE,
    BOB,
    PATIENCE_S,
    RUNTIME,
    TOKENS,
    House,
    budget,
    house,
    problem,
    ref,
    texts,
)

IN_ASSEMBLE = [
    "reach",
    "addition",
    "plan",
    "due",
    "no plan",
    "nothing",
    "steps that are not there",
    "twice",
]
LONG = " and so on" * 60


@asynccontextmanager
async def fragile(
    directory: Path, policy: str = "fail_closed", **settings: object
) -> AsyncIterator[House]:
    """A house whose session `s1` is served by the fragile engine and has a little history."""
    options = {"engine.on_engine_failure": policy, **settings}
    async with house(directory, engines=[FRAGILE], **options) as home:
        await home.client.engines.assign(scope=ref(), engine_id="fragile")
        await home.client.ingest_batch(ref(), [user("q1"), assistant("a1"), user("q2")])
        yield home


async def failed(call) -> ContextEngineError:
    with pytest.raises(ContextEngineError) as caught:
        await call
    assert problem(caught.value)[:2] == ("INTERNAL", "ENGINE_FAILED")
    assert caught.value.metadata["engine"] == "fragile"
    told = str(caught.value) + str(caught.value.metadata)
    assert SECRET not in told
    assert SAID not in told, "it may quote what it choked on"
    return caught.value


@pytest.mark.parametrize("how", IN_ASSEMBLE)
async def test_fail_closed_answers_the_failure(tmp_path: Path, how: str) -> None:
    async with fragile(tmp_path) as home:
        Fragile.how = how
        error = await failed(home.client.assemble(ref()))
        assert error.metadata["operation"] == "assemble"
        if how not in (
            "reach",
            "due",
        ):  # a whole view needs no reach, and a list that is not aligned no compaction
            await failed(home.client.assemble(ref(), explain=True))
            await failed(home.client.assemble(ref(), live=t.LiveList(messages=[user("q1", id="")])))
        Fragile.how = ""
        assert texts((await home.client.assemble(ref())).items) == ["q1", "a1", "q2"], (
            "it is asked again"
        )


@pytest.mark.parametrize("how", IN_ASSEMBLE)
async def test_legacy_stands_in(tmp_path: Path, how: str) -> None:
    async with fragile(tmp_path, "legacy") as home:
        Fragile.how = how
        reply = await home.client.assemble(ref(), ingest=[assistant("a2")])
        assert (reply.outcome, reply.outcome_reason) == (3, "ENGINE_FALLBACK")
        assert reply.engine_id == "legacy", "the engine that really served"
        assert texts(reply.items) == ["q1", "a1", "q2", "a2"]
        assert len(reply.stored) == 1
        Fragile.how = ""
        reply = await home.client.assemble(ref())
        assert (reply.outcome, reply.engine_id) == (1, "fragile")


@pytest.mark.parametrize("policy", ["fail_closed", "legacy"])
async def test_other_sessions_are_not_concerned(tmp_path: Path, policy: str) -> None:
    async with fragile(tmp_path, policy) as home:
        Fragile.how = "plan"
        reply = await home.client.assemble(ref("other"), ingest=[user("hello")])
        assert (reply.engine_id, texts(reply.items)) == ("dag", ["hello"])


@pytest.mark.parametrize("how", ["plan", "due", "reach", "compaction"])
async def test_storing_needs_no_engine(tmp_path: Path, how: str) -> None:
    async with fragile(tmp_path) as home:
        Fragile.how = how
        await home.client.ingest(ref(), assistant("a2"))
        turn = await home.client.after_turn(ref(), [user("q3")], usage=t.Usage(input_tokens=1))
        assert (turn.status, turn.compaction_queued) == (1, False)
        await home.client.bootstrap(ref(), history=[assistant("a3")])
        assert texts(await home.rows(ref())) == ["q1", "a1", "q2", "a2", "q3", "a3"]
        if how == "due":
            assert (await home.client.get_status(ref())).engine_failure.operation == "after turn"


async def test_what_was_stored_before_the_failure_is_there_once(tmp_path: Path) -> None:
    async with fragile(tmp_path) as home:
        Fragile.how = "plan"
        message = assistant("a2")
        await failed(home.client.assemble(ref(), ingest=[message]))
        Fragile.how = ""
        reply = await home.client.assemble(ref(), ingest=[message])
        assert texts(reply.items) == ["q1", "a1", "q2", "a2"]


async def test_the_first_failure_wins_and_all_are_counted(tmp_path: Path) -> None:
    async with fragile(tmp_path) as home:
        Fragile.how = "plan"
        await failed(home.client.assemble(ref()))
        Fragile.how = "compaction"
        await failed(home.client.compact(ref(), force=True))
        status = await home.client.get_status(ref())
        failure = status.engine_failure
        assert (failure.engine_id, failure.operation, failure.count) == ("fragile", "assemble", 2)
        assert failure.reason == f"Boom: {SAID}: password=[redacted]", "this caller is an operator"
        assert failure.time.seconds > 0
        listed = {engine.info.id: engine for engine in (await home.client.engines.list()).engines}
        assert listed["fragile"].failure == failure
        assert not listed["dag"].HasField("failure")
        doctor = await home.client.engines.doctor()
        (check,) = [check for check in doctor.checks if check.name == "engine.failures"]
        assert "fragile" in check.found
        assert check.status == t.DoctorResponse.STATUS_WARNING


async def test_a_failure_is_an_event(tmp_path: Path) -> None:
    async with fragile(tmp_path) as home:
        Fragile.how = "plan"
        await failed(home.client.assemble(ref()))
        async with home.client.sessions.watch(
            resume_position="0", name_prefixes=["engine:failed"]
        ) as events:
            async for event in events:
                if event.name == "engine:failed":
                    break
        assert (event.agent_id, event.session_id) == ("agent", "s1")
        assert event.attributes["engine"] == "fragile"
        assert SECRET not in str(event)


@pytest.mark.parametrize(
    ("how", "law"), [("nothing", "4"), ("twice", "1"), ("steps that are not there", "1")]
)
async def test_a_broken_law_is_named(tmp_path: Path, how: str, law: str) -> None:
    """The protos promise the engine, the operation and the law."""
    async with fragile(tmp_path) as home:
        Fragile.how = how
        error = await failed(home.client.assemble(ref()))
        assert error.metadata["operation"] == "assemble"
        assert error.metadata["law"] == law
        assert error.metadata["how"].startswith(f"law {law} (")


async def test_what_an_engine_said_is_for_operators(tmp_path: Path) -> None:
    """With its type, and without secrets; others hear of the type."""
    operators = {"engine.on_engine_failure": "fail_closed", "auth.tokens": TOKENS}
    async with house(tmp_path, engines=[FRAGILE], token=ALICE, **operators) as home:
        await home.client.engines.assign(engine_id="fragile")
        await home.client.ingest(ref(), user("hello"))
        Fragile.how = "plan"
        runtime = home.client_of(RUNTIME)
        await failed(runtime.assemble(ref()))
        reasons = []
        for client in (home.client, runtime):
            status = await client.get_status(ref())
            listed = {one.info.id: one for one in (await client.engines.list()).engines}
            assert status.engine_failure == listed["fragile"].failure
            reasons.append(status.engine_failure.reason)
        assert reasons == [f"Boom: {SAID}: password=[redacted]", "Boom"]


async def test_no_tenant_hears_of_anothers_failure(tmp_path: Path) -> None:
    operators = {"engine.on_engine_failure": "fail_closed", "auth.tokens": TOKENS}
    async with house(tmp_path, engines=[FRAGILE], token=ALICE, **operators) as home:
        bob, runtime = home.client_of(BOB), home.client_of(RUNTIME)
        for client in (home.client, bob):
            await client.engines.assign(engine_id="fragile")
            await client.ingest(ref(), user("hello"))
        Fragile.how = "plan"
        await failed(home.client.assemble(ref()))
        Fragile.how = ""
        assert (await home.client.get_status(ref())).HasField("engine_failure")
        assert not (await bob.get_status(ref())).HasField("engine_failure")
        listed = {one.info.id: one for one in (await bob.engines.list()).engines}
        assert not listed["fragile"].HasField("failure")
        assert listed["fragile"].session_count == 1, "bob's own"
        checks = (await bob.engines.doctor()).checks
        assert "engine.failures" not in {check.name for check in checks}
        # An operator strikes it off; a runtime may not.
        with pytest.raises(ContextEngineError) as refused:
            await runtime.engines.doctor(clear_failures=True)
        assert problem(refused.value)[1] == "PERMISSION_DENIED"
        told = (await home.client.engines.doctor(clear_failures=True)).checks
        assert "engine.failures" in {check.name for check in told}
        assert not (await home.client.get_status(ref())).HasField("engine_failure")


async def test_the_log_says_what_an_engine_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with fragile(tmp_path) as home:
        Fragile.how = "plan"
        await failed(home.client.assemble(ref()))
    logged = capsys.readouterr().err
    assert "engine_failed" in logged
    assert SAID in logged
    assert "in plan" in logged, "where it was thrown"
    assert SECRET not in logged


async def test_an_operator_mends_it_by_another_choice(tmp_path: Path) -> None:
    async with fragile(tmp_path) as home:
        Fragile.how = "plan"
        await failed(home.client.assemble(ref()))
        await home.client.engines.assign(scope=ref(), engine_id="legacy")
        assert texts((await home.client.assemble(ref())).items) == ["q1", "a1", "q2"]
        assert not (await home.client.get_status(ref())).HasField("engine_failure")


# Compaction


async def long_session(home: House) -> None:
    said = [user(f"q{n}" + LONG) if n % 2 == 0 else assistant(f"a{n}" + LONG) for n in range(60)]
    await home.client.ingest_batch(ref(), said)


@pytest.mark.parametrize("how", ["compaction", "no step", "a step that is not there"])
async def test_a_failing_compaction_is_answered(tmp_path: Path, how: str) -> None:
    async with fragile(tmp_path) as home:
        await long_session(home)
        Fragile.how = how
        error = await failed(home.client.compact(ref(), force=True, budget=budget(2_000)))
        assert error.metadata["operation"] == "compact"
        assert (await home.client.get_status(ref())).summary_count == 0
        Fragile.how = ""
        assert (await home.client.compact(ref(), force=True, budget=budget(2_000))).summaries


@pytest.mark.parametrize("how", ["addition", "reach", "plan"])
async def test_what_fails_beside_a_compaction_is_the_engines_failure_as_well(
    tmp_path: Path, how: str
) -> None:
    """Whatever a compaction asks of the engine; it is never a defect of the service."""
    async with fragile(tmp_path) as home:
        await long_session(home)
        Fragile.how = how
        proposed = home.client.compact(
            ref(),
            force=True,
            budget=budget(2_000),
            propose_only=True,
            return_list=True,
            request_id="one",
        )
        assert (await failed(proposed)).metadata["operation"] == "compact"


async def test_the_built_in_compaction_stands_in(tmp_path: Path) -> None:
    async with fragile(tmp_path, "legacy") as home:
        await long_session(home)
        Fragile.how = "compaction"
        done = await home.client.compact(ref(), force=True, budget=budget(12_000))
        assert done.compacted
        assert (done.ok, done.reason) == (False, "engine fragile failed, legacy stood in")
        assert len(done.summaries) == 1
        assert (await home.client.get_status(ref())).engine_failure.operation == "compact"
        Fragile.how = ""
        assert (await home.client.assemble(ref(), budget=budget(2_000))).outcome == 1


async def test_background_work_that_fails_is_shown_and_owed(tmp_path: Path) -> None:
    async with fragile(tmp_path) as home:
        await long_session(home)
        Fragile.how = "compaction"
        reply = await home.client.after_turn(ref(), [user("more")], budget=budget(3_000))
        assert reply.compaction_queued
        async with asyncio.timeout(PATIENCE_S):
            while True:
                status = await home.client.get_status(ref())
                if status.jobs and status.jobs[0].last_error:
                    break
                await asyncio.sleep(0.03)
        assert (status.jobs[0].state, status.jobs[0].last_error) == ("waiting", "EngineFailed")
        assert status.engine_failure.operation == "compact"


# Engines that cannot be made, and the end of engines


@pytest.mark.parametrize("policy", ["fail_closed", "legacy"])
async def test_a_factory_that_raises_is_a_failing_engine(tmp_path: Path, policy: str) -> None:
    async with fragile(tmp_path, policy) as home:
        home.engines = [replace(FRAGILE, make=REFUSING.make)]
        await home.restart()
        if policy == "fail_closed":
            error = await failed(home.client.assemble(ref()))
            assert error.metadata["operation"] == "load"
            await failed(home.client.ingest(ref(), user("more")))
            return
        reply = await home.client.assemble(ref())
        assert (reply.engine_id, texts(reply.items)) == ("legacy", ["q1", "a1", "q2"])
        status = await home.client.get_status(ref())
        assert (status.engine.id, status.engine_source) == ("legacy", "session")
        assert (status.engine_failure.engine_id, status.engine_failure.operation) == (
            "fragile",
            "load",
        )


@pytest.mark.parametrize("how", ["", "dispose"])
async def test_engines_are_disposed_of_once_each(tmp_path: Path, how: str) -> None:
    async with fragile(tmp_path) as home:
        await home.client.engines.assign(
            scope=ref("other"), engine_id="fragile", options_json=b'{"freshTailTurns": 2}'
        )
        for name in ("s1", "other", "third"):
            await home.client.assemble(ref(name), ingest=[user("hello")])
        Fragile.how = how
        await home.stop()
        assert Fragile.disposed == 2, "one for each set of options"
        Fragile.how = ""
        await home.start()
        assert texts((await home.client.assemble(ref("other"))).items) == ["hello"]
