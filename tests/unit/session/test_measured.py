"""What a harness measured tells what is counted too low here, and nothing where no compaction could
help."""

from __future__ import annotations

import pytest

from contextengine_server.context.budget import ModelTokens, ReferenceTokens
from contextengine_server.session.assembly.budget import SYSTEM, TOOLS, BudgetSpec, Outside
from contextengine_server.session.assembly.pressure import (
    messages_in,
    uncounted_in,
    with_uncounted,
)
from contextengine_server.session.model import Sent
from contextengine_server.session.state import ModelFacts
from contextengine_server.tokens import Bill
from tests.unit.commands.house import Server, scope

NAMED = SYSTEM | TOOLS


@pytest.mark.parametrize(
    ("outside", "factor", "messages"),
    [
        (Outside(), 1.0, 1_000),
        (Outside(ModelTokens(100)), 1.0, 900),
        (Outside(ModelTokens(100), ReferenceTokens(200)), 1.0, 700),
        # What was counted here comes to more for a model that counts more.
        (Outside(ModelTokens(100), ReferenceTokens(200)), 1.5, 400),
        (Outside(ModelTokens(1_500)), 1.0, 0),
    ],
)
def test_what_is_measured_of_messages(outside: Outside, factor: float, messages: int) -> None:
    assert messages_in(ModelTokens(1_000), outside, ModelFacts(), factor) == messages


def test_a_bill_says_what_is_unnamed_where_it_named_the_same() -> None:
    model = ModelFacts(newest_bill=Bill(400, 900, SYSTEM), learned=1.5)
    # 900 billed, of which 400 * 1.5 were messages.
    part = Outside(ModelTokens(50), named=SYSTEM)
    assert messages_in(ModelTokens(1_000), part, model, 1.0) == 1_000 - 50 - 300
    other = Outside(ModelTokens(50), named=TOOLS)
    assert messages_in(ModelTokens(1_000), other, model, 1.0) == 950
    whole = Outside(ModelTokens(50), named=NAMED)
    assert messages_in(ModelTokens(1_000), whole, model, 1.0) == 950
    less = ModelFacts(newest_bill=Bill(900, 400, SYSTEM))
    assert messages_in(ModelTokens(1_000), part, less, 1.0) == 950


def test_what_is_known_of_a_prompt_that_was_sent() -> None:
    sent = Sent(ReferenceTokens(100), Outside(ModelTokens(30), ReferenceTokens(20)))
    assert sent.estimated(1.0) == 150
    assert sent.estimated(2.0) == 270
    assert Sent().estimated(2.0) == 0


async def test_an_assembly_says_what_is_not_counted(server: Server) -> None:
    await server.talk(1, 6)
    plain = await server.assemble(8_000)
    tokens = plain.view.view_tokens()
    assert (plain.uncounted, plain.due) == (0, False)
    more = await server.assemble(8_000, measured=ModelTokens(tokens + 500))
    assert (more.uncounted, more.tokens) == (500, plain.tokens)
    # What the prompt holds besides messages is none of it.
    budget = BudgetSpec(message_tokens=8_000, system_prompt=300, named=SYSTEM)
    beside = await server.assemble(budget=budget, measured=ModelTokens(tokens + 800))
    assert beside.uncounted == 500
    less = await server.assemble(8_000, measured=ModelTokens(tokens - 1))
    assert less.uncounted == 0
    due = await server.assemble(6_000, measured=ModelTokens(tokens + 1_000))
    assert (due.due, (await server.assemble(6_000)).due) == (True, False)


async def test_a_session_says_the_same(server: Server) -> None:
    await server.talk(1, 6)
    room = ReferenceTokens(8_000)
    spec = BudgetSpec(message_tokens=8_000)
    engine = (await server.core.selection.engine_for(scope())).engine
    async with server.core.sessions.open(scope(), None) as session:
        view = session.view
        tokens = view.view_tokens()
        told = uncounted_in(ModelTokens(tokens + 500), session, engine, spec, room)
        assert told == 500
        assert uncounted_in(None, session, engine, spec, room) == 0
    assert with_uncounted(view, told) == tokens + 500
    assert with_uncounted(view, ReferenceTokens(0)) is None
