"""Summaries made again, in place: what a lower link of the chain wrote because a higher one was
down, and what quotes private reasoning. See docs/semantics.md#made-again."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.compaction.request import HELD, NOT_REMADE, REMADE
from contextengine_server.context.epoch import Cause, cause
from contextengine_server.context.plan import Summarized
from contextengine_server.errors import RequestIdReused
from contextengine_server.health.checks import OK, WARNING
from contextengine_server.recall.expansion import Wanted
from contextengine_server.session.assembly.assembly import Assembly
from contextengine_server.store.rows import SummaryRow
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import (
    S1,
    SMALL,
    TENANT,
    Rows,
    Server,
    incoming,
    request,
    same_as_cold,
    scope,
    texts_of,
)

REFUSED = "I'm sorry, I can't help with that."
LEAK = "decided secretly to use ZX-077 because the user wrote 2026"


async def live(server: Server) -> list[SummaryRow]:
    return await server.store.summaries(scope())


def shown(assembly: Assembly) -> list[str]:
    return [one.summary.id for one in assembly.plan.segments if isinstance(one, Summarized)]


async def degraded(server: Server, first: int = 1) -> None:
    """Turns that were compacted while nobody wrote a summary."""
    says, server.summarizer.says = server.summarizer.says, REFUSED
    await server.talk(first, 6)
    assert (await server.compact(4_000)).done.summaries
    server.summarizer.says = says


async def test_a_summary_is_made_again_in_its_place(server: Server, other: Server) -> None:
    await degraded(server)
    old = await live(server)
    assert all(row.fallback and row.wanted == "extractive" for row in old)
    before = await server.assemble()
    done = await server.compact(100_000, redo=True)
    assert done.done.error == ""
    assert (done.done.compacted, done.done.why) == (False, REMADE)
    made = done.done.summaries
    assert [row.remakes for row in made] == [row.id for row in old]
    assert all(not row.fallback and row.wanted == "" for row in made)
    assert all(
        (new.first_sequence, new.last_sequence, new.span_start, new.span_end, new.message_count)
        == (row.first_sequence, row.last_sequence, row.span_start, row.span_end, row.message_count)
        for new, row in zip(made, old, strict=True)
    )
    after = await server.assemble()
    assert shown(after) == [row.id for row in made]
    assert cause(before.epoch, after.epoch) is Cause.COMPACTED
    assert any("saw file" in text for text in texts_of(after)[: len(made)])
    assert {row.id for row in await live(server)} == {row.id for row in [*old, *made]}
    await same_as_cold(server, other)
    assert (await server.compact(redo=True)).done.why == NOT_REMADE


async def test_an_undo_brings_the_old_one_back(server: Server, other: Server) -> None:
    await degraded(server)
    before = await server.assemble()
    generation = (await server.head()).generation
    await server.compact(redo=True)
    assert (await server.head()).generation > generation
    await server.compact(undo_to_generation=generation, force=False)
    after = await server.assemble()
    assert shown(after) == shown(before)
    assert texts_of(after) == texts_of(before)
    await same_as_cold(server, other)
    assert (await server.compact(redo=True, force=False)).done.why == HELD


async def test_no_later_generation_is_lost(server: Server, other: Server) -> None:
    """Leaves that stood in are made again below what was folded over them since, and so is that."""
    for first in range(1, 60, 6):
        await degraded(server, first)
    rows = await live(server)
    assert max(row.depth for row in rows) > 0
    before = await server.assemble()
    done = await server.compact(redo=True)
    assert done.done.error == ""
    after = await server.assemble()
    places = {row.id: (row.depth, row.first_sequence, row.last_sequence) for row in rows}
    now = {row.id: (row.depth, row.first_sequence, row.last_sequence) for row in await live(server)}
    assert [now[id] for id in shown(after)] == [places[id] for id in shown(before)]
    assert not set(shown(after)) & set(shown(before))
    assert len(done.done.summaries) == len(rows)
    # What lies below is made again first: the others were made of the better ones.
    depths = [row.depth for row in done.done.summaries if isinstance(row, SummaryRow)]
    assert depths == sorted(depths)
    await same_as_cold(server, other)
    assert (await server.compact(redo=True)).done.why == NOT_REMADE


async def test_what_was_made_of_one_is_made_again_after_it(server: Server) -> None:
    server.summarizer.name = "models"
    await degraded(server)
    first = {row.id for row in await live(server)}
    server.summarizer.says = "A model says what was in the files, in its own few words."
    for at in range(7, 60, 6):
        await server.talk(at, 6)
        await server.compact(4_000)
    parents = [row for row in await live(server) if first & set(row.children)]
    assert parents
    assert not any(row.fallback for row in parents)
    server.summarizer.says = "A model says it anew, and at greater length than it did before."
    done = await server.compact(redo=True)
    again = {row.remakes for row in done.done.summaries if isinstance(row, SummaryRow)}
    assert again == first | {row.id for row in parents}


async def test_nobody_better_leaves_it_as_it_is(server: Server) -> None:
    await degraded(server)
    rows, before = await live(server), await server.assemble()
    server.summarizer.says = REFUSED
    done = await server.compact(redo=True)
    assert done.done.summaries == []
    assert "nobody better" in done.done.error
    assert await live(server) == rows
    assert (await server.assemble()).epoch == before.epoch


async def test_what_a_better_one_wrote_is_left_alone(server: Server) -> None:
    await server.talk(1, 6)
    await server.compact(4_000)
    asked = len(server.summarizer.asked)
    assert (await server.compact(redo=True)).done.why == NOT_REMADE
    assert len(server.summarizer.asked) == asked


async def test_appends_and_a_rewind_meanwhile(server: Server, other: Server) -> None:
    """What was said meanwhile stays; a summary that a rewind took away is not made again."""
    await degraded(server)
    server.summarizer.meanwhile = [lambda: other.talk(7, 1)]
    assert (await server.compact(redo=True)).done.summaries
    assert (await server.stored())[-1].startswith("a7 ")
    await same_as_cold(server, other)


async def test_tools_of_recall_know_the_old_id(server: Server) -> None:
    await degraded(server)
    (old, *_) = await live(server)
    covered = await server.recall.expand.run(TENANT, S1, Wanted(summary_ids=[old.id]), "")
    done = await server.compact(redo=True)
    (new, *_) = done.done.summaries
    for id in (old.id, new.id):
        seen = await server.recall.inspect.run(TENANT, S1, id, "")
        assert seen.found.row.id == new.id
        again = await server.recall.expand.run(TENANT, S1, Wanted(summary_ids=[id]), "")
        assert [one.message for one in again.items] == [one.message for one in covered.items]


# Private reasoning.


async def quoting(server: Server) -> SummaryRow:
    """A summary as an earlier version made it."""
    answer = pb.Message(role=pb.ROLE_ASSISTANT, id="thinks")
    answer.parts.add().reasoning.text = f"Well.\n{LEAK}. So be it."
    answer.parts.add().text.text = "Done, the parcel is on its way."
    await server.context.ingest.run(TENANT, S1, incoming(answer), None)
    await server.talk(1, 6)
    server.summarizer.says = f"assistant: {LEAK}. The rest was about files."

    async def first() -> None:
        pass

    async def later() -> None:
        server.summarizer.says = ""

    server.summarizer.meanwhile = [first, later]
    assert (await server.compact(4_000)).done.summaries
    server.summarizer.says = ""
    return (await live(server))[0]


@pytest.mark.parametrize("asked", ["repair", "redo"])
async def test_what_quotes_private_reasoning_is_made_again(
    server: Server, other: Server, asked: str
) -> None:
    old = await quoting(server)
    name = "session.integrity.private_summary"
    found = {one.name: one for one in await server.engines.doctor.run(TENANT, S1)}
    assert found[name].status == WARNING
    if asked == "repair":
        checks = await server.engines.doctor.run(TENANT, S1, repair=True)
        assert {one.name: one.status for one in checks}[name] == OK
    else:
        assert (await server.compact(redo=True)).done.summaries
    assert name not in {one.name for one in await server.engines.doctor.run(TENANT, S1)}
    assert not any(LEAK in text for text in await server.shown())
    assert not any(LEAK in text for text in await server.shown(2_000))
    seen = await server.recall.inspect.run(TENANT, S1, old.id, "")
    assert LEAK not in seen.found.row.text
    texts = [row.text for _, row in await server.store.index.summaries(scope(), 0)]
    assert not any(LEAK in text for text in texts)
    await same_as_cold(server, other)
    # It comes back by no undo: what stands in its place has its generation.
    head = await server.head()
    for generation in range(head.generation - 1, -1, -1):
        await server.compact(undo_to_generation=generation, force=False)
        assert not any(LEAK in text for text in await server.shown())
    assert [text.split()[0] for text in await server.shown()][-1] == "a6"


async def test_doctor_says_what_it_could_not_mend(server: Server) -> None:
    await degraded(server)
    server.summarizer.says = REFUSED
    name = "session.integrity.stand_in_summary"
    checks = {one.name: one for one in await server.engines.doctor.run(TENANT, S1, repair=True)}
    assert checks[name].status == WARNING
    server.summarizer.says = ""
    checks = {one.name: one for one in await server.engines.doctor.run(TENANT, S1, repair=True)}
    assert checks[name].status == OK


@pytest.mark.parametrize("longer", [False, True])
async def test_nothing_that_was_evicted_comes_back(server: Server, longer: bool) -> None:
    """Whether what is made again is longer or shorter than what stood there, at any budget."""
    said = "assistant: " + f"{LEAK}. " + "The rest was about the files. " * (1 if longer else 12)
    answer = pb.Message(role=pb.ROLE_ASSISTANT, id="thinks")
    answer.parts.add().reasoning.text = f"Well.\n{LEAK}. So be it."
    answer.parts.add().text.text = "Done, the parcel is on its way."
    await server.context.ingest.run(TENANT, S1, incoming(answer), None)
    await server.talk(1, 6)
    server.summarizer.says = said
    assert (await server.compact(4_000)).done.summaries
    await server.talk(7, 6)
    budgets = range(1_000, 8_000, 250)
    before = {size: messages(await server.assemble(size)) for size in budgets}
    server.summarizer.says = "The files, at length. " * 9 if longer else "In short: the files."
    tokens = (await server.compact(redo=True)).done
    assert (tokens.after > tokens.before) == longer
    for size in budgets:
        after = messages(await server.assemble(size))
        assert set(after) <= set(before[size]), size


def messages(assembly: Assembly) -> list[str]:
    """The messages that an assembly shows, by their first words."""
    texts = texts_of(assembly)
    return [text.split()[0] for text in texts if text.split()[0][1:].isdigit()]


@given(
    st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=4),
    st.sampled_from((1_500, 4_000)),
)
@settings(max_examples=15, deadline=None)
def test_whatever_stood_in_is_made_again_where_it_stands(
    rounds: list[tuple[int, bool]], budget: int
) -> None:
    """Any order of outages: places, messages and later generations stay, and an undo brings back
    what was there."""

    async def play() -> None:
        rows = Rows()
        server = await Server(rows, **SMALL).open()
        first = 1
        for turns, down in rounds:
            server.summarizer.says = REFUSED if down else ""
            await server.talk(first, turns)
            first += turns
            await server.compact(budget)
        server.summarizer.says = ""
        old, before = await live(server), await server.assemble()
        generation = (await server.head()).generation
        done = await server.compact(redo=True)
        now = {row.id: row for row in await live(server)}
        made = [row for row in now.values() if row.remakes]
        assert {row.id for row in old} == now.keys() - {row.id for row in made}
        for row in made:
            was = now[row.remakes]
            for name in ("depth", "first_sequence", "last_sequence", "span_start", "span_end"):
                assert getattr(row, name) == getattr(was, name)
            assert not row.fallback
        remade = {row.remakes for row in made}
        # A few words may be too few for a sentence: then nobody better wrote it.
        left = {row.id for row in old if row.fallback} - remade
        assert not left or done.done.error
        after = await server.assemble()
        assert len(shown(after)) == len(shown(before))
        for new, old_one in zip(shown(after), shown(before), strict=True):
            assert new == old_one or now[new].remakes == old_one
        assert (await server.compact(redo=True)).done.summaries == []
        cold = await Server(rows, **SMALL).open()
        await same_as_cold(server, cold)
        await server.compact(undo_to_generation=generation, force=False)
        assert texts_of(await server.assemble()) == texts_of(before)
        await same_as_cold(server, cold)
        await cold.close()
        await server.close()

    asyncio.run(play())


async def test_the_same_request_again_makes_nothing_again(serve: Serve) -> None:
    server = await serve()
    await server.talk(1, 6)
    await server.compact(4_000)
    asked = len(server.summarizer.asked)
    await server.compact(redo=True, request=request("redo"))
    with pytest.raises(IndexError):  # the reply is as it was stored: nothing is encoded anew
        await server.compact(redo=True, request=request("redo"))
    with pytest.raises(RequestIdReused):
        await server.compact(redo=True, request=request("redo", b"other"))
    assert len(server.summarizer.asked) == asked
