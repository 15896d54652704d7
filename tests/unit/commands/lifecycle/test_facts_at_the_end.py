"""What a session said is remembered when it ends or is reset: once, or owed until it can be."""

from __future__ import annotations

from collections import Counter

import pytest

from contextengine_server.memory.range import MemoryRange
from contextengine_server.session.address import Address
from contextengine_server.session.receipt import Request
from contextengine_server.session.state import FLUSH, SessionState
from tests.unit.commands.compaction.test_remake_background import work
from tests.unit.commands.house import AGENT, S1, TENANT, Rows, Server, scope


class Reluctant:
    """A memory that takes nothing for so many times."""

    def __init__(self, failures: int) -> None:
        self.failures, self.texts = failures, Counter[str]()

    async def flush(self, given: MemoryRange) -> None:
        """See Memory."""
        if self.failures:
            self.failures -= 1
            raise OSError("no room")
        self.texts.update(message.text for message in given.messages)


async def state_of(server: Server) -> SessionState:
    return SessionState.decode((await server.head()).state)


async def end(server: Server) -> None:
    await server.context.end_session.run(TENANT, S1, None, None)


async def reset(server: Server) -> None:
    await server.context.reset_session.run(TENANT, S1, None, None)


@pytest.mark.parametrize("ends", [end, reset])
async def test_one_call_is_one_revision_and_notes_what_memory_has(rows: Rows, ends: object) -> None:
    server = await Server(rows, memory=Reluctant(0)).open()
    before = await server.ingest("one", "two")
    await ends(server)  # type: ignore[operator]
    assert (await server.head()).revision == before + 1
    state = await state_of(server)
    assert (state.flushed, state.owed) == (((1, 2),), ())
    assert await server.store.debts(scope()) == []


@pytest.mark.parametrize("ends", [end, reset])
async def test_what_memory_does_not_take_is_owed_with_the_end(rows: Rows, ends: object) -> None:
    memory = Reluctant(1)
    server = await Server(rows, memory=memory).open()
    await server.ingest("one", "two")
    await ends(server)  # type: ignore[operator]
    head = await server.head()
    assert (await state_of(server)).owed == ((1, 2, head.revision),)
    assert [debt.kind for debt in await server.store.debts(scope())] == [FLUSH]
    await server.ingest("three")
    ended = (await server.head()).ended
    while await work(server, ahead_ms=60_000):
        pass
    state = await state_of(server)
    assert (state.flushed, state.owed) == (((1, 2),), ())
    assert memory.texts == Counter(["one", "two"]), "as it was at the end"
    assert (await server.head()).ended == ended


async def test_what_was_taken_back_meanwhile_is_not_remembered(rows: Rows) -> None:
    server = await Server(rows, remembers=True).open()
    await server.ingest("I prefer tea.", "I prefer dark mode.", ids=False)
    async with server.core.sessions.open(scope(), lock=True) as session:
        await server.core.lifecycle.end(session, Address(scope()), None, None)
    async with server.core.sessions.open(scope(), lock=True) as session:
        request = Request("undo", b"")
        await server.core.lifecycle.rewind(session, Address(scope()), request, 1)
    while await work(server, ahead_ms=60_000):
        pass
    facts = await server.store.memory.facts(TENANT, AGENT)
    assert [fact.value for fact in facts] == ["I prefer tea"]


async def test_an_end_after_an_end_hands_over_what_is_new(rows: Rows) -> None:
    memory = Reluctant(0)
    server = await Server(rows, memory=memory).open()
    await server.ingest("one")
    await end(server)
    await server.ingest("two")
    await end(server)
    await end(server)
    assert memory.texts == Counter(["one", "two"])


async def test_of_a_long_session_all_is_handed_over(rows: Rows) -> None:
    memory = Reluctant(0)
    server = await Server(rows, memory=memory).open()
    texts = [f"{at} of many" for at in range(1_101)]
    await server.ingest(*texts)
    await reset(server)
    assert memory.texts == Counter(texts)
    assert (await state_of(server)).flushed == ((1, 1_101),)


@pytest.mark.parametrize(
    ("flushed", "owed", "left"),
    [
        ((), (), [(1, 9)]),
        (((1, 9),), (), []),
        (((2, 3), (5, 5)), (), [(1, 1), (4, 4), (6, 9)]),
        (((5, 12),), ((1, 2, 7),), [(3, 4)]),
        (((1, 4),), ((5, 9, 7),), []),
    ],
)
def test_what_is_lacking(
    flushed: tuple[tuple[int, int], ...],
    owed: tuple[tuple[int, int, int], ...],
    left: list[tuple[int, int]],
) -> None:
    state = SessionState(flushed=flushed, owed=owed)
    assert list(state.lacking(1, 9)) == left
