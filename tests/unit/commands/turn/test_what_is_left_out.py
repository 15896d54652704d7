"""What is left out is said (docs/semantics.md#what-stays-and-what-goes)."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from contextengine_server.context.budget import cell
from contextengine_server.context.epoch import Cause, cause
from contextengine_server.context.plan import Keep, Plan, Summarized
from contextengine_server.context.work import at_once
from contextengine_server.engines import dag
from contextengine_server.engines.contract import Tools
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.session.assembly.addition import LEFT_OUT
from contextengine_server.session.assembly.assembly import FITS, Assembly
from contextengine_server.session.assembly.explanation import Kind, explain
from contextengine_server.testing.engine.steadiness import epoch
from contextengine_server.testing.engine.trial import trial_of
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import SMALL, Rows, Server
from tests.unit.engines.test_dag_compaction import said

FOUND = "Find them with ctx_search."


class Toolless(DagEngine):
    """A dag that offers no tools."""

    id = "toolless"

    def __init__(self, options: DagOptions) -> None:
        super().__init__(options)
        self.tools = Tools()


def evicted(made: Assembly) -> bool:
    return any(decision.kind is Kind.EVICTED for decision in at_once(explain(made)))


async def test_it_says_so_and_names_the_tool_that_finds_it(server: Server) -> None:
    await server.talk(1, 12)
    whole = await server.assemble(100_000)
    assert (evicted(whole), whole.addition, whole.addition_tokens) == (False, "", 0)
    made = await server.assemble(3_000)
    assert evicted(made)
    assert made.addition == f"{LEFT_OUT} {FOUND}"
    assert "ctx_search" in made.addition
    assert made.tokens + made.addition_tokens <= 3_000
    assert made.addition_tokens < 40


async def test_it_is_said_beside_what_the_engine_says(server: Server) -> None:
    await server.talk(1, 12)
    await server.compact(3_000)
    await server.talk(13, 3)
    made = await server.assemble(900)
    assert evicted(made)
    assert made.addition.endswith(FOUND)
    assert made.addition_tokens == server.core.sessions.encodings.default.text_tokens(made.addition)


async def test_an_engine_without_tools_gets_the_words(rows: Rows) -> None:
    registration = replace(dag.ENGINE, id="toolless", make=Toolless, owner="plugin:tests")
    told: dict[str, Any] = {"engine.default": "toolless"}
    server = await Server(rows, engines=[registration], **told).open()
    await server.talk(1, 12)
    assert (await server.assemble(3_000)).addition == LEFT_OUT
    await server.close()


async def test_an_engine_that_never_evicts_says_nothing(serve: Serve) -> None:
    server = await serve(**{"engine.default": "legacy"})
    await server.talk(1, 12)
    assert (await server.assemble(3_000)).addition == ""


async def test_a_budget_of_exactly_the_session_holds_it(server: Server) -> None:
    await server.talk(1, 3)
    needed = (await server.assemble()).tokens
    exact = next(tokens for tokens in range(needed, 3 * needed) if cell(tokens) >= needed)
    made = await server.assemble(exact)
    assert (made.outcome, evicted(made), made.tokens) == (FITS, False, needed)


def test_a_summary_that_is_evicted_is_a_cut_and_no_compaction() -> None:
    one = trial_of(said(*[("assistant", 300)] * 20))
    one.compact(0, 4, "[200] first")
    one.compact(5, 8, "[200] second")
    engine, newest = DagEngine(DagOptions()), Keep(9, 19)
    both, one_left = (
        Plan((*map(Summarized, shown), newest), cut=9)
        for shown in (one.view.summaries, one.view.summaries[1:])
    )
    known = epoch(one.view, both, engine, 4_000)
    assert cause(known, epoch(one.view, one_left, engine, 4_000)) is Cause.CUT
    one.compact(0, 8, "[200] both", [summary.id for summary in one.view.summaries], 1)
    folded = Plan((Summarized(one.view.summaries[0]), newest), cut=9)
    assert cause(known, epoch(one.view, folded, engine, 4_000)) is Cause.COMPACTED


@given(
    st.lists(
        st.one_of(st.integers(1, 4), st.sampled_from(("compact", "restart"))),
        min_size=2,
        max_size=8,
    ),
    st.integers(500, 9_000),
)
def test_it_is_said_where_and_only_where_something_is_left_out(
    happened: list[int | str], budget: int
) -> None:
    """The same within an epoch, and paid from the budget."""

    async def play() -> None:
        rows, turn, additions = Rows(), 1, dict[str, str]()
        server = await Server(rows, **SMALL).open()
        for each in happened:
            if isinstance(each, int):
                await server.talk(turn, each)
                turn += each
            elif each == "compact" and turn > 1:
                await server.compact(budget)
            else:
                await server.close()
                server = await Server(rows, **SMALL).open()
            if turn == 1:
                continue
            made = await server.assemble(budget)
            if not made.view.base:
                assert evicted(made) == (LEFT_OUT in made.addition)
            elif not made.view.summaries:
                assert LEFT_OUT in made.addition
            assert additions.setdefault(made.epoch, made.addition) == made.addition
            if made.outcome == FITS:
                assert made.tokens + made.addition_tokens <= budget
        await server.close()

    asyncio.run(play())


async def test_room_for_the_words_moves_nothing_back(server: Server) -> None:
    """Once something is left out, what was left out stays so."""
    gone: set[int] = set()
    for turn in range(1, 25):
        await server.talk(turn, 1)
        made = await server.assemble(4_100)
        out = {one.entry.sequence for one in at_once(explain(made)) if one.kind is Kind.EVICTED}
        assert gone <= out
        gone = out
    assert gone
