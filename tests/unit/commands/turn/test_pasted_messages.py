"""A large paste does not blank the session (docs/semantics.md#pasted-messages)."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.context.message import Form
from contextengine_server.context.plan import segment_slots
from contextengine_server.session.assembly.assembly import (
    DEGRADED,
    FITS,
    OVER_BUDGET,
    AssembleCall,
    Assembly,
)
from contextengine_server.session.assembly.budget import BudgetSpec
from contextengine_server.session.assembly.pasted import with_bounded_prompt
from contextengine_server.testing.oracle.bounded import MARKER, dishonest
from contextengine_server.wire.slots import item_of
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import (
    S1,
    TENANT,
    Rows,
    Server,
    assistant,
    incoming,
    long,
    result,
    texts_of,
    turns,
    user,
)


def pasted(lines: int) -> str:
    return "\n".join(f"{at:06} the log says that all is well" for at in range(lines))


def bounded(made: Assembly) -> list[int]:
    """The sequences that are shown head and tail."""
    slots = [slot for segment in made.plan.segments for slot in segment_slots(segment, made.view)]
    return [slot.sequence for slot in slots if slot.form is Form.HEAD_TAIL]


@pytest.fixture
async def server(serve: Serve) -> Server:
    return await serve(**{"engine.dag.freshTailTurns": 8})


async def test_a_paste_is_shown_head_and_tail_and_the_session_with_it(server: Server) -> None:
    await server.talk(1, 20)
    await server.context.ingest.run(TENANT, S1, incoming(user(pasted(3_000), "paste")), None)
    made = await server.assemble(10_000)
    assert (made.outcome, made.outcome_reason) == (DEGRADED, "PROMPT_BOUNDED")
    assert bounded(made) == [41]
    assert made.tokens <= made.cell
    assert len(texts_of(made)) > 5  # the turns before it are there as well
    said = texts_of(made)[-1]
    assert said.startswith("000000 the log")
    assert said.endswith("002999 the log says that all is well")
    found = MARKER.search(said)
    assert found is not None
    assert found["sequence"] == "41"
    # The next turn goes on with it, bounded like any other.
    await server.context.ingest.run(
        TENANT, S1, incoming(assistant("I see", "a41"), user("and now?", "u42")), None
    )
    after = await server.assemble(10_000)
    assert after.outcome == FITS
    assert texts_of(after)[-2:] == ["I see", "and now?"]
    assert len(texts_of(after)) >= 6


async def test_it_stays_as_it_is_through_its_turn(server: Server) -> None:
    await server.talk(1, 3)
    await server.context.ingest.run(TENANT, S1, incoming(user(pasted(3_000), "paste")), None)
    before = await server.assemble(10_000)
    for step in range(3):
        call = assistant("", f"c{step}", f"call{step}")
        answer = result(f"call{step}", long(f"r{step}", 60), f"r{step}")
        await server.context.ingest.run(TENANT, S1, incoming(call, answer), None)
        made = await server.assemble(10_000)
        assert made.outcome_reason == "PROMPT_BOUNDED"
        assert texts_of(made)[: len(texts_of(before))] == texts_of(before)
        assert made.epoch == before.epoch
    await server.context.ingest.run(TENANT, S1, incoming(user("next", "next")), None)
    assert (await server.assemble(10_000)).epoch != before.epoch


async def test_whoever_wants_it_whole_says_so(server: Server) -> None:
    await server.context.ingest.run(TENANT, S1, incoming(user(pasted(3_000), "paste")), None)
    address = await server.core.addresses.find(TENANT, S1)
    call = AssembleCall(TENANT, S1, budget=BudgetSpec(message_tokens=10_000, strict_prompt=True))
    made = await server.core.assembler.assemble(call, address)
    assert (made.outcome, made.outcome_reason, bounded(made)) == (OVER_BUDGET, "", [])


async def test_an_older_user_message_over_the_cap_is_bounded(server: Server) -> None:
    await server.context.ingest.run(TENANT, S1, incoming(user(pasted(2_000), "paste")), None)
    whole = await server.assemble(200_000)
    assert (whole.outcome, bounded(whole)) == (FITS, [])
    small = await server.assemble(30_000)
    assert (small.outcome, bounded(small)) == (FITS, [])
    await server.context.ingest.run(
        TENANT, S1, incoming(assistant("ok", "a"), user("go on", "u")), None
    )
    made = await server.assemble(10_000)
    assert (made.outcome, bounded(made)) == (FITS, [1])
    assert made.tokens <= made.cell


@pytest.mark.parametrize("engine", ["dag", "legacy"])
async def test_every_engine_shows_it(serve: Serve, engine: str) -> None:
    server = await serve(**{"engine.default": engine})
    await server.context.ingest.run(TENANT, S1, incoming(user(pasted(200), "paste")), None)
    made = await server.assemble(1_000)
    assert (made.outcome, made.outcome_reason) == (DEGRADED, "PROMPT_BOUNDED")
    assert made.tokens <= made.cell


async def test_what_fills_the_room_to_its_last_token_is_whole(server: Server) -> None:
    """Of the newest and of a pinned message alike; more of it is never shown than half the room,
    unless that holds no marker."""
    pinned = user(pasted(60), "pinned", labels={"pinned": "true"})
    await server.context.ingest.run(
        TENANT, S1, incoming(pinned, assistant("ok", "a"), user(pasted(60), "paste")), None
    )
    view = (await server.assemble()).view
    shaper = server.core.sessions.encodings.default.shaper
    first, last = view.atom(0), view.atom(2)
    size = max(first.tokens, last.tokens)
    assert abs(first.tokens - last.tokens) < 9
    same, chars = with_bounded_prompt(view, size, shaper)
    assert (same is view, chars) == (True, {})
    shorter, chars = with_bounded_prompt(view, min(first.tokens, last.tokens) - 1, shaper)
    assert sorted(chars) == [0, 2]
    for step in (0, 2):
        assert size // 4 < shorter.atom(step).tokens <= size // 2
    assert shorter.total == sum(atom.tokens for atom in shorter.atoms)
    assert [atom.start for atom in shorter.atoms] == [
        sum(atom.tokens for atom in shorter.atoms[:at]) for at in range(3)
    ]
    # The view that was given is as it was.
    assert view.total == sum(atom.tokens for atom in view.atoms)
    least = shorter.atom(2).tokens // 3
    tight, _ = with_bounded_prompt(view, least, shaper)
    assert tight.atom(2).tokens <= least or tight.atom(2).tokens == last.tokens


@given(
    st.integers(0, 6),
    st.integers(20, 1_500),
    st.integers(100, 20_000),
    st.booleans(),
)
def test_a_paste_is_never_over_budget_where_half_of_it_fits(
    before: int, lines: int, budget: int, live: bool
) -> None:
    """Of any size, at any budget that holds a marker: as it is, or honestly head and tail."""

    async def play() -> None:
        server = await Server(Rows()).open()
        try:
            talk = turns(1, before, 60)
            if talk:
                await server.context.ingest.run(TENANT, S1, talk, None)
            paste = user(pasted(lines), "paste")
            if live:
                made = await server.assemble(budget, live=[*talk, *incoming(paste)])
            else:
                await server.context.ingest.run(TENANT, S1, incoming(paste), None)
                made = await server.assemble(budget)
            assert made.outcome in (FITS, DEGRADED)
            assert made.tokens <= made.available
            slots = [
                slot
                for segment in made.plan.segments
                for slot in segment_slots(segment, made.view)
                if slot.form is Form.HEAD_TAIL
            ]
            assert len(slots) == (made.outcome == DEGRADED)
            for slot in slots:
                assert dishonest(item_of(slot.frame), paste) is None
        finally:
            await server.close()

    asyncio.run(play())
