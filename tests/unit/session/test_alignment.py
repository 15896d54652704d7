"""Where a harness's own list meets the stored view: by ids, else by what harnesses leave alone."""

from __future__ import annotations

import random
from base64 import b64encode

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.commands.lifecycle.record_host_change import HostCompacted
from contextengine_server.context.message import Entry
from contextengine_server.context.plan import segment_slots
from contextengine_server.wire import bounded, likeness
from contextengine_server.wire.message import Incoming
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
    spoken,
    texts_of,
    user,
)

Found = tuple[int, dict[int, int]]
"""The first new message, and the sequences of those that are stored."""


async def aligned(server: Server, live: list[Incoming]) -> Found | None:
    found = await with_others(server, live)
    assert found is None or found[2] == {}
    return None if found is None else found[:2]


async def with_others(
    server: Server, live: list[Incoming]
) -> tuple[int, dict[int, int], dict[int, int]] | None:
    """The same with what stands among what is stored and is not, by what it stands behind."""
    async with server.core.sessions.open(scope(), None) as session:
        session.mark_own(live, listed=True)
        found = server.core.aligner.align(live, session.view, session.ids)
        return None if found is None else (found.start, found.matched, found.others)


def said(*texts: str) -> list[Incoming]:
    """Without ids."""
    return spoken(*texts, ids=False)


async def test_an_empty_session_meets_any_list(server: Server) -> None:
    assert await aligned(server, spoken("a", "b")) == (0, {})
    assert await aligned(server, []) == (0, {})


# By ids.


async def test_stored_ids_are_known(server: Server) -> None:
    await server.ingest("a", "b", "c")
    live = spoken("a", "b", "c", "d")
    assert await aligned(server, live) == (3, {0: 1, 1: 2, 2: 3})


async def test_what_the_list_leaves_out_is_not_needed(server: Server) -> None:
    await server.ingest("a", "b", "c", "d")
    assert await aligned(server, spoken("c", "e")) == (1, {0: 3})
    assert await aligned(server, spoken("a", "c", "e")) == (2, {0: 1, 1: 3})


async def test_ids_count_more_than_contents(server: Server) -> None:
    await server.ingest("a", "b", "c")
    rewritten = incoming(user("otherwise", "a"), user("said", "b"), user("new", "n"))
    assert await aligned(server, rewritten) == (2, {0: 1, 1: 2})


async def test_a_message_that_is_not_stored_is_another(server: Server) -> None:
    await server.ingest("a", "b", "c")
    found = await with_others(server, spoken("a", "x", "b", "c"))
    assert found == (4, {0: 1, 2: 2, 3: 3}, {1: 1})
    assert await with_others(server, spoken("x", "b", "c")) == (3, {1: 2, 2: 3}, {0: 0})


async def test_ids_are_known_in_any_order(server: Server) -> None:
    await server.ingest("a", "b", "c")
    assert await aligned(server, spoken("b", "a", "c")) == (3, {0: 2, 1: 1, 2: 3})
    assert await aligned(server, spoken("c", "c")) == (2, {0: 3, 1: 3})


async def test_messages_without_ids_are_known_among_others_with_ids(server: Server) -> None:
    await server.ingest("a", "b")
    live = [*spoken("a"), *said("b"), *said("c")]
    assert await aligned(server, live) == (2, {0: 1, 1: 2})


# By contents.


async def test_what_is_stored_is_known_by_what_it_says(server: Server) -> None:
    await server.ingest("a", "b", "c")
    assert await aligned(server, said("a", "b", "c", "d")) == (3, {0: 1, 1: 2, 2: 3})
    assert await aligned(server, said("b", "c", "d", "e")) == (2, {0: 2, 1: 3})
    assert await aligned(server, said("c")) == (1, {0: 3})


async def test_a_list_without_the_newest_leaves_it_out(server: Server) -> None:
    await server.ingest("a", "b", "c")
    assert await aligned(server, said("a", "b")) == (2, {0: 1, 1: 2})
    assert await aligned(server, said("x")) is None
    assert await aligned(server, []) == (0, {})


async def test_ids_that_are_not_stored_are_no_place(server: Server) -> None:
    await server.ingest("a", "b", ids=False)
    live = incoming(user("a", "1"), user("b", "2"), user("c", "3"))
    assert await aligned(server, live) == (2, {0: 1, 1: 2})


async def test_of_repeated_texts_the_longer_run_wins(server: Server) -> None:
    await server.ingest("x", "go", "y", "go", ids=False)
    # Its last "go" follows another text than the newest stored one does.
    live = said("x", "go", "y", "go", "z", "go")
    assert await aligned(server, live) == (4, {0: 1, 1: 2, 2: 3, 3: 4})


async def test_of_runs_as_long_one_that_nothing_contradicts_wins(server: Server) -> None:
    await server.ingest("a", "go", ids=False)
    # At the last "go" another text stands where "a" is stored, at the first the list just begins.
    assert await aligned(server, said("go", "b", "go")) == (1, {0: 2})


async def test_a_text_that_its_neighbours_contradict_is_another(server: Server) -> None:
    await server.ingest("a", "go", ids=False)
    assert await aligned(server, said("x", "go", "b", "go")) is None


async def test_results_that_answer_nothing_may_be_missing_in_the_list(server: Server) -> None:
    stored = incoming(user("a"), result("c9", "orphan"), user("b"))
    await server.context.ingest.run(TENANT, S1, stored, None)
    assert await aligned(server, said("a", "b", "c")) == (2, {0: 1, 1: 3})
    listed = incoming(user("a"), result("c9", "orphan"), user("b"), user("c"))
    assert await aligned(server, listed) == (3, {0: 1, 1: 2, 2: 3})


async def test_results_go_to_the_calls_that_are_stored_however_the_list_names_them(
    server: Server,
) -> None:
    """Also behind one that brings an answer to nothing, which stays as it is."""
    calls = incoming(user("a"), assistant("calls", "", "c1", "c2"))
    await server.context.ingest.run(TENANT, S1, calls, None)
    both = result("x1", "one")
    both.parts.append(result("elsewhere", "nothing").parts[0])
    renamed = incoming(user("a"), assistant("calls", "", "x1", "x2"), both, result("x2", "two"))
    await server.shown(live=renamed, store_new=True)
    rows = [pb.Message.FromString(row.body) for row in await server.store.messages(scope())]
    answered = [[part.tool_result.call_id for part in row.parts] for row in rows[2:]]
    assert answered == [["x1", "elsewhere"], ["c2"]]


# Items of the service.


def own(index: int) -> pb.Message:
    return user("made by the service", f"ce:{index}")


async def test_own_items_are_passed_over(server: Server) -> None:
    await server.ingest("a", "b")
    live = incoming(own(1), user("a", "a"), own(2), user("b", "b"), own(3), own(4), user("c", "c"))
    assert await aligned(server, live) == (6, {1: 1, 3: 2})
    live = incoming(own(1), user("a"), own(2), user("b"), own(3), own(4), user("c"))
    assert await aligned(server, live) == (6, {1: 1, 3: 2})


async def test_own_items_at_the_end_are_not_new(server: Server) -> None:
    await server.ingest("a")
    live = incoming(user("a", "a"), own(1))
    assert await aligned(server, live) == (2, {0: 1})


# Live lists as they are assembled.


@pytest.mark.parametrize("ids", [True, False])
async def test_what_follows_is_stored_once(server: Server, ids: bool) -> None:
    await server.ingest("a", "b", ids=ids)
    live = spoken("a", "b", "c", ids=ids)
    for _ in range(2):
        assert await server.shown(live=live, store_new=True) == ["a", "b", "c"]
    assert await server.stored() == ["a", "b", "c"]


async def test_what_follows_is_shown_in_one_call_only(server: Server) -> None:
    await server.ingest("a", "b")
    before = await server.assemble()
    shown = await server.assemble(live=spoken("b", "c"))
    assert await server.shown(live=spoken("b", "c")) == ["a", "b", "c"]
    assert shown.epoch != before.epoch
    assert shown.settled_epoch == before.epoch
    assert await server.stored() == ["a", "b"]
    after = await server.assemble()
    assert (after.epoch, after.joined.context_hash) == (before.epoch, before.joined.context_hash)


async def test_a_list_that_meets_nothing_is_shown(server: Server) -> None:
    await server.ingest("a", "b")
    done = await server.assemble(live=said("x", "y"))
    assert (done.outcome, done.outcome_reason, done.stored) == (3, "UNALIGNED", [])
    assert not done.due
    assert await server.shown(live=said("x", "y")) == ["x", "y"]
    assert await server.stored() == ["a", "b"]


async def test_an_engine_that_passes_through_shows_the_list(server: Server) -> None:
    await server.ingest("a", "b", "c")
    await server.engines.assign.run(scope(), "legacy", {}, clear=False)
    assert await server.shown(live=spoken("a", "c", "d")) == ["a", "c", "d"]
    assert await server.shown(live=spoken("a", "c", "d"), store_new=True) == ["a", "c", "d"]
    assert await server.stored() == ["a", "b", "c", "d"]


async def test_a_list_that_is_the_session_has_its_epoch(server: Server) -> None:
    await server.engines.assign.run(scope(), "legacy", {}, clear=False)
    await server.ingest("a", "b", "c")
    whole = await server.assemble()
    same = await server.assemble(live=spoken("a", "b", "c"))
    assert (same.epoch, same.settled_epoch) == (whole.epoch, whole.settled_epoch)
    more = await server.assemble(live=spoken("a", "b", "c", "d"))
    assert more.epoch != whole.epoch
    assert more.settled_epoch == whole.epoch
    less = await server.assemble(live=spoken("a", "c"))
    assert whole.epoch not in (less.epoch, less.settled_epoch)


async def test_a_list_that_grows_at_its_end_keeps_its_epoch(server: Server) -> None:
    """Once what was added is stored: a list with the same gap begins with the earlier one."""
    await server.engines.assign.run(scope(), "legacy", {}, clear=False)
    await server.ingest("a", "b", "c")
    first = await server.assemble(live=spoken("a", "c"))
    await server.ingest("d")
    second = await server.assemble(live=spoken("a", "c", "d"))
    assert second.epoch == first.epoch
    other = await server.assemble(live=spoken("b", "c", "d"))
    assert other.epoch != first.epoch


async def test_open_calls_of_the_list_stay_open(server: Server) -> None:
    await server.context.ingest.run(TENANT, S1, incoming(user("a", "1")), None)
    live = incoming(user("a", "1"), assistant("calls", "2", "c1"), result("c1", "done", "3"))
    assert await server.shown(live=live) == ["a", "calls", "done"]
    assert await server.shown(live=live[:2]) == ["a", "calls"]


@pytest.mark.parametrize("by_id", [True, False])
async def test_a_summary_that_came_back_stands_where_the_harness_has_it(
    server: Server, by_id: bool
) -> None:
    await server.talk(1, 6)
    await server.compact()
    await server.engines.assign.run(scope(), "legacy", {}, clear=False)
    whole = await server.assemble()
    slots = [slot for part in whole.plan.segments for slot in segment_slots(part, whole.view)]
    sent = [item_of(slot.frame).message for slot in slots]
    assert sent[0].id.startswith("ce:")
    sent[0].id = sent[0].id if by_id else ""
    again = await server.assemble(live=incoming(*sent))
    assert again.joined.context_hash == whole.joined.context_hash
    assert again.epoch == whole.epoch
    shorter = await server.shown(live=incoming(sent[0], *sent[-2:]))
    assert len(shorter) == 3
    assert shorter[0] == texts_of(whole)[0]


async def test_a_request_that_stood_beside_its_summary_is_known_after_the_next_one(
    server: Server,
) -> None:
    """A summary covers the newest message of a user's, which is shown all the same. A harness whose
    list is what it was shown goes on with both."""
    said_first = incoming(
        user("fix it"), assistant(long("looked")), assistant(long("mended")), assistant("so")
    )
    await server.context.ingest.run(TENANT, S1, said_first, None)
    change = HostCompacted(1, 3, "what was done")
    await server.context.record_host_change.run(TENANT, S1, change, request())
    sent = await shown_without_ids(server, 100_000)
    assert [one.parts[0].text.text for one in sent][1:] == ["fix it", "so"]
    for more in (user("and that"), assistant("done"), user("thanks")):
        sent.append(more)
        await server.assemble(live=incoming(*sent), store_new=True)
    assert (await server.stored())[4:] == ["and that", "done", "thanks"]


@pytest.mark.parametrize("role", ["user", "assistant"])
async def test_a_message_that_came_back_head_and_tail_is_the_stored_one(
    server: Server, role: str
) -> None:
    await server.context.ingest.run(TENANT, S1, incoming(user("first")), None)
    words = long("large", 3_000)
    large = user(words) if role == "user" else assistant(words)
    await server.context.ingest.run(TENANT, S1, incoming(large), None)
    sent = await shown_without_ids(server, 1_000)
    [short] = [text for one in sent if "expand sequence 2 " in (text := one.parts[0].text.text)]
    for more in (user("and that"), assistant("done")):
        sent.append(more)
        await server.assemble(1_000, live=incoming(*sent), store_new=True)
    assert await server.stored() == ["first", words, "and that", "done"]
    # What only says so is somebody's text.
    other = short.replace("large saw file0.", "large saw file1.", 1)
    await server.assemble(live=incoming(*sent, user(other)), store_new=True)
    assert (await server.stored())[4:] == [other]


@pytest.mark.parametrize(
    ("left_out", "total", "sequence"),
    [(",", ",", "1"), ("9", "1", "1"), ("1", "1", "1"), ("1", "2", "99"), ("1", "2", "0")],
)
async def test_a_marker_that_names_nothing_is_a_text(
    server: Server, left_out: str, total: str, sequence: str
) -> None:
    await server.ingest("first", ids=False)
    marker = (
        f"[... {left_out} of {total} characters are left out here; the whole message is stored:"
        f" expand sequence {sequence} to read it ...]"
    )
    await server.assemble(live=said("first", marker), store_new=True)
    assert await server.stored() == ["first", marker]


async def test_of_many_that_say_that_they_are_one_message_one_is_looked_at(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []

    def counting(entry: Entry, how: bounded.Shortened) -> pb.Message:
        looked.append(entry.sequence)
        return bounded.in_short(entry, how)

    monkeypatch.setattr(likeness, "in_short", counting)
    await server.ingest("first", ids=False)
    claims = [f"{n}{bounded.left_out_marker(n, 90, 1)}" for n in range(1, 50)]
    for _ in range(2):
        await server.assemble(live=said("first", *claims), store_new=True)
    assert len(looked) == 1
    assert len(await server.stored()) == 50


async def test_a_message_that_came_back_without_its_base64_is_the_stored_one(
    server: Server,
) -> None:
    picture = b64encode(random.Random(1).randbytes(6_000)).decode()
    asked = f"see {picture}"
    said_first = incoming(user(asked), assistant("seen"))
    await server.context.ingest.run(TENANT, S1, said_first, None)
    sent = await shown_without_ids(server, 10_000)
    assert "expand sequence 1 to read it]" in sent[0].parts[0].text.text
    sent.append(user("and now?"))
    await server.assemble(live=incoming(*sent), store_new=True)
    assert await server.stored() == [asked, "seen", "and now?"]


async def shown_without_ids(server: Server, tokens: int) -> list[pb.Message]:
    """What is shown, as a harness that keeps no ids goes on with it."""
    done = await server.assemble(tokens)
    slots = [slot for part in done.plan.segments for slot in segment_slots(part, done.view)]
    sent = [item_of(slot.frame).message for slot in slots]
    for message in sent:
        message.id = ""
    return sent
