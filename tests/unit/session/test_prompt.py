"""This turn's prompt, where it is a stored message, stays whatever the budget lets go."""

from __future__ import annotations

from functools import partial

import pytest

from contextengine_server.commands.lifecycle.record_host_change import Rewound
from contextengine_server.errors import RowNotFound
from contextengine_server.session.assembly.assembly import OVER_BUDGET, Prompt
from tests.unit.commands.house import (
    S1,
    TENANT,
    Server,
    assistant,
    incoming,
    long,
    request,
    result,
    scope,
    spoken,
    turns,
    user,
)

TIGHT = 2_000


def names(texts: list[str]) -> list[str]:
    return [text.partition(" ")[0] for text in texts]


async def test_it_stays_in_an_assembly_that_lets_its_neighbours_go(server: Server) -> None:
    await server.talk(1, 6)
    assert "u2" not in names(await server.shown(TIGHT))
    shown = names(await server.shown(TIGHT, current_message_id="u2"))
    assert "u2" in shown
    assert "a1" not in shown
    assert shown[-1] == "a6"
    assert "u2" not in names(await server.shown(TIGHT))  # for this one call


async def test_a_cold_session_finds_it_before_its_window(server: Server) -> None:
    await server.talk(1, 20)
    for _ in range(2):
        assert server.core.cache.drop(scope())
        assert "u2" in names(await server.shown(TIGHT, current_message_id="u2"))
    held = server.core.cache.find(scope())
    assert held is not None
    assert held.view.base > 2
    assert "u3" in names(await server.shown(TIGHT, current_message_id="u3"))


async def test_the_newest_user_message_stays_without_being_named(server: Server) -> None:
    await server.talk(1, 6)
    plain = await server.assemble(TIGHT)
    named = await server.assemble(TIGHT, current_message_id="u6")
    assert (named.epoch, named.joined.context_hash) == (plain.epoch, plain.joined.context_hash)


async def test_one_that_is_not_stored_is_refused_before_anything_is_stored(server: Server) -> None:
    await server.ingest("a")
    with pytest.raises(RowNotFound, match="no message 'x' is stored in this session") as refused:
        await server.assemble(current_message_id="x", ingest=spoken("b"))
    assert [one.field for one in refused.value.violations] == ["current_message_id"]
    assert await server.stored() == ["a"]


async def test_one_that_comes_along_is_found(server: Server) -> None:
    await server.ingest("a")
    assert await server.shown(ingest=spoken("b"), current_message_id="b") == ["a", "b"]
    live = spoken("a", "b", "c")
    assert await server.shown(live=live, store_new=True, current_message_id="c") == ["a", "b", "c"]


async def test_it_stays_in_a_list_of_the_harness(server: Server) -> None:
    await server.talk(1, 6)
    live = turns(1, 6)
    shown = names(await server.shown(TIGHT, live=live, current_message_id="u2"))
    assert "u2" in shown
    assert "a1" not in shown
    again = names(await server.shown(TIGHT, live=[*live, *spoken("new")], current_message_id="u2"))
    assert "u2" in again
    assert again[-1] == "new"


async def test_a_prompt_that_is_sent_along_takes_room(server: Server) -> None:
    await server.talk(1, 6)
    without = await server.assemble(TIGHT)
    beside = await server.assemble(TIGHT, prompt=Prompt(("word " * 600,), 100))
    assert beside.prompt_tokens == 100 + server.counter.count_text("word " * 600)
    assert beside.tokens < without.tokens
    assert beside.available == without.available - beside.prompt_tokens


async def test_a_pinned_message_is_pinned_once(server: Server) -> None:
    await server.context.ingest.run(TENANT, S1, turns(1, 6), None)
    view = (await server.assemble(TIGHT, current_message_id="u2")).view
    assert view.pinned == [view.pinned[0]]
    assert view.atom(view.pinned[0]).entries[0].id == "u2"


async def test_what_is_kept_before_the_window_is_as_the_whole_view_has_it(
    server: Server, other: Server
) -> None:
    messages = incoming(user("rules", "pin", labels={"pinned": "true"}))
    await other.context.ingest.run(TENANT, S1, [*spoken("first"), *messages], None)
    await other.talk(1, 20)
    window = (await server.assemble(TIGHT, current_message_id="u2")).view
    whole = (await other.assemble(whole=True)).view
    assert window.base > 4
    assert len(window.anchors) >= 2
    for step, atom in window.anchors.items():
        known = whole.atom(step)
        assert (atom.step, atom.start, atom.end) == (step, known.start, known.end)
        assert (atom.first, atom.tokens, atom.pinned) == (known.first, known.tokens, known.pinned)
        assert [slot.hash for slot in atom.slots] == [slot.hash for slot in known.slots]


@pytest.mark.parametrize("words", [0, 300, 600])
async def test_the_open_step_leaves_room_for_it(server: Server, words: int) -> None:
    """A result that fits the budget alone, and not beside the prompt."""
    begin = [user("look"), assistant("", "", "c1"), result("c1", long("r", 3_000))]
    await server.context.ingest.run(TENANT, S1, incoming(*begin), None)
    whole = (await server.assemble()).tokens
    prompt = Prompt((long("p", words),), 4) if words else None
    made = await server.assemble(whole + 300, prompt=prompt)
    assert made.outcome != OVER_BUDGET
    assert made.tokens + made.prompt_tokens + made.addition_tokens <= whole + 300
    assert (made.tokens < whole) == (made.prompt_tokens > 300)


async def test_it_is_looked_up_again_where_another_server_took_something_back(
    server: Server, other: Server
) -> None:
    """The session is read anew then, and what was known of ids before its window is forgotten."""
    await other.talk(1, 20)
    await server.shown(1_000)
    server.store.before_commit.append(partial(rewind, other, 38))
    shown = names(await server.shown(TIGHT, current_message_id="u2", ingest=spoken("new")))
    assert "u2" in shown
    assert shown[-1] == "new"
    assert "a20" not in shown
    server.store.before_commit.append(partial(rewind, other, 2))
    with pytest.raises(RowNotFound, match="no message 'u2' is stored"):
        await server.shown(TIGHT, current_message_id="u2", ingest=spoken("newer"))


async def rewind(server: Server, after: int) -> None:
    await server.context.record_host_change.run(TENANT, S1, Rewound(after), request(f"r{after}"))
