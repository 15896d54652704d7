"""FITS, OVER_BUDGET with the smallest lawful list and the biggest items, DEGRADED with a reason;
engine failures. See docs/semantics.md#outcomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import pytest

from contextengine import types as t
from contextengine_server.context.plan import Keep, Plan
from contextengine_server.context.view import View
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.engines.registration import Registration
from tests.integration.harness import House, budget, ref, texts
from tests.integration.harness import house as living

from .asking import (
    ask,
    assign,
    calls,
    ids_of,
    judged,
    live,
    origins,
    quiet,
    reply_with,
    result,
    say,
    store,
    talk,
)
from .judging import DEGRADED, FITS, OVER, tokens_of

pytestmark = pytest.mark.asyncio(loop_scope="module")
PIN = {"pinned": "yes"}


def pinned(message: t.Message) -> t.Message:
    message.labels.update(PIN)
    return message


def system(name: str, words: int = 10) -> t.Message:
    return t.Message(id=name, role=t.ROLE_SYSTEM, parts=say(name, words).parts)


SESSION = [
    system("policy", 60),
    say("u1", 40),
    pinned(reply_with("a1", 40)),
    say("u2", 40),
    reply_with("a2", 40),
    say("u3", 40),
    calls("a3", "c1"),
    result("r3", "c1", 80),
]


async def test_the_smallest_lawful_list(shared: House, session: t.SessionRef) -> None:
    await store(shared, session, SESSION)
    await quiet(shared, session)
    reply = await ask(shared, session, budget=budget(50))
    assert reply.outcome == OVER
    # Leading, pinned, the newest user message, the last step as short as can be; nothing else.
    assert ids_of(reply.items) == ["policy", "a1", "u3", "a3", "r3"]
    assert [item.form for item in reply.items] == [*[t.FORM_UNSPECIFIED] * 4, t.FORM_HEAD_TAIL]
    assert tokens_of(reply.items) > 50
    said = reply.budget.system_prompt_addition
    assert said
    assert reply.estimated_tokens == tokens_of(reply.items) + said
    assert await judged(shared, reply, session) == []
    sizes = [item.tokens for item in reply.biggest]
    assert sizes == sorted((item.tokens for item in reply.items), reverse=True)
    assert {item.rule for item in reply.biggest} == {
        "leading",
        "pinned",
        "last user message",
        "last step",
    }
    for item in reply.biggest:
        assert reply.items[item.index].tokens == item.tokens
        assert reply.items[item.index].origin == item.origin
    exactly = await ask(shared, session, budget=budget(reply.estimated_tokens))
    assert (exactly.outcome, exactly.items) == (FITS, reply.items)
    assert len(exactly.biggest) == 0
    assert await judged(shared, exactly, session) == []
    less = await ask(shared, session, budget=budget(reply.estimated_tokens - 1))
    assert (less.outcome, less.items) == (OVER, reply.items)
    stored = {row.message.id: row.tokens for row in await shared.rows(session)}
    tokens = said + sum(stored[name] for name in ids_of(reply.items))
    whole = await ask(shared, session, budget=budget(tokens))
    assert (whole.outcome, ids_of(whole.items)) == (FITS, ids_of(reply.items))
    assert {item.form for item in whole.items} == {t.FORM_UNSPECIFIED}
    assert await judged(shared, whole, session) == []


async def test_pending_calls_are_part_of_it(shared: House, session: t.SessionRef) -> None:
    await store(shared, session, [*SESSION, calls("a4", "c2", "c3"), result("r4", "c2")])
    reply = await ask(shared, session, budget=budget(50))
    assert (reply.outcome, ids_of(reply.items)[-2:]) == (OVER, ["a4", "r4"])
    assert "pending" in {item.rule for item in reply.biggest}


async def test_legacy_never_evicts(shared: House, session: t.SessionRef) -> None:
    await assign(shared, session, "legacy")
    await store(shared, session, talk(20))
    reply = await ask(shared, session, budget=budget(100))
    assert (reply.outcome, len(reply.items), len(reply.biggest)) == (OVER, 40, 10)
    assert [b.tokens for b in reply.biggest] == sorted(
        (b.tokens for b in reply.biggest), reverse=True
    )
    assert {b.rule for b in reply.biggest} <= {"never evicted", "last user message", "last step"}
    assert await judged(shared, reply, session) == []


async def test_a_session_of_users_alone(shared: House, session: t.SessionRef) -> None:
    """A message in no step counts as a step of its own: the tail is the newest eight."""
    await store(shared, session, [say(f"u{n}", 20) for n in range(30)])
    await quiet(shared, session)
    reply = await ask(shared, session, budget=budget(500))
    assert ids_of(reply.items)[-8:] == [f"u{n}" for n in range(22, 30)]
    assert await judged(shared, reply, session) == []


@pytest.mark.parametrize("live_list", [False, True])
async def test_without_an_agent_nothing_is_read(shared: House, live_list: bool) -> None:
    await store(shared, ref("s", agent="agent"), [say("secret")])
    sent = [
        say("u1"),
        calls("a1", "c1", "c2"),
        result("r1", "c1"),
        result("r2", "nobody"),
        say("u2"),
    ]
    nobody = t.SessionRef(session_id="s")
    fields: dict[str, Any] = {"live": live(sent, store_new=True)} if live_list else {"ingest": sent}
    reply = await ask(shared, nobody, **fields)
    assert (reply.outcome, reply.outcome_reason) == (DEGRADED, "INCOMPLETE_SCOPE")
    assert (reply.revision, len(reply.stored)) == (0, 0)
    assert origins(reply) == ["live 0", "live 1", "live 2", "synthetic", "live 4"]
    assert texts(await shared.rows(ref("s"))) == texts([say("secret")])
    small = await ask(shared, nobody, **fields, budget=budget(5))
    assert small.outcome == OVER
    assert ids_of(small.items) == ["u2"]
    assert len((await ask(shared, t.SessionRef())).items) == 0


async def test_every_other_call_needs_the_agent(shared: House) -> None:
    nobody = t.SessionRef(session_id="s")
    stub = shared.stub
    for call in (
        stub.Bootstrap(t.BootstrapRequest(session=nobody)),
        stub.Ingest(t.IngestRequest(session=nobody, message=say("u1"))),
        stub.IngestBatch(t.IngestBatchRequest(session=nobody, messages=[say("u1")])),
        stub.AfterTurn(t.AfterTurnRequest(session=nobody, messages=[say("u1")])),
        stub.Compact(t.CompactRequest(session=nobody, force=True)),
        stub.GetStatus(t.GetStatusRequest(session=nobody)),
        stub.ReportUsage(t.ReportUsageRequest(session=nobody, usage=t.Usage(input_tokens=1))),
        stub.UpdateModel(t.UpdateModelRequest(session=nobody, model="gpt-4o")),
        stub.ResetSession(t.ResetSessionRequest(session=nobody)),
        stub.Maintain(t.MaintainRequest(session=nobody)),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert "agent_id" in (refused.value.details() or "")


class Throwing(DagEngine):
    """Fails at whatever it is asked."""

    id = "throwing"

    def plan(self, view: View, budget: int, reserved: int = 0) -> Plan:
        raise ZeroDivisionError("a text that must not be seen outside")


class Lawless(DagEngine):
    """Leaves out everything but the newest step, whatever must stay."""

    id = "lawless"

    def plan(self, view: View, budget: int, reserved: int = 0) -> Plan:
        return Plan((Keep(view.steps - 1, view.steps - 1, "as I like it"),))


ENGINES = [
    Registration("throwing", DagOptions, Throwing, "plugin:test"),
    Registration("lawless", DagOptions, Lawless, "plugin:test"),
]


@pytest.mark.parametrize("engine", ["throwing", "lawless"])
async def test_a_failing_engine_fails_closed(tmp_path: Path, engine: str) -> None:
    async with living(tmp_path, engines=ENGINES) as house:
        await assign(house, ref(), engine)
        for fields in ({"ingest": SESSION}, {"live": live([system("other"), say("unaligned")])}):
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await ask(house, ref(), **fields)
            assert failed.value.code() == grpc.StatusCode.INTERNAL
            assert engine in (failed.value.details() or "")
            assert "must not be seen" not in (failed.value.details() or "")
        # What came with the call was stored before the engine ran.
        assert ids_of(await house.rows(ref())) == ids_of(SESSION)
        status = await house.client.get_status(ref())
        assert (status.engine_failure.engine_id, status.engine_failure.operation) == (
            engine,
            "assemble",
        )
        assert status.engine_failure.count == 2


@pytest.mark.parametrize("engine", ["throwing", "lawless"])
async def test_or_legacy_answers(tmp_path: Path, engine: str) -> None:
    async with living(tmp_path, engines=ENGINES, **{"engine.on_engine_failure": "legacy"}) as house:
        await assign(house, ref(), engine)
        reply = await ask(house, ref(), ingest=SESSION)
        assert (reply.outcome, reply.outcome_reason) == (DEGRADED, "ENGINE_FALLBACK")
        assert reply.engine_id == "legacy"
        assert ids_of(reply.items) == ids_of(SESSION)
        assert await judged(house, reply, ref()) == []
        over = await ask(house, ref(), budget=budget(50))
        assert (over.outcome, over.outcome_reason) == (OVER, "ENGINE_FALLBACK")
        unaligned = await ask(house, ref(), live=live([system("other"), say("x")]))
        assert (unaligned.outcome_reason, ids_of(unaligned.items)) == ("UNALIGNED", ["other", "x"])
        assert unaligned.engine_id == "legacy"
        house.forget()
        assert ids_of((await ask(house, ref(), live=live([*SESSION, say("x")]))).items) == ids_of(
            SESSION
        )
