"""A last step that does not fit as a whole shares what there is (docs/semantics.md#large-steps)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.message import Form
from contextengine_server.context.plan import Summarized, segment_slots
from contextengine_server.session.assembly.assembly import FITS, OVER_BUDGET, Assembly
from contextengine_server.session.assembly.budget import BudgetSpec
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
    result,
    turns,
    user,
)

ENGINES = ("dag", "legacy")
SERVED: dict[str, dict[str, Any]] = {name: {"engine.default": name} for name in ENGINES}
SHARE = {"dag": 0.4, "legacy": 0.9}
"""A last step that is too large has at least this part of the cell; `dag` cuts it to half of it, so
that it need not be cut again when it is done."""
LEAST = 400
"""More than the shortest forms of a few results and the smallest summary cost, and their names."""


def lines(name: str, chars: int) -> str:
    line = f"{name}: the log says that all is well in part "
    return "".join(f"{line}{at:05}\n" for at in range(chars // (len(line) + 6) + 1))[:chars]


def asked(count: int) -> pb.Message:
    return assistant("", "asked", *(f"call{at}" for at in range(count)))


def answered(sizes: list[int], first: int = 0) -> list[pb.Message]:
    return [
        result(f"call{at}", lines(f"r{at}", size), f"r{at}") for at, size in enumerate(sizes, first)
    ]


async def store(server: Server, *messages: pb.Message) -> None:
    await server.context.ingest.run(TENANT, S1, incoming(*messages), None)


def said(made: Assembly) -> dict[str, str]:
    """The texts of the results that are shown, by message, without markers."""
    items = [
        item_of(slot.frame)
        for segment in made.plan.segments
        for slot in segment_slots(segment, made.view)
    ]
    return {
        item.message.id: MARKER.sub("", item.message.parts[0].tool_result.parts[0].text.text)
        for item in items
        if item.message.role == pb.ROLE_TOOL
    }


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("open_calls", [0, 1])
async def test_huge_results_of_one_step_fit_the_default_window(
    serve: Serve, engine: str, open_calls: int
) -> None:
    server = await serve(**{"engine.default": engine})
    results = answered([120_000] * 4)
    await store(server, user("look", "u"), asked(4 + open_calls), *results)
    made = await server.assemble(budget=BudgetSpec())
    assert made.outcome == FITS
    assert SHARE[engine] * made.cell < made.tokens <= made.cell
    shown = said(made)
    assert sorted(shown) == ["r0", "r1", "r2", "r3"]
    assert all(len(text) > 20_000 for text in shown.values()), "they share what there is"
    assert max(map(len, shown.values())) < 1.1 * min(map(len, shown.values()))
    for slot in made.view.atoms[-1].slots:
        if slot.form is Form.HEAD_TAIL:
            stored = next(one for one in results if one.id == item_of(slot.frame).message.id)
            assert dishonest(item_of(slot.frame), stored) is None


async def test_small_results_stand_whole_beside_large_ones(server: Server) -> None:
    sizes = [300, 60_000, 2_000, 60_000]
    await store(server, user("look", "u"), asked(4), *answered(sizes))
    made = await server.assemble(6_000)
    assert made.outcome == FITS
    shown = said(made)
    assert [len(shown[f"r{at}"]) for at in (0, 2)] == [300, 2_000]
    assert 3_000 < len(shown["r1"]) < 60_000
    assert made.tokens > 0.6 * made.cell


@pytest.mark.parametrize("engine", ENGINES)
async def test_what_small_results_leave_goes_to_the_large_ones(serve: Serve, engine: str) -> None:
    server = await serve(**{"engine.default": engine})
    sizes = [500, 60_000, 7_000, 700, 12_000, 60_000, 300]
    await store(server, user("look", "u"), asked(len(sizes)), *answered(sizes))
    made = await server.assemble(int(15_000 / SHARE[engine]))
    assert made.outcome == FITS
    shown = {name: len(text) for name, text in said(made).items()}
    whole = [name for at, size in enumerate(sizes) if shown[name := f"r{at}"] == size]
    assert whole == ["r0", "r2", "r3", "r4", "r6"]
    assert min(shown["r1"], shown["r5"]) > 12_000
    assert made.tokens > 0.9 * SHARE[engine] * made.cell


async def test_a_large_step_is_there_in_the_next_step_too(serve: Serve) -> None:
    """It takes no more than half of the cell once it is done, so its successor has room."""
    server = await serve(**{"engine.dag.freshTailTurns": 8})
    await store(server, user("look", "u"), asked(4), *answered([120_000] * 4))
    before = await server.assemble(budget=BudgetSpec())
    await store(server, assistant("I see.", "a"))
    after = await server.assemble(budget=BudgetSpec())
    assert said(after) == said(before)
    assert after.epoch == before.epoch
    assert after.outcome == FITS


async def test_what_waits_for_a_result_is_whole_as_long_as_it_fits(server: Server) -> None:
    await store(server, user("look", "u"), asked(3), *answered([40_000, 40_000]))
    waiting = await server.assemble(40_000)
    assert [len(text) for text in said(waiting).values()] == [40_000, 40_000]


async def test_the_budget_that_a_caller_names_is_never_shown_less_than_it_holds(
    server: Server,
) -> None:
    """A step that fits is not cut, whatever the cell."""
    await store(server, user("look", "u"), asked(1), *answered([9_000]))
    whole = await server.assemble(100_000)
    made = await server.assemble(whole.tokens)
    assert (made.outcome, said(made)) == (FITS, said(whole))


@given(
    st.lists(st.sampled_from((10, 900, 5_000, 13_000, 40_000)), min_size=1, max_size=5),
    st.integers(0, 2),
    st.sampled_from(ENGINES),
    st.integers(700, 20_000),
)
@example([900, 900, 5_000, 13_000, 13_000], 0, "dag", 2_954)
def test_a_result_is_never_shown_longer_because_another_arrived(
    sizes: list[int], open_calls: int, engine: str, budget: int
) -> None:
    async def play() -> None:
        server = await Server(Rows(), **SERVED[engine]).open()
        try:
            await store(server, user("look", "u"), asked(len(sizes) + open_calls))
            before: dict[str, int] = {}
            for at, size in enumerate(sizes):
                await store(server, *answered([size], at))
                made = await server.assemble(budget)
                shown = {name: len(text) for name, text in said(made).items()}
                if made.outcome == OVER_BUDGET:
                    return  # not even the shortest forms fit from here on
                for name, length in before.items():
                    assert shown[name] <= length
                before = shown
        finally:
            await server.close()

    asyncio.run(play())


async def test_legacy_leaves_to_a_compaction_what_it_can_take(serve: Serve) -> None:
    server = await serve(**{"engine.default": "legacy"})
    await server.talk(1, 6)
    await store(server, user("look", "u"), asked(1), *answered([8_000]))
    before = await server.assemble(3_000)
    assert before.outcome == OVER_BUDGET
    assert said(before) == {"r0": lines("r0", 8_000)}
    await server.compact(3_000)
    after = await server.assemble(3_000)
    assert (after.outcome, said(after)) == (FITS, said(before))


@given(
    st.integers(0, 5),
    st.sampled_from((0, 0, 600, 3_000)),
    st.lists(st.sampled_from((10, 900, 5_000, 13_000, 40_000)), min_size=1, max_size=4),
    st.integers(0, 1),
    st.sampled_from(ENGINES),
    st.integers(200, 20_000),
    st.booleans(),
)
def test_over_budget_then_compacted_fits(
    before: int,
    compacted: int,
    sizes: list[int],
    open_calls: int,
    engine: str,
    budget: int,
    next_step: bool,
) -> None:
    """Unless the shortest forms of what no law lets go exceed the budget together."""

    async def play() -> None:
        server = await Server(Rows(), **SERVED[engine]).open()
        try:
            if before:
                await server.context.ingest.run(TENANT, S1, turns(1, before, 200), None)
            if before and compacted:
                await server.compact(compacted)
                await server.context.ingest.run(TENANT, S1, turns(before + 1, before, 60), None)
            calls = asked(len(sizes) + open_calls)
            await store(server, user("look", "u"), calls, *answered(sizes))
            if next_step:
                await store(server, assistant("I see.", "a"))
            made = await server.assemble(budget)
            if made.outcome != OVER_BUDGET:
                return
            await server.compact(budget)
            made = await server.assemble(budget)
            least = LEAST + 80 * len(sizes)
            assert made.outcome == FITS or made.cell < least, (made.tokens, made.cell)
            shown = [one for one in made.plan.segments if isinstance(one, Summarized)]
            assert engine != "legacy" or len(shown) == len(made.view.summaries)
        finally:
            await server.close()

    asyncio.run(play())
