"""The facts of a range go to memory before it is summarized: once, whatever happens, and without
stopping a compaction."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from contextengine_server.commands.turn.after_turn import Turn
from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.compaction import memory_flush, memory_job
from contextengine_server.compaction.memory_flush import Told
from contextengine_server.memory.range import MemoryRange
from contextengine_server.session.address import Address, Ref
from contextengine_server.session.assembly.budget import BudgetSpec
from contextengine_server.session.state import FLUSH, SessionState
from contextengine_server.store.debts import Debt
from contextengine_server.store.errors import StoreUnavailable
from tests.unit.commands.compaction.test_remake_background import work
from tests.unit.commands.house import AGENT, S1, SMALL, TENANT, Rows, Server, scope, spoken


class Notes:
    """A memory that writes down what it is given, and fails as often as it is told to."""

    def __init__(self, failures: int = 0, *, hangs: bool = False) -> None:
        self.given: list[MemoryRange] = []
        self.failures, self.hangs = failures, hangs
        self.taken: list[int] = []

    async def flush(self, given: MemoryRange) -> None:
        """See Memory."""
        self.given.append(given)
        if self.hangs:
            await asyncio.Event().wait()
        if len(self.given) <= self.failures:
            raise OSError("no room for facts")

    @property
    def sequences(self) -> list[int]:
        """Of all messages that were given, in order."""
        return [message.sequence for given in self.given for message in given.messages]


async def served(rows: Rows, memory: Notes | None, **settings: object) -> Server:
    return await Server(rows, memory=memory, **{**SMALL, **settings}).open()


async def state_of(server: Server) -> SessionState:
    return SessionState.decode((await server.head()).state)


async def worked(server: Server) -> None:
    """Works off what is owed, later than all of it is due."""
    while await work(server, ahead_ms=60_000):
        pass


def covered(ranges: Sequence[tuple[int, int]]) -> set[int]:
    return {at for first, last in ranges for at in range(first, last + 1)}


@pytest.mark.parametrize("engine", ["dag", "pipeline"])
async def test_every_message_is_handed_over_before_its_summary_and_once(
    rows: Rows, engine: str
) -> None:
    memory = Notes()
    server = await served(rows, memory)
    await server.engines.assign.run(scope(), engine, {}, clear=False)
    await server.talk(1, 12)
    asked: list[int] = []

    async def writing() -> None:
        asked.append(len(memory.given))

    server.summarizer.meanwhile = [writing] * 99
    done = await server.compact(3_000)
    leaves = [row for row in done.done.summaries if row.depth == 0]
    assert leaves
    assert asked[0] == 1  # before the first summary was written
    summarized = covered([(row.first_sequence, row.last_sequence) for row in leaves])
    assert sorted(memory.sequences) == sorted(set(memory.sequences))
    assert set(memory.sequences) == summarized
    assert covered((await state_of(server)).flushed) == summarized
    assert "u1 saw file1" in memory.given[0].messages[0].text
    assert all(given.scope == scope() for given in memory.given)
    assert len({given.id for given in memory.given}) == len(memory.given)


async def test_without_a_memory_nothing_is_noted(rows: Rows) -> None:
    server = await served(rows, None)
    await server.talk(1, 12)
    assert (await server.compact(3_000)).done.summaries
    state = await state_of(server)
    assert (state.flushed, state.unflushed) == ((), ())


async def test_a_restart_and_an_undo_hand_nothing_over_again(rows: Rows) -> None:
    memory = Notes()
    server = await served(rows, memory)
    await server.talk(1, 12)
    await server.compact(3_000)
    first = list(memory.sequences)
    await server.close()
    again = await served(rows, memory)
    await again.compact(3_000, undo_to_generation=0)
    await again.compact(3_000)
    assert (await again.head()).summary_count
    assert memory.sequences[: len(first)] == first
    assert len(memory.sequences) == len(set(memory.sequences))


async def test_its_failure_stops_no_compaction_and_is_made_good(rows: Rows) -> None:
    memory = Notes(failures=1)
    server = await served(rows, memory)
    await server.talk(1, 12)
    done = await server.compact(3_000)
    assert done.done.compacted
    (missed,) = (await state_of(server)).unflushed
    assert missed == (memory.given[0].first, memory.given[0].last)
    assert [debt.kind for debt in await server.store.debts(scope()) if debt.kind == FLUSH]
    tried = len(memory.given)
    await worked(server)
    state = await state_of(server)
    assert state.unflushed == ()
    assert covered([missed]) <= covered(state.flushed)
    later = memory.given[tried:]
    assert [given.id for given in later].count(memory.given[0].id) == 1
    texts = [message.text for message in memory.given[0].messages]
    [again] = [given for given in later if given.id == memory.given[0].id]
    assert [message.text for message in again.messages] == texts


async def test_one_that_hangs_is_waited_for_so_long(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_flush, "PATIENT_S", 0.01)
    monkeypatch.setattr(memory_flush, "HURRIED_S", 0.01)
    server = await served(rows, Notes(hangs=True))
    await server.talk(1, 12)
    async with asyncio.timeout(60):
        assert (await server.compact(3_000)).done.compacted
    assert (await state_of(server)).unflushed


async def test_a_plan_that_is_made_again_finds_it_done(rows: Rows) -> None:
    memory = Notes()
    server = await served(rows, memory)
    await server.talk(1, 12)

    async def undone() -> None:
        async with server.core.sessions.open(scope(), lock=True) as session:
            await server.core.lifecycle.reset(session, Address(scope()), None, None)

    server.summarizer.meanwhile = [undone]
    await server.compact(3_000)
    assert len(memory.sequences) == len(set(memory.sequences))


async def test_waiting_is_short_from_the_hard_share_on(rows: Rows) -> None:
    server = await served(rows, Notes())
    memory = server.core.compactor.memory
    assert memory.patience(899, 1_000) == memory_flush.PATIENT_S
    assert memory.patience(900, 1_000) == memory_flush.HURRIED_S
    ratios = {"summarizer.memory_flush.soft_ratio": 0.5, "summarizer.memory_flush.hard_ratio": 0.6}
    other = (await served(rows, Notes(), **ratios)).core.compactor.memory
    assert other.patience(600, 1_000) == memory_flush.HURRIED_S
    assert other.rules.soft == 0.5


async def test_from_the_soft_share_on_what_comes_next_is_handed_over_ahead(rows: Rows) -> None:
    memory = Notes()
    server = await served(rows, memory)
    await server.engines.assign.run(scope(), "pipeline", {}, clear=False)
    await server.talk(1, 12)
    session = server.core.cache.find(scope())
    assert session is not None
    used = session.view.view_tokens()
    flush = server.core.compactor.memory
    assert not flush.ahead(session, int(used / 0.74))
    assert flush.ahead(session, int(used / 0.76))
    await server.core.queue.add_flush(scope(), int(used / 0.8))  # type: ignore[arg-type]
    await worked(server)
    assert memory.sequences
    assert not (await server.head()).summary_count
    assert covered((await state_of(server)).flushed) == set(memory.sequences)
    # Once is enough until it is summarized.
    assert not flush.ahead(session, int(used / 0.8))
    told = list(memory.sequences)
    await server.compact(int(used / 0.8))
    assert memory.sequences[: len(told)] == told
    assert len(memory.sequences) == len(set(memory.sequences))


async def test_a_turn_has_it_handed_over_ahead(rows: Rows) -> None:
    memory = Notes()
    server = await served(rows, memory)
    await server.engines.assign.run(scope(), "pipeline", {}, clear=False)
    await server.talk(1, 12)
    session = server.core.cache.find(scope())
    assert session is not None
    used = session.view.view_tokens()
    for budget, owed in ((int(used / 0.6), []), (int(used / 0.8), [FLUSH])):
        turn = Turn((), budget=BudgetSpec(message_tokens=budget))
        assert not (await server.context.after_turn.run(TENANT, S1, turn)).queued
        assert [debt.kind for debt in await server.store.debts(scope())] == owed
    await worked(server)
    assert memory.sequences
    await server.context.after_turn.run(TENANT, S1, turn)
    assert not await server.store.debts(scope())


async def test_what_a_key_leaves_is_handed_over(rows: Rows) -> None:
    """By whatever write the key goes on with another session, and once."""
    memory = Notes()
    server = await served(rows, memory)
    first, second, third = (Ref(AGENT, name, key="thread") for name in ("one", "two", "three"))
    await server.context.ingest.run(TENANT, first, spoken("a", "b"), None)
    await worked(server)
    assert not memory.given
    await server.context.ingest.run(TENANT, second, spoken("c"), None)
    assert await server.store.debts(scope(first))
    await worked(server)
    assert [(given.scope.session, given.first, given.last) for given in memory.given] == [
        ("one", 1, 2)
    ]
    await server.context.bootstrap.run(TENANT, third, Introduction(model="gpt-5"), ())
    await worked(server)
    await server.context.ingest.run(TENANT, third, spoken("d"), None)
    await server.context.ingest.run(TENANT, first, spoken("e"), None)
    await worked(server)
    assert [given.scope.session for given in memory.given] == ["one", "two"]


async def test_a_commit_that_fails_loses_no_facts_of_an_import(rows: Rows) -> None:
    """What is owed for it is written with its messages, or nothing is."""
    memory = Notes()
    server = await served(rows, memory)

    async def no_room(debt: Debt) -> None:
        raise StoreUnavailable("the disk is full")

    server.store.add_debt = no_room  # type: ignore[method-assign]
    await server.sessions.import_.run(TENANT, S1, Introduction(), spoken("a", "b"))
    await server.sessions.import_.run(TENANT, S1, Introduction(), spoken("a", "b"))
    await worked(server)
    assert memory.sequences == [1, 2]


async def test_a_proposal_hands_over_once_however_often_it_is_made(rows: Rows) -> None:
    memory = Notes()
    server = await served(rows, memory)
    await server.talk(1, 12)
    for _ in range(2):
        assert (await server.compact(3_000, propose_only=True)).proposal is not None
    assert memory.sequences
    assert len(memory.sequences) == len(set(memory.sequences))
    assert (await state_of(server)).flushed == ()


def test_ranges_that_touch_are_one() -> None:
    state = SessionState()
    for first, last in ((5, 8), (1, 2), (3, 4), (20, 30), (9, 9)):
        state = Told(first, last, last).noted(state)
    assert state.flushed == ((1, 9), (20, 30))
    missed = Told(10, 12, 9).noted(state)
    assert missed.unflushed == ((10, 12),)
    assert Told(10, 12, 9).noted(missed) == missed
    some = Told(10, 12, 10).noted(missed)
    assert (some.flushed, some.unflushed) == (((1, 10), (20, 30)), ((11, 12),))
    done = Told(10, 12, 12).noted(missed)
    assert (done.flushed, done.unflushed) == (((1, 12), (20, 30)), ())


class SlowNotes(Notes):
    """Takes one message at a time, and hangs at every third."""

    async def flush(self, given: MemoryRange) -> None:
        """See Memory."""
        self.hangs = len(self.given) % 3 == 2
        await super().flush(given)
        self.taken += [message.sequence for message in given.messages]


async def test_of_a_range_that_takes_too_long_memory_has_more_each_time(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_flush, "PART", 1)
    monkeypatch.setattr(memory_flush, "HURRIED_S", 0.05)
    monkeypatch.setattr(memory_job, "PATIENT_S", 0.05)
    memory = SlowNotes()
    server = await served(rows, memory)
    await server.talk(1, 30)
    assert (await server.compact(2_000)).done.compacted
    state = await state_of(server)
    missed = covered(state.unflushed)
    assert len(missed) > 4
    assert covered(state.flushed) == set(memory.taken)
    assert set(memory.sequences) - set(memory.taken) <= missed
    while await work(server, ahead_ms=3_600_000):
        pass
    state = await state_of(server)
    assert state.unflushed == ()
    assert missed <= covered(state.flushed) == set(memory.taken)
    assert len(memory.taken) == len(set(memory.taken))


async def test_a_range_that_is_gone_by_now_is_owed_no_more(rows: Rows) -> None:
    """Whatever memory missed and the user then took back: there is nothing to hand over."""
    memory = Notes(failures=1)
    server = await served(rows, memory)
    await server.talk(1, 12)
    await server.compact(3_000)
    (missed,) = (await state_of(server)).unflushed
    told = await server.core.compactor.memory.tell(replace(memory.given[0], messages=()))
    assert (told.first, told.last, told.kept, told.ok) == (*missed, missed[1], True)
    assert told.noted(await state_of(server)).unflushed == ()
