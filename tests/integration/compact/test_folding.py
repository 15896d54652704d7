"""Condensed summaries over a real channel: runs of summaries are folded into deeper ones, and
nothing below them is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from contextengine import types as t
from contextengine.messages import user
from tests.integration.assemble.asking import (
    ask,
    assign,
    epoch,
    hashes,
    ids_of,
    judged,
    quiet,
    reply_with,
    say,
    settled,
    store,
    talk,
)
from tests.integration.assemble.judging import FITS
from tests.integration.harness import House, budget, ref

from .summarizers import Counting

pytestmark = pytest.mark.asyncio(loop_scope="module")

SMALL = {
    "freshTailTurns": 2,
    "leafChunkTokens": 1_000,
    "leafTargetTokens": 200,
    "condensedMinFanout": 3,
    "condensedTargetTokens": 300,
}
"""Options under which little is enough to be folded."""


@pytest.fixture
def counting(shared: House, session: t.SessionRef) -> Iterator[Counting]:
    core, before = shared.app.core, shared.app.core.summaries.summarizer
    yield Counting(shared, session)
    core.summaries.summarizer = before


TURNS = 120


async def test_a_long_history_ends_as_a_tree(
    shared: House, session: t.SessionRef, counting: Counting
) -> None:
    await assign(shared, session, "dag", **SMALL)
    await store(shared, session, talk(TURNS, 100))
    await quiet(shared, session)
    done = await shared.client.compact(session, force=True, budget=budget(2_000))
    status = await shared.client.get_status(session)
    assert done.passes == len(done.summaries) == status.summary_count == status.generation
    assert status.max_depth == max(s.depth for s in done.summaries) >= 2
    by_id = {s.id: s for s in done.summaries}
    parents = [s for s in done.summaries if s.depth]
    for parent in parents:
        children = [by_id[child] for child in parent.children]
        assert len(children) >= SMALL["condensedMinFanout"]
        assert {child.depth for child in children} == {parent.depth - 1}
        assert parent.message_count == sum(child.message_count for child in children)
        assert (parent.first_sequence, parent.last_sequence) == (
            children[0].first_sequence,
            children[-1].last_sequence,
        )
        assert parent.tokens < parent.source_tokens == sum(child.tokens for child in children)
    below = [child for parent in parents for child in parent.children]
    assert len(below) == len(set(below))
    # A summarizer is given the texts of the summaries below, by their depth.
    exported = {s.info.id: s.text for s in (await shared.export(session)).summaries}
    asked = [request for request in counting.asked if request.depth]
    assert [request.depth for request in asked] == [s.depth for s in parents]
    for request, parent in zip(asked, parents, strict=True):
        assert [m.text for m in request.messages] == [exported[child] for child in parent.children]
        assert {m.role for m in request.messages} == {"summary"}
    # What is shown is the top of it, lawfully, at any budget.
    for size in (300, 700, 1_500, 4_000, 50_000):
        reply = await ask(shared, session, budget=budget(size))
        assert await judged(shared, reply, session, SMALL["freshTailTurns"]) == []
    shown = [item.origin.summary_id for item in reply.items if item.origin.summary_id]
    top = [s for s in done.summaries if s.id not in below]
    assert shown == [s.id for s in sorted(top, key=lambda s: s.first_sequence)]
    assert ids_of(await shared.rows(session)) == ids_of(talk(TURNS))
    shared.forget()
    assert (await ask(shared, session, budget=budget(50_000))).items == reply.items
    deepest = max(done.summaries, key=lambda s: s.depth)
    everything = list(range(deepest.first_sequence, deepest.last_sequence + 1))
    assert await below_of(shared, session, deepest.id) == everything


async def below_of(house: House, session: t.SessionRef, summary: str) -> list[int]:
    """The sequences of the messages that a summary stands for, page by page."""
    page, found = "", list[int]()
    while True:
        part = await house.client.recall.expand(
            session,
            summary_ids=[summary],
            max_depth=10,
            include_messages=True,
            max_tokens=20_000,
            page_token=page,
        )
        found += [
            item.origin.sequence
            for item in part.items
            if item.origin.WhichOneof("kind") == "sequence"
        ]
        page = part.next_page_token
        if not page:
            return found


async def test_a_session_that_goes_on_keeps_its_prefix_and_its_evictions(
    shared: House, session: t.SessionRef
) -> None:
    """Through leaves and folds in the background: within an epoch the earlier list begins the
    later, and what was evicted or summarized never comes back as a message."""
    await assign(shared, session, "dag", **SMALL)
    known: dict[str, list[bytes]] = {}
    gone: set[int] = set()
    depths: set[int] = set()
    for turn, message in enumerate(talk(120, 100)):
        reply = await ask(shared, session, ingest=[message], budget=budget(2_600))
        if turn % 6 == 5:
            await settled(shared, session)
        now = hashes(reply)
        assert reply.outcome == FITS
        assert now[: len(known.get(epoch(reply), []))] == known.get(epoch(reply), [])
        known[epoch(reply)] = now
        shown = {item.origin.sequence for item in reply.items if item.origin.sequence}
        users = {item.origin.sequence for item in reply.items if item.message.role == t.ROLE_USER}
        assert not (gone & shown) - {max(users, default=0)}
        gone |= set(range(1, turn + 2)) - shown
        depths |= {item.summary.depth for item in reply.items if item.HasField("summary")}
    assert depths >= {0, 1, 2}
    assert await judged(shared, reply, session) == []


async def test_with_a_wide_fan_out_nothing_is_folded_before_it_must(
    shared: House, session: t.SessionRef
) -> None:
    await assign(shared, session, "dag", **(SMALL | {"condensedMinFanout": 20}))
    await store(shared, session, talk(30, 100))
    await quiet(shared, session)
    done = await shared.client.compact(session, force=True, budget=budget(8_000))
    assert 3 <= len(done.summaries) < 20
    assert {s.depth for s in done.summaries} == {0}
    done = await shared.client.compact(session, force=True, budget=budget(2_000))
    assert max(s.depth for s in done.summaries) > 0, "they would not be shown"


async def test_what_was_evicted_before_a_leaf_stays_so_when_the_leaf_stands_below_another(
    shared: House, session: t.SessionRef
) -> None:
    """The view was full when the first leaf was made. By now there is room for what was evicted
    then, and no summary that is shown says how full it had been."""
    await assign(shared, session, "dag", **SMALL)
    await store(shared, session, [*talk(14, 100), say("last", 20)])
    await quiet(shared, session)
    before = await ask(shared, session, budget=budget(3_000))
    for _ in range(3):
        assert (await shared.client.compact(session, force=True, budget=budget(50_000))).passes == 1
    change = t.RecordHostChangeRequest.HostCompaction(
        first_sequence=1, last_sequence=12, summary="all of it"
    )
    host = await shared.client.record_host_change(session, compacted=change)
    assert len(host.summary.children) == 3
    change = t.RecordHostChangeRequest.HostCompaction(
        first_sequence=21, last_sequence=24, summary="what was said later"
    )
    await shared.client.record_host_change(session, compacted=change)
    warm = await ask(shared, session, budget=budget(3_000))
    first = min(item.origin.sequence for item in before.items if item.origin.sequence)
    assert first > 13
    assert (await shared.client.get_status(session)).view_tokens < warm.budget.cell
    assert min(item.origin.sequence for item in warm.items if item.origin.sequence) >= first
    shared.forget()
    assert hashes(await ask(shared, session, budget=budget(3_000))) == hashes(warm)


async def test_what_a_session_inherits_is_folded_with_its_own(
    shared: House, session: t.SessionRef
) -> None:
    """And the session that it continues keeps what it had; taken back, both are as they were."""
    await assign(shared, session, "dag", **SMALL)
    await store(shared, session, talk(12, 100))
    await quiet(shared, session)
    first = await shared.client.compact(session, force=True, budget=budget(2_600))
    assert {s.depth for s in first.summaries} == {0}
    child = ref(f"{session.session_id} child")
    await assign(shared, child, "dag", **SMALL)
    await shared.client.bootstrap(child, continues=session)
    await quiet(shared, child)
    inherited = hashes(await ask(shared, child, budget=budget(50_000)))
    await store(shared, child, talk(12, 100, "n"))
    done = await shared.client.compact(child, force=True, budget=budget(900))
    parents = [s for s in done.summaries if s.depth]
    assert {s.id for s in first.summaries} & {
        below for parent in parents for below in parent.children
    }
    reply = await ask(shared, child, budget=budget(50_000))
    assert reply.items[0].summary.depth >= 1
    shared.forget()
    assert hashes(await ask(shared, child, budget=budget(50_001))) == hashes(reply)
    page = await shared.client.recall.expand(
        child,
        summary_ids=[reply.items[0].summary.id],
        max_depth=10,
        include_messages=True,
        max_tokens=50_000,
    )
    found = [
        item.origin.sequence for item in page.items if item.origin.WhichOneof("kind") == "sequence"
    ]
    assert found[0] == 1
    assert (await shared.client.get_status(session)).generation == first.generation
    await shared.client.compact(child, undo_to_generation=0)
    back = await ask(shared, child, budget=budget(50_000))
    assert hashes(back)[: len(inherited)] == inherited
    assert ids_of(back.items)[-24:] == ids_of(talk(12, 100, "n"))


async def test_what_users_said_survives_every_fold(shared: House, session: t.SessionRef) -> None:
    """A fold is made from the messages, not from what was left of them in the summaries below."""
    sizes = {"leafTargetTokens": 500, "condensedTargetTokens": 1_200}
    await assign(shared, session, "dag", **(SMALL | sizes))
    said = [f"Keep marmot{turn} away from the fence." for turn in range(60)]
    for turn, text in enumerate(said):
        messages = [user(text, id=f"u{turn}")]
        messages += [reply_with(f"a{turn}-{part}", 100) for part in range(3)]
        await store(shared, session, messages)
        if turn % 10 == 9:
            await quiet(shared, session)
            await shared.client.compact(session, force=True, budget=budget(8_000))
    summaries = (await shared.export(session)).summaries
    deepest = max((summary.info for summary in summaries), key=lambda info: info.depth)
    assert deepest.depth >= 2
    exported = {s.info.id: s.text for s in summaries}
    covered = [
        text
        for at, text in enumerate(said)
        if deepest.first_sequence <= 4 * at + 1 <= deepest.last_sequence
    ]
    rows = exported[deepest.id].split("\n")
    kept = [row.partition(" user: ")[2] for row in rows if " user: " in row]
    assert len(covered) > 12
    assert kept == covered
