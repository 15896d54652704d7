"""A harness's own list is whole: every message of it is shown, covered, evicted by a rule, stored,
or named in the reply (docs/semantics.md#live-lists)."""

from __future__ import annotations

from typing import Any

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.commands.lifecycle.record_host_change import HostCompacted
from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.context.message import Form
from contextengine_server.context.plan import segment_slots
from contextengine_server.errors import RequestIdReused
from contextengine_server.session.assembly.assembly import DEGRADED, FITS, Assembly
from contextengine_server.session.assembly.treatment import Treatment
from contextengine_server.wire.slots import item_of
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
    texts_of,
    user,
)


async def stored(server: Server, *messages: pb.Message) -> None:
    await server.context.ingest.run(TENANT, S1, incoming(*messages), None)


async def live(
    server: Server, *messages: pb.Message, store_new: bool = True, **more: Any
) -> Assembly:
    return await server.assemble(live=incoming(*messages), store_new=store_new, **more)


def named(messages: list[pb.Message]) -> list[pb.Message]:
    """The same messages with ids."""
    copies = []
    for at, message in enumerate(messages):
        copy = pb.Message()
        copy.CopyFrom(message)
        copy.id = f"m{at}"
        copies.append(copy)
    return copies


@pytest.mark.parametrize("ids", [True, False])
async def test_a_late_result_within_the_list_is_stored(server: Server, ids: bool) -> None:
    whole = [user("u"), assistant("", "", "c1"), result("c1", "late"), user("u2"), assistant("a2")]
    whole = named(whole) if ids else whole
    await stored(server, whole[0], whole[1], *whole[3:])
    shown = await live(server, *whole)
    assert [(one.index, one.sequence) for one in shown.stored] == [(2, 5)]
    assert texts_of(shown) == ["u", "", "late", "u2", "a2"]
    again = await live(server, *whole)
    assert (again.outcome, list(again.stored), texts_of(again)) == (FITS, [], texts_of(shown))


async def test_a_late_result_is_shown_where_it_is_not_stored(server: Server) -> None:
    whole = [user("u"), assistant("", "", "c1"), result("c1", "late"), user("u2"), assistant("a2")]
    await stored(server, whole[0], whole[1], *whole[3:])
    shown = await live(server, *whole, store_new=False)
    assert texts_of(shown) == ["u", "", "late", "u2", "a2"]
    assert await server.stored() == ["u", "", "u2", "a2"]


@pytest.mark.parametrize("ids", [True, False])
async def test_a_message_between_stored_ones_becomes_the_truth(server: Server, ids: bool) -> None:
    """A steering message before a reply that was stored already."""
    whole = [user("u"), assistant("a"), user("steer"), assistant("b"), user("u2")]
    whole = named(whole) if ids else whole
    await stored(server, *whole[:2], whole[3])
    shown = await live(server, *whole)
    assert (shown.outcome, texts_of(shown)) == (FITS, ["u", "a", "steer", "b", "u2"])
    assert [(one.index, one.sequence) for one in shown.stored] == [(2, 4), (3, 5), (4, 6)]
    head = await server.head()
    assert (head.revision, head.message_count) == (2, 5)
    assert [event.name for event in server.events("session:rew")] == ["session:rewound"]
    again = await live(server, *whole)
    assert (list(again.stored), texts_of(again)) == ([], texts_of(shown))


async def test_a_list_that_takes_back_is_stored_once_by_its_request(server: Server) -> None:
    """A request that is sent again tells what the first one stored."""
    await stored(server, user("u"), assistant("a"), assistant("b"))
    whole = [user("u"), assistant("a"), user("steer"), assistant("b"), user("u2")]

    async def begin(*history: pb.Message) -> list[int]:
        done = await server.context.bootstrap.run(
            TENANT, S1, Introduction(), incoming(*history), request()
        )
        return [one.sequence for one in done.stored]

    assert await begin(*whole) == [1, 2, 4, 5, 6]
    await stored(server, assistant("since"))
    await begin(*whole, user("again"), assistant("more"))
    assert await server.stored() == ["u", "a", "steer", "b", "u2", "since"]


async def test_a_message_between_stored_ones_is_shown_at_its_place(server: Server) -> None:
    await stored(server, user("u"), assistant("a"), assistant("b"))
    whole = [user("u"), assistant("a"), user("steer"), assistant("b"), user("u2")]
    shown = await live(server, *whole, store_new=False)
    assert texts_of(shown) == ["u", "a", "steer", "b", "u2"]
    assert await server.stored() == ["u", "a", "b"]


async def test_ids_within_the_list_that_are_not_stored(server: Server) -> None:
    """1, 2, 5 and 6 are stored, and the list has all six."""
    whole = named([user(f"m{at}") for at in range(6)])
    await stored(server, *whole[:2], *whole[4:])
    shown = await live(server, *whole)
    assert texts_of(shown) == [f"m{at}" for at in range(6)]


async def test_a_turn_that_ends_as_the_one_before_is_a_new_one(server: Server) -> None:
    """The harness rewrote the call ids, and "Done." stands at the end of both turns."""
    call = assistant("", "", "call_1_0")
    await stored(server, user("u1"), call, result("call_1_0", "r1"), assistant("Done."))
    whole = [
        user("u1"), assistant("", "", "call10"), result("call10", "r1"), assistant("Done."),
        user("u2"), assistant("", "", "call20"), result("call20", "r2"), assistant("Done."),
    ]  # fmt: skip
    shown = await live(server, *whole)
    assert texts_of(shown) == ["u1", "", "r1", "Done.", "u2", "", "r2", "Done."]
    assert [one.index for one in shown.stored] == [4, 5, 6, 7]


async def test_a_result_answers_the_call_that_is_stored_under_another_id(server: Server) -> None:
    """A turn that was interrupted before the result, and call ids that were rewritten since."""
    await stored(server, user("u1"), assistant("", "", "call_1_0", "call_1_1"))
    whole = [
        user("u1"), assistant("", "", "call10", "call11"), result("call11", "r1"),
        result("call10", "r0"), user("u2"),
    ]  # fmt: skip
    for store_new in (False, True):
        shown = await live(server, *whole, store_new=store_new)
        assert texts_of(shown) == ["u1", "", "r1", "r0", "u2"]
    again = await live(server, *whole)
    assert (list(again.stored), texts_of(again)) == ([], ["u1", "", "r1", "r0", "u2"])


async def test_a_list_that_meets_nothing_heals(server: Server) -> None:
    await stored(server, user("u1"), assistant("a1"))
    other = [user("x1"), assistant("x2"), user("x3")]
    first = await live(server, *other)
    assert (first.outcome, first.outcome_reason) == (DEGRADED, "UNALIGNED")
    assert (texts_of(first), len(first.stored)) == (["x1", "x2", "x3"], 3)
    second = await live(server, *other, assistant("x4"))
    assert (second.outcome, [one.index for one in second.stored]) == (FITS, [3])
    assert texts_of(second) == ["x1", "x2", "x3", "x4"]


async def test_what_was_summarized_is_not_taken_back(server: Server) -> None:
    """A message at a place that a summary covers becomes a note, once."""
    whole = [user(long(f"u{at}")) for at in range(8)]
    await stored(server, *whole)
    assert (await server.compact(1_500)).done.summaries
    view_before = (await server.assemble()).view
    with_more = [*whole[:1], user("what the host put in"), *whole[1:], user("new")]
    shown = await live(server, *with_more)
    assert [one.index for one in shown.stored] == [1, 9]
    said = texts_of(shown)
    assert said[-1] == "new"
    assert "what the host put in" in said[-2]
    assert said[-2].startswith("[A message that the harness's own list has")
    assert shown.view.summaries == view_before.summaries
    again = await live(server, *with_more)
    assert (list(again.stored), texts_of(again)) == ([], said)
    only_shown = await live(server, *whole[:2], user("another"), *whole[2:], store_new=False)
    assert any("another" in text for text in texts_of(only_shown))


async def test_what_stands_before_the_window_is_read(server: Server) -> None:
    """A cold server, a small budget, and a list that goes back further than the window."""
    whole = [user(long(f"u{at}", 60)) for at in range(40)]
    await stored(server, *whole)
    server.core.sessions.cache.drop(scope())
    shown = await server.assemble(300, live=incoming(*whole, user("new")), store_new=True)
    assert (shown.outcome, [one.index for one in shown.stored]) == (FITS, [40])
    assert texts_of(shown)[-1] == "new"


async def test_history_that_is_sent_again_is_stored_once(server: Server) -> None:
    history = [user("one"), assistant("", "", "c_1"), result("c_1", "r"), assistant("two")]
    for attempt in range(3):
        rewritten = [user("one"), assistant("", "", "c1"), result("c1", "r"), assistant("two")]
        sent = history if not attempt else rewritten
        done = await server.context.bootstrap.run(TENANT, S1, Introduction(), incoming(*sent))
        assert [one.sequence for one in done.stored] == [1, 2, 3, 4]
    assert await server.stored() == ["one", "", "r", "two"]
    ids = [user("one", "x1"), assistant("two", "x2"), user("three", "x3")]
    done = await server.context.bootstrap.run(TENANT, S1, Introduction(), incoming(*ids))
    assert await server.stored() == ["one", "", "r", "two", "three"]


async def test_a_late_result_for_what_stands_before_the_window_is_shown(server: Server) -> None:
    """A cold server, a small budget: what the result answers is read for it."""
    begin = [user("u"), assistant("", "", "c1")]
    rest = [user(long(f"u{at}", 60)) for at in range(40)]
    await stored(server, *begin, *rest)
    server.core.sessions.cache.drop(scope())
    late = result("c1", "it came late")
    shown = await live(server, *begin, *rest, late, store_new=False, tokens=300)
    assert shown.outcome == FITS
    assert not shown.stored
    whole = await live(server, *begin, *rest, late, store_new=False)
    assert texts_of(whole)[:3] == ["u", "", "it came late"]
    assert (await server.head()).last_sequence == 42


async def test_a_note_of_ours_that_comes_back_is_not_stored(server: Server) -> None:
    await stored(server, user("a", "1"), assistant("calls", "2", "c1"), user("b", "3"))
    await server.talk(1, 6)
    await server.compact()
    await stored(server, result("c1", "late", "late"))
    made = await server.assemble()
    slots = [slot for one in made.plan.segments for slot in segment_slots(one, made.view)]
    (note,) = [item_of(slot.frame).message for slot in slots if slot.form is Form.NOTE]
    nameless = pb.Message()
    nameless.CopyFrom(note)
    nameless.id = ""
    done = await server.context.ingest.run(TENANT, S1, incoming(note), None)
    assert [one.sequence for one in done.stored] == [0]
    before = (await server.head()).last_sequence
    for form in (note, nameless):
        listed = [form if slot.form is Form.NOTE else item_of(slot.frame).message for slot in slots]
        again = await live(server, *listed)
        assert (await server.head()).last_sequence == before
        assert texts_of(again) == texts_of(made)


async def test_what_a_list_opens_again_is_taken_out_of_its_summary(server: Server) -> None:
    """A call was summarized as given up; by the list it is the newest when something else comes."""
    begin = [user(long("u", 300)), assistant("I look", "", "c1")]
    await stored(server, *begin, user("never mind"), assistant("fine"))
    change = HostCompacted(1, 2, "a question, and a look")
    await server.context.record_host_change.run(TENANT, S1, change, request())
    assert len(await server.store.summaries(scope())) == 1
    shown = await live(server, *begin, user("or rather this"), user("never mind"))
    assert await server.store.summaries(scope()) == []
    assert (await server.head()).summary_count == 0
    assert texts_of(shown)[1] == "I look"
    assert texts_of(shown)[-2:] == ["or rather this", "never mind"]


@pytest.mark.parametrize("store_new", [True, False])
async def test_a_result_that_comes_late_for_what_is_far_back(
    server: Server, other: Server, store_new: bool
) -> None:
    """A server that holds the newest messages alone reads all that the list needs."""
    await stored(server, user("u", "1"), assistant("calls", "2", "c1"), user("u2", "3"))
    await server.talk(1, 30)
    rows = await server.store.messages(scope())
    whole = [pb.Message.FromString(row.body) for row in rows]
    late = result("c1", "late", "late")
    await other.assemble(1_000)
    seen = other.core.cache.find(scope())
    assert seen is not None
    assert seen.view.base > 2
    shown = await live(other, *whole, late, store_new=store_new)
    assert texts_of(shown)[:4] == ["u", "calls", "late", "u2"]
    assert [one.index for one in shown.stored] == ([len(whole)] if store_new else [])


async def test_what_is_not_kept_is_shown_behind_what_is(server: Server, other: Server) -> None:
    """So does one that answers without storing what comes along."""
    await stored(server, user("u", "1"), assistant("calls", "2", "c1"), user("u2", "3"))
    await server.talk(1, 30)
    await other.assemble(1_000)
    brought = incoming(result("c1", "late", "late"), user("more", "more"))
    shown = await other.assemble(treatment=Treatment.STATELESS, ingest=brought)
    assert texts_of(shown)[:4] == ["u", "calls", "late", "u2"]
    assert texts_of(shown)[-1] == "more"
    assert (await other.head()).last_sequence == 63


async def test_a_list_under_an_id_that_was_for_another_is_refused(server: Server) -> None:
    whole = [user("u"), assistant("a"), user("u2")]
    await stored(server, *whole[:2])
    first = await live(server, *whole, request_id="r")
    again = await live(server, *whole, request_id="r")
    assert [one.sequence for one in first.stored] == [3]
    assert texts_of(again) == texts_of(first)
    with pytest.raises(RequestIdReused):
        await live(server, *whole, user("u3"), request_id="r")
    assert await server.stored() == ["u", "a", "u2"]
