"""The harness's own list is a view and not the truth. It is aligned, what follows is new, absence
deletes nothing. See docs/semantics.md#live-lists."""

from __future__ import annotations

import pytest
import pytest_asyncio

from contextengine import types as t
from contextengine import user
from tests.integration.harness import House, budget, texts

from .asking import (
    ask,
    assign,
    calls,
    epoch,
    hashes,
    ids_of,
    judged,
    live,
    origins,
    reply_with,
    result,
    say,
    store,
    talk,
    without_ids,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
FITS, DEGRADED = t.AssembleResponse.OUTCOME_FITS, t.AssembleResponse.OUTCOME_DEGRADED
STEP = [calls("a1", "c1"), result("r1", "c1")]


@pytest_asyncio.fixture(loop_scope="module", params=["dag", "legacy"])
async def engine(request: pytest.FixtureRequest, shared: House, session: t.SessionRef) -> str:
    await assign(shared, session, request.param)
    return str(request.param)


@pytest.mark.parametrize("with_ids", [True, False])
async def test_what_follows_the_alignment_is_stored(
    shared: House, session: t.SessionRef, engine: str, with_ids: bool
) -> None:
    whole = [*talk(3), *STEP, say("u9")]
    whole = whole if with_ids else without_ids(whole)
    await ask(shared, session, live=live(whole[:6], store_new=True))
    reply = await ask(shared, session, live=live(whole, store_new=True))
    assert [(s.index, s.sequence) for s in reply.stored] == [(6, 7), (7, 8), (8, 9)]
    assert origins(reply) == [str(n) for n in range(1, 10)]
    assert texts(await shared.rows(session)) == texts(whole)
    assert (reply.outcome, reply.revision) == (FITS, 2)
    assert await judged(shared, reply, session) == []


@pytest.mark.parametrize("with_ids", [True, False])
async def test_else_it_is_only_shown_in_this_call(
    shared: House, session: t.SessionRef, engine: str, with_ids: bool
) -> None:
    whole = [*talk(2), *STEP, say("u9")]
    whole = whole if with_ids else without_ids(whole)
    await store(shared, session, whole[:4])
    reply = await ask(shared, session, live=live(whole))
    assert origins(reply) == ["1", "2", "3", "4", "live 4", "live 5", "live 6"]
    assert texts(reply.items) == texts(whole)
    assert (reply.revision, len(reply.stored), reply.outcome) == (1, 0, FITS)
    assert ids_of((await ask(shared, session)).items) == ids_of(whole[:4])
    again = await ask(shared, session, live=live(whole))
    assert (hashes(again), epoch(again)) == (hashes(reply), epoch(reply))


async def test_the_newest_run_counts_where_texts_repeat(
    shared: House, session: t.SessionRef
) -> None:
    hi, yes = user("hi", id=""), user("yes", id="")
    await store(shared, session, [hi, yes, hi, yes])
    reply = await ask(shared, session, live=live([hi, yes, hi, yes, hi, yes], store_new=True))
    # The longest run that ends at the last stored message is the first four.
    assert [(s.index, s.sequence) for s in reply.stored] == [(4, 5), (5, 6)]
    assert texts(reply.items) == ["hi", "yes"] * 3


async def test_the_same_list_twice_stores_nothing_twice(
    shared: House, session: t.SessionRef, engine: str
) -> None:
    whole = without_ids([say("u1"), say("u1"), *talk(2), say("u1")])
    first = await ask(shared, session, live=live(whole, store_new=True))
    again = await ask(shared, session, live=live(whole, store_new=True))
    assert len(first.stored) == 7
    assert len(again.stored) == 0
    assert (hashes(again), again.revision) == (hashes(first), first.revision)


@pytest.mark.parametrize("with_ids", [True, False])
async def test_absence_deletes_nothing(
    shared: House, session: t.SessionRef, engine: str, with_ids: bool
) -> None:
    whole = [*talk(4), say("u9")]
    whole = whole if with_ids else without_ids(whole)
    await store(shared, session, whole[:8])
    trimmed = whole[5:]
    reply = await ask(shared, session, live=live(trimmed, store_new=True))
    assert texts(await shared.rows(session)) == texts(whole)
    # An engine that evicts by itself shows the session; legacy passes the harness's list through.
    assert texts(reply.items) == texts(whole if engine == "dag" else trimmed)
    assert reply.outcome == FITS
    assert texts((await ask(shared, session)).items) == texts(whole)


async def test_a_repaired_list_is_aligned_by_what_it_kept(
    shared: House, session: t.SessionRef, engine: str
) -> None:
    """The harness dropped an orphan, gave an abandoned call a result of its own, and left the
    beginning out."""
    stored = without_ids(
        [*talk(2), result("r0", "nobody"), calls("a3", "c1"), say("u4"), reply_with("a4")]
    )
    await store(shared, session, stored)
    mended = [*stored[2:4], stored[5], *without_ids([result("made up", "c1")]), *stored[6:]]
    new = without_ids([say("u5")])
    reply = await ask(shared, session, live=live([*mended, *new], store_new=True))
    # The result that the harness made up is taken for one that came late: nothing tells them apart.
    late = mended[3]
    assert [(s.index, s.sequence) for s in reply.stored] == [(3, 9), (6, 10)]
    assert texts(await shared.rows(session)) == texts([*stored, late, *new])
    if engine == "dag":
        assert texts(reply.items[:6]) == [*texts(stored[:4]), "call:run", *texts([late])]
        assert await judged(shared, reply, session) == []
    else:
        assert texts(reply.items) == texts([*mended, *new])


@pytest.mark.parametrize("with_ids", [True, False])
async def test_a_list_that_meets_nothing_is_unaligned(
    shared: House, session: t.SessionRef, engine: str, with_ids: bool
) -> None:
    before = await store(shared, session, talk(2))
    other = [
        say("x1"),
        calls("x2", "c1", "c2"),
        result("x3", "c1"),
        result("x4", "nobody"),
        say("x5"),
    ]
    other = other if with_ids else without_ids(other)
    reply = await ask(shared, session, live=live(other))
    assert (reply.outcome, reply.outcome_reason) == (DEGRADED, "UNALIGNED")
    assert (reply.revision, len(reply.stored)) == (before, 0)
    assert ids_of(await shared.rows(session)) == ids_of(talk(2))
    # The list itself, under the laws: the orphan is gone, the abandoned call has a result.
    assert origins(reply) == ["live 0", "live 1", "live 2", "synthetic", "live 4"]
    assert reply.items[3].message.parts[0].tool_result.call_id == "c2"
    # With store_new it is what the harness made of its transcript, and takes the session's place.
    healed = await ask(shared, session, live=live(other, store_new=True))
    assert (healed.outcome, healed.outcome_reason) == (DEGRADED, "UNALIGNED")
    assert [s.index for s in healed.stored] == [0, 1, 2, 3, 4]
    assert healed.revision == before + 1
    assert origins(healed) == ["5", "6", "7", "synthetic", "9"]
    assert texts(await shared.rows(session)) == texts(other)
    again = await ask(shared, session, live=live(other, store_new=True))
    assert (again.outcome, len(again.stored), again.revision) == (FITS, 0, before + 1)
    assert hashes(again) == hashes(healed)


async def test_an_unaligned_list_is_held_to_the_budget(
    shared: House, session: t.SessionRef
) -> None:
    await store(shared, session, talk(1))
    other = without_ids(talk(10, 100, "x"))
    reply = await ask(shared, session, live=live(other), budget=budget(600))
    assert reply.outcome == DEGRADED
    assert 0 < sum(item.tokens for item in reply.items) <= 600
    assert texts(reply.items)[-1] == texts(other)[-1]
    small = await ask(shared, session, live=live(other), budget=budget(5))
    assert small.outcome == t.AssembleResponse.OUTCOME_OVER_BUDGET
    assert small.items[-1].form == t.FORM_HEAD_TAIL
    assert texts(small.items)[-1][:20] == texts(other)[-1][:20]


async def test_an_empty_session_takes_the_whole_list(
    shared: House, session: t.SessionRef, engine: str
) -> None:
    reply = await ask(shared, session, live=live(without_ids(talk(2)), store_new=True))
    assert (len(reply.stored), reply.outcome) == (4, FITS)


async def test_an_empty_list_says_nothing(
    shared: House, session: t.SessionRef, engine: str
) -> None:
    await store(shared, session, talk(2))
    reply = await ask(shared, session, live=live([], store_new=True))
    assert ids_of(await shared.rows(session)) == ids_of(talk(2))
    assert reply.revision == 1


@pytest.mark.parametrize("with_ids", [True, False])
async def test_own_items_that_come_back_are_not_stored(
    shared: House, session: t.SessionRef, engine: str, with_ids: bool
) -> None:
    """A summary and a made-up result, with their ids and without."""
    await store(shared, session, [*talk(12, 200), calls("a7", "c1"), say("u8"), reply_with("a8")])
    await shared.client.compact(session, force=True, budget=budget(1_500))
    first = await ask(shared, session, budget=budget(4_000))
    assert {"summary", "synthetic"} <= set(origins(first))
    sent = [item.message for item in first.items]
    sent = sent if with_ids else without_ids(sent)
    new = [say("u9")] if with_ids else without_ids([say("u9")])
    rows = len(await shared.rows(session))
    reply = await ask(
        shared, session, live=live([*sent, *new], store_new=True), budget=budget(4_000)
    )
    assert texts(reply.items) == texts([*sent, *new])
    assert origins(reply)[:-1] == origins(first)
    assert texts(await shared.rows(session))[rows:] == texts(new)
    assert epoch(reply) == epoch(first)


async def test_own_items_sent_as_new_are_not_stored(shared: House, session: t.SessionRef) -> None:
    await store(shared, session, [calls("a1", "c1"), say("u2")])
    shown = await ask(shared, session)
    reply = await ask(shared, session, ingest=[shown.items[1].message, say("u3")])
    assert [s.sequence for s in reply.stored] == [0, 3]
    assert reply.stored[0].disposition == t.StoredMessage.DISPOSITION_DUPLICATE
    assert len(await shared.rows(session)) == 3


async def test_a_late_result_in_a_list_reaches_far_back(
    shared: House, session: t.SessionRef
) -> None:
    """It belongs to a call that lies before what the service holds in memory."""
    long = [say("u0"), calls("a0", "c0"), *talk(80, 1800)]
    await store(shared, session, long)
    shared.forget()
    reply = await ask(
        shared, session, live=live([*long[-3:], result("r0", "c0")]), budget=budget(12_000)
    )
    assert reply.outcome == FITS
    assert ids_of(await shared.rows(session)) == ids_of(long)
    stored = await ask(
        shared,
        session,
        live=live([*long[-3:], result("r0", "c0")], store_new=True),
        budget=budget(12_000),
    )
    assert [s.sequence for s in stored.stored] == [163]
    assert await judged(shared, stored, session) == []


async def test_what_follows_an_old_message_is_new(shared: House, session: t.SessionRef) -> None:
    """What a list leaves out is not deleted, at its end either."""
    whole, new = without_ids(talk(4)), without_ids([say("new")])
    await store(shared, session, whole)
    reply = await ask(shared, session, live=live([*whole[:3], *new], store_new=True))
    assert (reply.outcome, [s.index for s in reply.stored]) == (FITS, [3])
    assert texts(await shared.rows(session)) == texts([*whole, *new])
