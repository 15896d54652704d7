"""Parts of the history that are read by themselves, before the window: they show what a view of the
whole history shows there, and reading them costs what they hold."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.atom import Atom
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.view import View
from contextengine_server.context.work import at_once
from contextengine_server.session.assembly.budget import BudgetSpec
from contextengine_server.session.assembly.explanation import explain
from contextengine_server.session.encoding import Encoding
from contextengine_server.session.model import set_model
from contextengine_server.session.window import anchor_of, hold_newest, single, with_oldest
from tests.unit.commands.house import (
    S1,
    TENANT,
    Server,
    assistant,
    incoming,
    long,
    result,
    scope,
    user,
)


@pytest.fixture
async def encoding(server: Server) -> Encoding:
    """Of a session with calls, some results of which came late, and a summary in its midst."""
    for at in range(12):
        await said(server, user(long(f"u{at}", 120), f"u{at}"), assistant("", "", f"c{at}"))
        if at % 3:
            await said(server, result(f"c{at}", long(f"r{at}", 90)))
        await said(server, assistant(long(f"a{at}", 150), f"a{at}"))
        if at == 5:
            await said(server, result("c3", long("late", 60)))
    return server.core.sessions.encodings.default


async def said(server: Server, *messages: pb.Message) -> None:
    await server.context.ingest.run(TENANT, S1, incoming(*messages), None)


async def view_of(server: Server, reach: int | None) -> View:
    """The session's view, as a server that knows nothing yet reads it."""
    server.core.cache.drop(scope())
    async with server.core.sessions.open(scope(), reach) as session:
        return session.view


def told(atom: Atom) -> tuple[int, int, int, list[bytes]]:
    """All that an atom is to a plan."""
    return atom.step, atom.start, atom.tokens, [slot.hash for slot in atom.slots]


@pytest.mark.parametrize("tokens", [1, 300, 700, 1_500, 100_000])
async def test_the_oldest_that_is_read_is_what_stands_there(
    server: Server, encoding: Encoding, tokens: int
) -> None:
    whole, view = await view_of(server, None), await view_of(server, 800)
    known, follows = dict(view.anchors), dict(view.follows)
    made = await with_oldest(server.store, view, encoding.shaper, tokens)
    expected = [one for one in whole.atoms if one.start < tokens and one.start < view.window_start]
    assert expected
    assert [told(made.anchors[one.step]) for one in expected] == list(map(told, expected))
    assert set(made.anchors) == set(known) | {one.step for one in expected}
    # Where the next step begins, so that a pass knows where its last message ends.
    assert all(whole.atom(step).first == first for step, first in made.follows.items())
    behind = expected[-1].step + 1
    assert behind == view.base or behind in made.follows
    # Others look at the view meanwhile.
    assert (view.anchors, view.follows) == (known, follows)


@pytest.mark.parametrize("tokens", [1, 300, 700, 1_500, 100_000])
async def test_the_newest_that_is_read_is_what_stands_there(
    server: Server, encoding: Encoding, tokens: int
) -> None:
    whole, view = await view_of(server, None), await view_of(server, 800)
    await hold_newest(server.store, view, encoding.shaper, tokens)
    first = view.window_start - tokens
    expected = [one for one in whole.atoms if first <= one.start < view.window_start]
    assert [told(view.anchors[one.step]) for one in expected] == list(map(told, expected))


async def test_what_a_summary_covers_is_passed_over(server: Server, encoding: Encoding) -> None:
    await server.compact(2_500)
    whole, view = await view_of(server, None), await view_of(server, 400)
    assert view.summaries
    made = await with_oldest(server.store, view, encoding.shaper, 300)
    read = set(made.anchors) - set(view.anchors)
    uncovered = [
        one.step
        for one in whole.atoms
        if whole.covering(one.step) is None and one.step < view.base and one.step >= view.leading
    ]
    assert read <= set(uncovered)
    assert sorted(read) == uncovered[: len(read)]


async def test_no_tokens_read_nothing(server: Server, encoding: Encoding) -> None:
    view = await view_of(server, 800)
    before = server.store.calls["messages"]
    made = await with_oldest(server.store, view, encoding.shaper, 0)
    await hold_newest(server.store, view, encoding.shaper, 0)
    assert server.store.calls["messages"] == before
    assert made.anchors == view.anchors


async def test_one_atom_is_read_with_its_late_results(server: Server, encoding: Encoding) -> None:
    whole = await view_of(server, None)
    for atom in whole.atoms:
        for entry in atom.entries:
            found = await anchor_of(server.store, scope(), entry.sequence, encoding.shaper)
            shown = whole.holding(entry.sequence)
            assert found is not None
            assert shown is not None
            assert told(found) == told(shown)
    assert await anchor_of(server.store, scope(), 9_999, encoding.shaper) is None
    assert single(scope(), [], encoding.shaper) is None


@pytest.mark.parametrize("locked", [True, False])
async def test_no_more_is_read_again_than_is_asked_for(
    server: Server, encoding: Encoding, locked: bool
) -> None:
    server.core.cache.drop(scope())
    async with server.core.sessions.open(scope(), 0) as session:
        first = session.view.base
        if locked:
            async with session.lock:
                await server.core.sessions.reread(session, 800, locked=True)
        else:
            await server.core.sessions.reread(session, 800, locked=False)
        assert 0 < session.view.base < first


@pytest.mark.parametrize(
    "spec",
    [
        BudgetSpec(message_tokens=900),
        BudgetSpec(window=6_000),
        BudgetSpec(window=6_000, output_reserve=1_000, safety_margin=0, rot_buffer=4_000),
    ],
)
@pytest.mark.parametrize("factor", [None, 0.8, 1.0, 1.3])
async def test_a_cold_assembly_reads_once_and_as_far_as_its_budget_asks(
    server: Server, encoding: Encoding, spec: BudgetSpec, factor: float | None
) -> None:
    """Also where the session's model is known and no request names it, whatever usage taught."""
    if factor is not None:
        head, state = await server.head(), await server.state()
        head, state = set_model(head, state, "claude-sonnet-4-5", "", None, None)
        taught = replace(state, model=replace(state.model, factor=factor))
        server.rows.tables.sessions[scope()].head = replace(head, state=taught.encode())
    server.core.cache.drop(scope())
    before = server.store.calls["messages"]
    made = await server.assemble(budget=spec)
    assert server.store.calls["messages"] == before + 1
    view = server.core.cache.enter(scope()).view
    step = max(atom.tokens for atom in view.atoms)
    wanted = server.registry.configured("dag").reach(ReferenceTokens(made.budget.reference))
    assert wanted is not None
    assert wanted - step < view.total - view.window_start <= wanted


async def test_a_session_that_is_not_there_holds_nothing(server: Server) -> None:
    async with server.core.sessions.open(scope(), None) as session:
        assert (session.head, session.live_summaries, session.view.atoms) == (None, [], [])
        session.mark_own(incoming(user("[Summary of nothing]")), listed=True)


async def test_to_explain_reads_all_of_it_also_behind_what_came_along(
    server: Server, encoding: Encoding
) -> None:
    server.core.cache.drop(scope())
    whole = await server.assemble(1_500, whole=True, ingest=incoming(user("more", "more")))
    last = (await server.head()).last_sequence
    assert [one.entry.sequence for one in at_once(explain(whole))] == list(range(1, last + 1))
