"""Assemble: the reply is written of the assembly; one that was asked twice is at hand while nothing
changes; a compaction that is due is queued."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from contextengine_server.commands.turn import assemble
from contextengine_server.commands.turn.assemble import ReplyFields
from contextengine_server.commands.turn.reply_cache import MAX_QUESTION_BYTES
from contextengine_server.context.budget import ModelTokens
from contextengine_server.session.address import Ref
from contextengine_server.session.assembly.assembly import FITS, OVER_BUDGET, AssembleCall, Assembly
from contextengine_server.session.assembly.budget import BudgetSpec
from contextengine_server.store.debts import Debt
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.telemetry.tracing import NO_TRACE
from tests.unit.commands.house import AGENT, S1, TENANT, Server, scope, texts_of

QUESTION = (TENANT, b"question")


class Writer:
    """Writes the texts of the items, and a full stop for a projection."""

    projects = True

    def __init__(self) -> None:
        self.made: list[Assembly] = []

    def write(self, assembly: Assembly) -> ReplyFields:
        self.made.append(assembly)
        return ReplyFields("|".join(texts_of(assembly)).encode(), assembly.joined.total, 1)

    async def explained(self, assembly: Assembly) -> list[bytes]:
        raise NotImplementedError

    async def beside(self, reply: bytes, assembly: Assembly) -> bytes:
        return reply + b"."


async def ask(server: Server, tokens: int = 100_000, ref: Ref = S1) -> bytes:
    known = await server.context.assemble.again(QUESTION, NO_TRACE)
    if known is not None:
        return b"again " + known
    call = AssembleCall(TENANT, ref, budget=BudgetSpec(message_tokens=tokens))
    return await server.context.assemble.run(call, QUESTION, Writer())


class Explaining(Writer):
    """Explains, and knows whether somebody else had a turn between the reply and that."""

    projects = False
    others = False

    def write(self, assembly: Assembly) -> ReplyFields:
        asyncio.get_running_loop().call_soon(setattr, self, "others", True)
        return super().write(assembly)

    async def explained(self, assembly: Assembly) -> list[bytes]:
        return [b" after others" if self.others else b" at once"]


@pytest.mark.parametrize("at_once", [0, 2_000])
async def test_a_long_list_is_explained_as_it_was_assembled(
    server: Server, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(assemble, "JOINED_AT_ONCE", at_once)
    await server.ingest("a", "b")
    call = AssembleCall(TENANT, S1, budget=BudgetSpec(message_tokens=100_000), whole=True)
    reply = await server.context.assemble.run(call, QUESTION, Explaining())
    assert reply == b"a|b at once"


async def test_the_reply_is_what_the_writer_makes_of_it(server: Server) -> None:
    await server.ingest("a", "b")
    assert await ask(server) == b"a|b."


async def test_what_is_asked_often_is_at_hand_while_nothing_changes(server: Server) -> None:
    await server.ingest("a")
    assert [await ask(server) for _ in range(3)] == [b"a.", b"a.", b"again a."]
    sent = server.core.meters.tokens_sent.value
    answered = server.core.meters.assembled[FITS].value
    await ask(server)
    assert server.core.meters.assembled[FITS].value == answered + 1
    assert server.core.meters.tokens_sent.value > sent
    await server.ingest("b")
    assert await ask(server) == b"a|b."


async def test_another_engine_answers_anew(server: Server) -> None:
    await server.ingest("a")
    for _ in range(3):
        await ask(server)
    await server.engines.assign.run(scope(), "legacy", {}, clear=False)
    assert not (await ask(server)).startswith(b"again")


async def test_another_life_of_the_session_answers_anew(server: Server) -> None:
    await server.ingest("a")
    for _ in range(3):
        await ask(server)
    await server.sessions.delete.run(TENANT, S1, expected_revision=None, cascade=False)
    await server.ingest("b")
    assert await ask(server) == b"b."


async def test_what_a_key_names_is_not_kept(server: Server) -> None:
    await server.ingest("a", ref=Ref(AGENT, key="chat"))
    for _ in range(3):
        assert await ask(server, ref=Ref(AGENT, key="chat")) == b"a."


async def test_a_compaction_that_is_due_is_queued_once(server: Server) -> None:
    await server.talk(1, 6)
    for _ in range(2):
        await ask(server, 3_000)
    assert [debt.kind for debt in await server.store.debts(scope())] == ["compact"]
    assert server.core.queue.woken.is_set()


async def test_nothing_is_read_or_stored_without_an_agent(server: Server) -> None:
    writer = Writer()
    call = AssembleCall(TENANT, Ref("", "s1"), budget=BudgetSpec(message_tokens=100))
    await server.context.assemble.run(call, QUESTION, writer)
    assert writer.made[0].outcome_reason == "INCOMPLETE_SCOPE"
    assert (await server.store.counts())["sessions"] == 0


async def test_what_does_not_fit_says_so(server: Server) -> None:
    await server.talk(1, 1)
    assert (await server.assemble(10)).outcome != FITS
    assert (await server.assemble(100_000)).outcome == FITS
    assert OVER_BUDGET in {(await server.assemble(tokens)).outcome for tokens in (1, 5, 10)}


async def test_watchers_are_told_how_a_list_begins_anew(server: Server) -> None:
    await server.ingest("a")
    for _ in range(2):
        await ask(server)
    (told,) = server.events("context:budget_computed")
    assert told.counts["items"] == 1
    assert told.attributes["verdict"] == "fits"
    assert server.events("context:evicted") == []
    assert await server.store.debts(scope()) == [], "and nothing is due"


async def test_what_is_told_of_a_list_says_where_it_stands(server: Server) -> None:
    await server.talk(1, 12)
    wide = BudgetSpec(window=20_000, system_prompt=300, tools=70, output_reserve=4_000)
    for spec, verdict in (
        (wide, "fits"),
        (BudgetSpec(message_tokens=2_000), "fits"),
        (BudgetSpec(message_tokens=10), "over_budget"),
    ):
        before = len(server.events("context:"))
        writer = Writer()
        await server.context.assemble.run(AssembleCall(TENANT, S1, budget=spec), QUESTION, writer)
        (made,) = writer.made
        computed, *rest = server.events("context:")[before:]
        assert (computed.name, computed.session, computed.revision) == (
            "context:budget_computed",
            "s1",
            1,
        )
        assert computed.counts == {
            "window": spec.window or 0,
            "system_prompt": spec.system_prompt,
            "tools": spec.tools,
            "output_reserve": spec.output_reserve or 0,
            "available": made.budget.available,
            "cell": made.cell,
            "items": len(texts_of(made)),
            "tokens": made.tokens,
        }
        source = made.budget.source
        assert source
        assert computed.attributes == {
            "verdict": verdict,
            "window_source": source,
            "engine": "dag",
        }
        evicted = made.view.view_tokens() - made.tokens
        told = {"tokens": evicted, "first_step": made.plan.cut}
        expected = [("context:evicted", "s1", 1, told)] if evicted else []
        if verdict == "over_budget":
            over = {"tokens": made.tokens, "budget": 10}
            expected.append(("context:overflow", "s1", 1, over))
        assert [(one.name, one.session, one.revision, one.counts) for one in rest] == expected
        for one in rest[: len(rest) - (verdict == "over_budget")]:
            assert one.attributes == {"engine": "dag", "rule": made.plan.rule}


async def test_a_long_question_and_a_long_answer_are_not_kept(server: Server) -> None:
    await server.ingest("a")
    call = AssembleCall(TENANT, S1, budget=BudgetSpec(message_tokens=100_000))
    for length in (MAX_QUESTION_BYTES, MAX_QUESTION_BYTES + 1):
        question = TENANT, b"q" * length
        for _ in range(2):
            await server.context.assemble.run(call, question, Writer())
        known = await server.context.assemble.again(question, NO_TRACE)
        assert (known is None) == (length > MAX_QUESTION_BYTES)


async def test_what_was_answered_of_a_session_that_is_gone_is_forgotten(server: Server) -> None:
    await server.ingest("a")
    await server.ingest("b", ref=Ref(AGENT, "s2"))
    for _ in range(2):
        await ask(server)
    server.context.assemble.replies.forget(scope(Ref(AGENT, "s2")))
    assert await server.context.assemble.again(QUESTION, NO_TRACE) is not None
    server.context.assemble.replies.forget(scope())
    assert await server.context.assemble.again(QUESTION, NO_TRACE) is None


async def test_what_a_harness_measured_more_is_told_to_the_compaction(server: Server) -> None:
    await server.talk(1, 6)
    spec = BudgetSpec(message_tokens=12_000)
    call = AssembleCall(TENANT, S1, budget=spec, measured=ModelTokens(11_500))
    writer = Writer()
    await server.context.assemble.run(call, QUESTION, writer)
    (debt,) = await server.store.debts(scope())
    assert orjson.loads(debt.payload)["uncounted"] == writer.made[0].uncounted > 0


async def test_what_is_owed_is_recorded_once_the_store_can_be_written(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk takes no read: what a read would have recorded the next one does."""

    async def full(debt: Debt) -> None:
        raise StoreUnavailable("the disk is full")

    await server.talk(1, 6)
    with monkeypatch.context() as patched:
        patched.setattr(server.store, "add_debt", full)
        for _ in range(3):
            assert not (await ask(server, 3_000)).startswith(b"again")
    assert await server.store.debts(scope()) == []
    await ask(server, 3_000)
    assert [debt.kind for debt in await server.store.debts(scope())] == ["compact"]
