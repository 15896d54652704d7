"""AfterTurn: a turn's messages and bill, exactly once under a key, and whether a compaction is
due."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from contextengine_server.commands.turn.after_turn import Turn
from contextengine_server.commands.turn.update_model import Model
from contextengine_server.context.budget import ModelTokens
from contextengine_server.errors import BudgetImpossible
from contextengine_server.session.assembly.budget import BudgetSpec
from contextengine_server.session.model import Report
from contextengine_server.session.receipt import Disposition
from contextengine_server.store.debts import Debt
from contextengine_server.store.errors import StoreUnavailable
from tests.integration.engines.broken import FRAGILE, Fragile
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import (
    S1,
    TENANT,
    Rows,
    Server,
    incoming,
    request,
    scope,
    spoken,
    turns,
    user,
)

SMALL_BUDGET = BudgetSpec(message_tokens=3_000)
BILLED = Report(input_tokens=10, output_tokens=5, billed=True)


async def test_messages_and_bill_come_in_one_commit(server: Server) -> None:
    done = await server.context.after_turn.run(TENANT, S1, Turn(spoken("a", "b"), report=BILLED))
    assert (done.written.revision, done.queued) == (1, False)
    assert await server.stored() == ["a", "b"]
    assert (await server.state()).usage.input_tokens == 10
    assert server.core.meters.reported["input_tokens"].value == 10


async def test_a_conflict_stops_nothing(server: Server) -> None:
    await server.ingest("a")
    messages = incoming(user("other", "a"), user("b", "b"))
    done = await server.context.after_turn.run(TENANT, S1, Turn(messages, first_index=3))
    assert [(one.index, one.disposition) for one in done.written.stored] == [
        (3, Disposition.CONFLICT),
        (4, Disposition.STORED),
    ]
    assert await server.stored() == ["a", "b"]


async def test_a_key_makes_it_once_whatever_it_carries(server: Server) -> None:
    await server.context.after_turn.run(TENANT, S1, Turn((), key="k", report=BILLED))
    again = Turn(spoken("a"), key="k", report=BILLED)
    done = await server.context.after_turn.run(TENANT, S1, again)
    assert done.written.repeated
    assert done.written.revision == 1
    assert (await server.state()).usage.input_tokens == 10
    assert await server.stored() == []
    assert server.core.meters.reported["input_tokens"].value == 10


async def test_the_same_request_again_is_billed_once(server: Server) -> None:
    turn = Turn(spoken("a", ids=False), request=request(), report=BILLED)
    for _ in range(2):
        await server.context.after_turn.run(TENANT, S1, turn)
    assert await server.stored() == ["a"]
    assert (await server.state()).usage.reports == 1


async def test_a_budget_that_cannot_be_is_refused_before_anything_is_stored(
    server: Server,
) -> None:
    turn = Turn(spoken("a"), report=BILLED, budget=BudgetSpec(message_tokens=0))
    with pytest.raises(BudgetImpossible):
        await server.context.after_turn.run(TENANT, S1, turn)
    assert await server.store.head(scope()) is None


async def test_a_compaction_that_is_due_is_queued(server: Server) -> None:
    turn = Turn(turns(1, 6), budget=SMALL_BUDGET, cause="trace")
    done = await server.context.after_turn.run(TENANT, S1, turn)
    assert done.queued
    (debt,) = await server.store.debts(scope())
    assert (debt.kind, debt.cause) == ("compact", "trace")
    # The worker compacts for what this turn's budget leaves.
    assert orjson.loads(debt.payload)["available"] == 3_000


async def test_below_the_threshold_nothing_is_due_unless_the_harness_measured_more(
    server: Server,
) -> None:
    budget = BudgetSpec(message_tokens=12_000)
    done = await server.context.after_turn.run(TENANT, S1, Turn(turns(1, 6), budget=budget))
    assert not done.queued
    turn = Turn(turns(7, 1), budget=budget, measured=ModelTokens(11_500))
    done = await server.context.after_turn.run(TENANT, S1, turn)
    assert done.queued


async def test_an_engine_that_does_not_defer_compacts_here(serve: Serve) -> None:
    server = await serve(**{"engine.dag.deferCompaction": False})
    done = await server.context.after_turn.run(TENANT, S1, Turn(turns(1, 6), budget=SMALL_BUDGET))
    assert not done.queued
    assert await server.store.summaries(scope())
    assert await server.store.debts(scope()) == []
    assert done.written.revision == (await server.head()).revision


async def test_nothing_is_due_after_an_undo(server: Server) -> None:
    await server.talk(1, 6)
    await server.compact(4_000)
    await server.compact(undo_to_generation=0)
    done = await server.context.after_turn.run(TENANT, S1, Turn(turns(7, 1), budget=SMALL_BUDGET))
    assert not done.queued


async def test_an_engine_that_fails_stops_no_turn(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await serve(engines=[FRAGILE])
    await server.engines.assign.run(scope(), "fragile", {}, clear=False)
    monkeypatch.setattr(Fragile, "how", "due")
    done = await server.context.after_turn.run(TENANT, S1, Turn(spoken("a"), budget=SMALL_BUDGET))
    assert not done.queued
    assert await server.stored() == ["a"]
    (told,) = server.events("engine:failed")
    assert (told.attributes["engine"], told.attributes["operation"]) == ("fragile", "after turn")
    assert server.core.selection.failures.of(TENANT, "fragile") is not None
    monkeypatch.setattr(Fragile, "how", "")
    await server.context.after_turn.run(TENANT, S1, Turn(spoken("b"), budget=SMALL_BUDGET))
    assert server.core.selection.failures.of(TENANT, "fragile") is None


async def test_a_key_is_spent_by_a_turn_that_was_not_billed(server: Server) -> None:
    turn = Turn(turns(1, 6), budget=SMALL_BUDGET, key="k")
    done = await server.context.after_turn.run(TENANT, S1, turn)
    assert (done.written.repeated, done.queued) == (False, True)
    again = await server.context.after_turn.run(
        TENANT, S1, Turn(spoken("b"), budget=SMALL_BUDGET, key="k")
    )
    assert (again.written.repeated, again.queued) == (True, False)
    assert "b" not in await server.stored()
    assert (await server.state()).usage.reports == 0


async def test_a_turn_is_charged_as_the_sessions_model(server: Server) -> None:
    await server.context.update_model.run(TENANT, S1, Model("claude-sonnet-4-5"), None)
    await server.context.after_turn.run(TENANT, S1, Turn(spoken("a"), report=BILLED))
    assert (await server.state()).usage.priced_micro_usd == 10 * 3 + 5 * 15


async def test_a_turn_is_stored_where_what_is_owed_cannot_be_recorded(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(debt: Debt) -> None:
        raise StoreUnavailable("the disk is full")

    turn = Turn(turns(1, 6), budget=SMALL_BUDGET)
    with monkeypatch.context() as patched:
        patched.setattr(server.store, "add_debt", full)
        done = await server.context.after_turn.run(TENANT, S1, turn)
    assert (done.written.revision, done.queued) == (1, False)
    assert await server.store.debts(scope()) == []
    again = Turn(spoken("more"), budget=SMALL_BUDGET)
    assert (await server.context.after_turn.run(TENANT, S1, again)).queued


@pytest.mark.parametrize("engine", ["dag", "pipeline", "compressor", "layered"])
async def test_a_compaction_is_due_whatever_memory_holds(engine: str) -> None:
    """A server that reads the session anew for each call (others answered between, or it has no
    memory to spare) owes it no later than one that holds it."""

    settings: dict[str, Any] = {"engine.default": engine}

    async def due(*, forgets: bool) -> list[bool]:
        server = await Server(Rows(), **settings).open()
        queued = []
        for number in range(12):
            if forgets:
                server.core.cache.drop(scope())
            turn = Turn(turns(number, 1), budget=BudgetSpec(message_tokens=6_000))
            queued.append((await server.context.after_turn.run(TENANT, S1, turn)).queued)
            await server.assemble(6_000)
        await server.close()
        return queued

    warm = await due(forgets=False)
    assert any(warm)
    assert not all(warm)
    assert await due(forgets=True) == warm
