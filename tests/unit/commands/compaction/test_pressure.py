"""One meaning of pressure: what the harness measured is the whole prompt, and compaction stops
where it cannot help."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contextengine_server.commands.turn.after_turn import Turn
from contextengine_server.context.budget import ModelTokens, ReferenceTokens
from contextengine_server.engines.dag.engine import DagEngine
from contextengine_server.engines.dag.options import DagOptions
from contextengine_server.session.assembly.budget import SYSTEM, TOOLS, BudgetSpec, Outside
from contextengine_server.session.assembly.pressure import messages_in, uncounted
from contextengine_server.session.state import ModelFacts
from contextengine_server.testing.engine.random_sessions import RandomSession, sessions
from contextengine_server.testing.engine.views import entries_of, folded
from contextengine_server.tokens import Bill
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import S1, TENANT, Server, scope, turns

DAG = DagEngine(DagOptions())
NAMED = BudgetSpec(window=128_000, system_prompt=15_000, tools=25_000, named=SYSTEM | TOOLS)


async def view_tokens(server: Server) -> int:
    """The tokens of the session's view."""
    async with server.core.sessions.open(scope(), None) as session:
        tokens: int = session.view.view_tokens()
        return tokens


@pytest.mark.parametrize("outside", [0, 40_000])
async def test_a_prompt_as_it_was_counted_here_changes_nothing(serve: Serve, outside: int) -> None:
    """Thirty turns with the whole prompt measured are as thirty without a measurement."""
    server = await serve(**{"engine.dag.deferCompaction": False})
    for turn in range(30):
        told = Turn(turns(turn + 1, 1), budget=NAMED)
        if outside:
            view = await view_tokens(server) if turn else 0
            told = Turn(told.messages, budget=NAMED, measured=ModelTokens(view + outside))
        await server.context.after_turn.run(TENANT, S1, told)
    assert server.summarizer.asked == []
    assert len((await server.assemble(budget=NAMED)).plan.segments) == 1


async def test_a_measurement_that_compaction_cannot_lower_does_not_eat_the_history(
    serve: Serve,
) -> None:
    """A host that measures 59,500 of 60,000 at every turn, whatever was compacted."""
    server = await serve(**{"engine.dag.deferCompaction": False})
    budget = BudgetSpec(message_tokens=60_000)
    for turn in range(60):
        told = Turn(turns(turn + 1, 1), budget=budget, measured=ModelTokens(59_500))
        await server.context.after_turn.run(TENANT, S1, told)
        assert await view_tokens(server) >= min(800 * (turn + 1), 14_000)
    assert await server.store.summaries(scope())


async def test_what_is_measured_above_our_count_is_compacted_away(serve: Serve) -> None:
    """The harness counts half as much again: it is that count that comes below the threshold."""
    server = await serve(**{"engine.dag.deferCompaction": False})
    await server.talk(1, 12)
    tokens = await view_tokens(server)
    more = tokens // 2
    available = round((tokens + more) / 0.96)
    done = await server.compact(available, force=False, to_threshold=True, measured=tokens + more)
    assert done.done.summaries
    assert done.done.after + more <= 0.95 * available
    again = await server.compact(
        available, force=False, to_threshold=True, measured=done.done.after + more
    )
    assert not again.done.summaries


@given(sessions(), st.integers(0, 60_000), st.integers(0, 60_000), st.integers(0, 200_000))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_a_measurement_of_what_we_count_is_none(
    session: RandomSession, given_tokens: int, counted: int, available: int
) -> None:
    view = folded(entries_of(session.rows))
    outside = Outside(ModelTokens(given_tokens), ReferenceTokens(counted), SYSTEM | TOOLS)
    measured = ModelTokens(view.view_tokens() + given_tokens + counted)
    messages = messages_in(measured, outside, ModelFacts(), 1.0)
    assert messages == view.view_tokens()
    room = ReferenceTokens(available)
    assert uncounted(messages, view, DAG, room) == 0
    more = uncounted(ReferenceTokens(messages + 700), view, DAG, room)
    assert more in (0, 700)
    assert more <= DAG.threshold * available * 2 / 3


def test_bills_say_what_a_request_leaves_unnamed() -> None:
    model = ModelFacts(newest_bill=Bill(10_000, 27_000))
    measured = ModelTokens(30_000)
    assert messages_in(measured, Outside(), model, 1.0) == 13_000
    named = Outside(ModelTokens(17_000), named=SYSTEM | TOOLS)
    assert messages_in(measured, named, model, 1.0) == 13_000
    assert messages_in(ModelTokens(5_000), Outside(), model, 1.0) == 0
