"""The epoch is derived from all that decides how an assembly begins, and a change of it is named.
See docs/semantics.md#epochs."""

from __future__ import annotations

from itertools import pairwise

import pytest

from contextengine import types as t
from tests.integration.harness import House, budget, ref

from .asking import (
    Cause,
    ask,
    assign,
    calls,
    epoch,
    hashes,
    held_back,
    ids_of,
    live,
    quiet,
    reply_with,
    result,
    say,
    settled,
    store,
    talk,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
WIDE = budget(50_000)


async def cause(house: House, session: t.SessionRef, known: t.AssembleResponse, **fields) -> str:
    """Why the epoch is another one now, in the enum's words; empty: it is the same."""
    fields.setdefault("budget", WIDE)
    reply = await ask(house, session, known_epoch=epoch(known), **fields)
    assert (epoch(reply) == epoch(known)) == (reply.cache.epoch_cause == 0)
    return (
        Cause.Name(reply.cache.epoch_cause).removeprefix("EPOCH_CAUSE_").replace("UNSPECIFIED", "")
    )


@pytest.mark.parametrize("engine", ["dag", "legacy"])
async def test_appends_change_nothing(shared: House, session: t.SessionRef, engine: str) -> None:
    await assign(shared, session, engine)
    first = await ask(shared, session, ingest=[say("u0")], budget=WIDE)
    for message in [
        *talk(10),
        calls("a8", "c1", "c2"),
        result("r8", "c1"),
        say("u9"),
        reply_with("a9"),
    ]:
        assert await cause(shared, session, first, ingest=[message]) == ""


@pytest.mark.parametrize("size", [600, 1_100, 2_500])
@pytest.mark.parametrize("compacting", [False, True])
async def test_equal_epochs_mean_a_prefix(
    shared: House, session: t.SessionRef, size: int, compacting: bool
) -> None:
    """Over a session that outgrows its budget by far, with background compaction and without."""
    if not compacting:
        await quiet(shared, session)
    seen: dict[str, list[list[bytes]]] = {}
    additions: dict[str, set[str]] = {}
    for message in _long():
        reply = await ask(shared, session, ingest=[message], budget=budget(size))
        seen.setdefault(epoch(reply), []).append(hashes(reply))
        additions.setdefault(epoch(reply), set()).add(reply.system_prompt_addition)
        if compacting and len(seen) % 3 == 0:
            await settled(shared, session)
    for lists in seen.values():
        for earlier, later in pairwise(lists):
            assert later[: len(earlier)] == earlier
    assert all(len(said) == 1 for said in additions.values())
    assert len(seen) > 2


def _long() -> list[t.Message]:
    """Turns with steps, abandoned calls and a late result."""
    messages: list[t.Message] = []
    for turn in range(30):
        messages += [
            say(f"u{turn}", 12),
            calls(f"a{turn}", f"c{turn}"),
            result(f"r{turn}", f"c{turn}", 30),
        ]
        if turn % 7 == 3:
            messages += [calls(f"x{turn}", f"late{turn}"), say(f"y{turn}")]
        if turn % 14 == 5:
            messages.append(result(f"l{turn}", f"late{turn - 2}"))
        messages.append(reply_with(f"b{turn}", 25))
    return messages


async def test_budgets_of_one_cell_share_an_epoch(shared: House, session: t.SessionRef) -> None:
    """Where both show all that there is."""
    await store(shared, session, talk(20))
    tokens = (await shared.client.get_status(session)).message_tokens
    assert tokens < 2_048
    await quiet(shared, session)
    first = await ask(shared, session, budget=budget(2_050))
    assert await cause(shared, session, first, budget=budget(2_200)) == ""
    assert await cause(shared, session, first, budget=budget(2_300)) == "BUDGET"


async def test_another_model_in_between_changes_nothing(
    shared: House, session: t.SessionRef
) -> None:
    await store(shared, session, talk(30))
    async with held_back(shared, session):
        first = await ask(shared, session, budget=budget(1_000))
        other = await ask(
            shared, session, ingest=[say("u1")], budget=budget(1_000), model="claude-sonnet-4-5"
        )
        again = await ask(shared, session, ingest=[say("u2")], budget=budget(1_000))
        assert epoch(other) != epoch(first) == epoch(again)
        assert hashes(again)[: len(hashes(first))] == hashes(first)
        assert (
            await cause(shared, session, other, model="claude-sonnet-4-5", budget=budget(1_000))
            == ""
        )


async def test_cut(shared: House, session: t.SessionRef) -> None:
    await store(shared, session, talk(2))
    async with held_back(shared, session):
        first = await ask(shared, session, budget=budget(1_000))
        found = [
            await cause(shared, session, first, ingest=[m], budget=budget(1_000))
            for m in talk(30, 20, "n")
        ]
    assert (found[0], found[-1]) == ("", "CUT")
    assert found == sorted(found)


async def test_a_summary_that_is_not_shown(shared: House, session: t.SessionRef) -> None:
    """It takes room all the same, for what would be said of it: it is named, and not the budget."""
    await store(shared, session, talk(12, 100))
    first = await ask(shared, session, budget=budget(700))
    await settled(shared, session)
    assert await cause(shared, session, first, budget=budget(700)) in ("", "COMPACTED")


async def test_a_summary_that_gives_way_is_a_cut(shared: House, session: t.SessionRef) -> None:
    """Whatever was compacted stays compacted: that less of it is shown is another cause."""
    await store(shared, session, talk(60, 100))
    await shared.client.compact(session, force=True, budget=budget(5_000))
    await settled(shared, session)
    names = [f"c{at}" for at in range(40)]
    async with held_back(shared, session):
        first = await ask(shared, session, ingest=[calls("a", *names)], budget=budget(2_500))
        shown = now = summaries_of(first)
        found = list[str]()
        for at in names[:-1]:  # a step that waits for results is shown as it is
            if now == shown:
                late = [result(f"r{at}", at, 40)]
                found.append(await cause(shared, session, first, ingest=late, budget=budget(2_500)))
                now = summaries_of(await ask(shared, session, budget=budget(2_500)))
        assert set(now) < set(shown)
        assert found[-1] == "CUT"


def summaries_of(reply: t.AssembleResponse) -> list[str]:
    return [item.origin.summary_id for item in reply.items if item.origin.summary_id]


async def test_compacted(shared: House, session: t.SessionRef) -> None:
    first = await ask(shared, session, ingest=talk(30, 100), budget=WIDE)
    assert (await shared.client.compact(session, force=True, budget=budget(1_500))).summaries
    assert await cause(shared, session, first) == "COMPACTED"


async def test_compacted_by_the_host(shared: House, session: t.SessionRef) -> None:
    first = await ask(shared, session, ingest=talk(10), budget=WIDE)
    compaction = t.RecordHostChangeRequest.HostCompaction(
        first_sequence=1, last_sequence=6, summary="they met"
    )
    await shared.client.record_host_change(session, compacted=compaction)
    assert await cause(shared, session, first) == "COMPACTED"


async def test_compacted_natively(shared: House, session: t.SessionRef) -> None:
    first = await ask(shared, session, ingest=talk(10), budget=WIDE)
    native = t.RecordHostChangeRequest.NativeCompaction(thread_id="t1")
    await shared.client.record_host_change(session, native_compacted=native)
    assert await cause(shared, session, first) == "COMPACTED"


async def test_rewound(shared: House, session: t.SessionRef) -> None:
    first = await ask(shared, session, ingest=talk(10), budget=WIDE)
    rewind = t.RecordHostChangeRequest.Rewind(after_sequence=6)
    await shared.client.record_host_change(session, rewind=rewind)
    assert await cause(shared, session, first) == "REWOUND"


async def test_reset(shared: House, session: t.SessionRef) -> None:
    first = await ask(shared, session, ingest=talk(10), budget=WIDE)
    await shared.client.reset_session(session)
    assert await cause(shared, session, first, ingest=[say("again")]) == "RESET"


async def test_another_session_under_the_key(shared: House) -> None:
    key = "a key"
    first = await ask(shared, ref("first life", key=key), ingest=[say("u1")], budget=WIDE)
    assert await cause(shared, ref("second life", key=key), first, ingest=[say("u1")]) == "RESET"


async def test_a_deleted_session_is_another(shared: House, session: t.SessionRef) -> None:
    first = await ask(shared, session, ingest=[say("u1")], budget=WIDE)
    await shared.client.sessions.delete(session)
    assert await cause(shared, session, first, ingest=[say("u1")]) == "RESET"


async def test_a_late_result(shared: House, session: t.SessionRef) -> None:
    step = [say("u1"), calls("a1", "c1", "c2"), result("r1", "c1")]
    pending = await ask(shared, session, ingest=step, budget=WIDE)
    assert await cause(shared, session, pending, ingest=[say("u2")]) == ""
    assert await cause(shared, session, pending, ingest=[result("r2", "c2")]) == "LATE_RESULT"


async def test_a_result_in_time_is_not_late(shared: House, session: t.SessionRef) -> None:
    first = await ask(shared, session, ingest=[say("u1"), calls("a1", "c1", "c2")], budget=WIDE)
    assert await cause(shared, session, first, ingest=[result("r2", "c2")]) == ""
    assert await cause(shared, session, first, ingest=[result("r1", "c1")]) == ""


async def test_engine_model_and_configuration(shared: House, session: t.SessionRef) -> None:
    first = await ask(shared, session, ingest=talk(5), budget=WIDE)
    assert await cause(shared, session, first, model="gpt-5") == "MODEL"
    await assign(shared, session, freshTailTurns=9)
    assert await cause(shared, session, first) == "CONFIG"
    await assign(shared, session, "legacy")
    assert await cause(shared, session, first) == "ENGINE"
    await assign(shared, session, "dag", freshTailTurns=8)
    assert await cause(shared, session, first) == ""
    await shared.client.update_model(session, model="gpt-5")
    assert await cause(shared, session, first) == "MODEL"


@pytest.mark.parametrize(
    "known", ["mine", "e1.", "e1.????", "e2.x7F5", "e1." + "A" * 80, "e1." + "A" * 79, "\x00"]
)
async def test_an_epoch_of_no_one_here(shared: House, session: t.SessionRef, known: str) -> None:
    await store(shared, session, talk(2))
    reply = await ask(shared, session, known_epoch=known)
    if known == "e1." + "A" * 80:  # of the right form, and of another session
        assert reply.cache.epoch_cause == Cause.EPOCH_CAUSE_RESET
    else:
        assert reply.cache.epoch_cause == Cause.EPOCH_CAUSE_UNKNOWN
    assert len(reply.items) == 4


async def test_no_epoch_known_is_no_cause(shared: House, session: t.SessionRef) -> None:
    assert (await ask(shared, session, ingest=[say("u1")])).cache.epoch_cause == 0


async def test_lists_that_differ_have_epochs_that_differ(
    shared: House, session: t.SessionRef
) -> None:
    """Of lists that are not stored, one may go on otherwise than the other, or begin otherwise."""
    await store(shared, session, talk(4))
    await assign(shared, session, "legacy")
    lists = [
        [*talk(4), say("x")],
        [*talk(4), say("y")],
        talk(4)[2:],
        talk(4)[1:],
        [say("other"), *talk(4)],
        [*talk(4)[:3], *talk(4)[4:]],
        [say("unaligned")],
        [say("unaligned too")],
    ]
    replies = [await ask(shared, session, live=live(sent), budget=WIDE) for sent in lists]
    assert len({epoch(reply) for reply in replies}) == len(lists)
    # A list that begins late goes on within its epoch.
    longer = await ask(
        shared, session, live=live([*talk(4)[2:], say("new")], store_new=True), budget=WIDE
    )
    assert epoch(longer) == epoch(replies[2])
    assert hashes(longer)[:6] == hashes(replies[2])


async def test_nothing_behind_a_summary(shared: House, session: t.SessionRef) -> None:
    """Where the newest messages are covered too, the epoch is the same in another life, and what is
    appended goes on in it."""
    await store(
        shared, session, [calls("a1", "c1"), result("r1", "c1", 200), reply_with("a2", 200)]
    )
    await shared.client.record_host_change(
        session,
        compacted=t.RecordHostChangeRequest.HostCompaction(
            first_sequence=1, last_sequence=3, summary="Done."
        ),
    )
    first = await ask(shared, session, budget=WIDE)
    assert [item.HasField("summary") for item in first.items] == [True]
    shared.forget()
    again = await ask(shared, session, budget=WIDE)
    assert epoch(again) == epoch(first)
    longer = await ask(shared, session, ingest=[say("u1")], budget=WIDE)
    assert (epoch(longer), hashes(longer)[:1]) == (epoch(first), hashes(first))


async def test_a_range_that_ends_before_the_newest(shared: House, session: t.SessionRef) -> None:
    """What followed the newest user message is covered by a summary that has no room: the list is
    shorter than it was."""
    await quiet(shared, session)

    async def compacted(first: int, last: int, summary: str) -> None:
        change = t.RecordHostChangeRequest.HostCompaction(
            first_sequence=first, last_sequence=last, summary=summary
        )
        assert (await shared.client.record_host_change(session, compacted=change)).summary.id

    await store(shared, session, [calls("a1", "c1"), result("r1", "c1", 300)])
    await compacted(1, 2, "Done.")
    small = budget(230)
    before = await ask(shared, session, ingest=[say("u1", 60), reply_with("a2", 3)], budget=small)
    assert ids_of(before.items) == ["u1", "a2"]
    await store(shared, session, [reply_with("a3", 300)])
    await compacted(3, 5, "Done as well.")
    after = await ask(shared, session, budget=small)
    assert ids_of(after.items) == ["u1"]
    assert epoch(after) != epoch(before)
    longer = await ask(shared, session, ingest=[reply_with("a4", 3)], budget=small)
    assert ids_of(longer.items) == ["u1", "a4"]
    assert epoch(longer) == epoch(after)
