"""The index is filled behind the acknowledgement: who names a revision waits for it, who names none
gets what is there."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.messages import assistant, tool_call, tool_result
from contextengine_server.context.scope import Scope
from contextengine_server.recall import index, texts
from contextengine_server.recall.score.questions import Questions
from contextengine_server.recall.snippets import TurnBeginnings
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.rows import MessageRow
from contextengine_server.store.search import Advance, Progress, SearchIndex
from tests import postgres
from tests.integration.harness import House, ref

from .asking import S, find, sequences, write


async def test_a_search_waits_for_the_revision_it_names(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "_DELAY_S", 60.0)
    revision = await write(house, S, *[f"word {n}" for n in range(500)])
    await write(house, ref("another"), *["word"] * 100)
    found = await house.client.recall.search(
        S, query="word 499", at_least_revision=revision, limit=1
    )
    assert (sequences(found), found.revision) == ([500], revision)
    with pytest.raises(ContextEngineError) as caught:
        await house.client.recall.search(
            S, query="word", at_least_revision=revision + 1, timeout=0.3
        )
    assert caught.value.code.name == "DEADLINE_EXCEEDED"
    assert sequences(await house.client.recall.search(S, query="word 499", limit=1)) == [500]


async def test_a_search_waits_for_what_was_inherited_too(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "_DELAY_S", 60.0)
    child = ref("child")
    await write(house, S, *[f"word {n} " + "and more " * 20 for n in range(1_000)])
    await house.client.bootstrap(child, continues=S)
    await write(house, child, "a word of its own")
    assert sequences(await find(house, "word 977", child, limit=1)) == [978]
    answer = await house.client.call_tool(
        child, name="ctx_search", arguments_json=b'{"query": "word 966"}'
    )
    assert b'"sequence":967' in answer.result_json


async def test_without_a_revision_it_answers_what_is_there(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wait_for_ever(_: index.Indexer) -> None:
        await asyncio.Event().wait()

    revision = await write(house, S, "word one")
    await find(house, "word")
    # A long delay would not do: it is waited before a write only by an indexer that slept.
    monkeypatch.setattr(index.Indexer, "_write", wait_for_ever)
    await write(house, S, "word two")
    found = await house.client.recall.search(S, query="word")
    assert (sequences(found), found.revision) == ([1], revision)


async def test_the_index_goes_on_after_a_restart(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "_DELAY_S", 60.0)
    await write(house, S, *[f"word {n}" for n in range(100)])
    await house.stop()
    monkeypatch.undo()
    await house.start()
    scope = Scope("default", "agent", "s1")
    async with asyncio.timeout(30):
        while not (await house.app.store.index.progress(scope)).done:  # type: ignore[union-attr]
            await asyncio.sleep(0.01)
    assert sequences(await house.client.recall.search(S, query="word 42", limit=1)) == [43]
    assert await house.app.store.index.behind(9) == []


async def test_that_all_is_indexed_is_asked_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = house.app.store
    asked: list[Scope] = []
    progress = type(store.index).progress

    async def counted(self: SearchIndex, scope: Scope) -> Progress | None:
        asked.append(scope)
        return await progress(self, scope)

    async def searched(query: str) -> tuple[list[int], int]:
        asked.clear()
        found = await house.client.recall.search(S, query=query)
        return sequences(found), found.revision

    monkeypatch.setattr(type(store.index), "progress", counted)
    revision = await write(house, S, "word one")
    await find(house, "word")
    if postgres.INSISTS:  # another server may begin the index anew
        assert (await searched("word"), len(asked)) == (([1], revision), 1)
        return
    assert (await searched("word"), asked) == (([1], revision), [])
    # What comes after is asked for until it is indexed, which is remembered as well.
    revision = await write(house, S, "word two")
    await searched("word")
    assert asked
    await find(house, "word")
    assert (await searched("word"), asked) == (([2, 1], revision), [])
    # So is that it is indexed when it was before this life of the server.
    await house.restart()
    await searched("word")
    assert (await searched("word"), asked) == (([2, 1], revision), [])


async def test_what_is_begun_anew_is_not_taken_for_whole(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wait_for_ever(_: index.Indexer) -> None:
        await asyncio.Event().wait()

    revision = await write(house, S, "word one")
    found = await find(house, "word")
    assert (sequences(found), found.revision) == ([1], revision)
    monkeypatch.setattr(index.Indexer, "_write", wait_for_ever)
    await house.app.store.index.renew(Scope("default", "agent", "s1"))
    found = await house.client.recall.search(S, query="word")
    assert (sequences(found), found.revision) == ([], 0)


async def test_a_renewal_that_nobody_waits_for_is_known_as_well(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wait_for_ever(_: index.Indexer) -> None:
        await asyncio.Event().wait()

    scope, store = Scope("default", "agent", "s1"), house.app.store
    await write(house, S, "word one")
    await find(house, "word")
    monkeypatch.setattr(index.Indexer, "_write", wait_for_ever)
    renewal = asyncio.create_task(store.index.renew(scope))
    await asyncio.sleep(0)
    renewal.cancel()
    async with asyncio.timeout(30):
        while (await store.index.progress(scope)).cursor.sequence:  # type: ignore[union-attr]
            await asyncio.sleep(0.01)
    found = await house.client.recall.search(S, query="word")
    assert (sequences(found), found.revision) == ([], 0)


async def test_what_cannot_be_indexed_keeps_nobody_else_waiting(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is wrong with one message: its session alone is behind."""
    passages = texts.indexed_passages

    def fail(row: MessageRow) -> list[str]:
        if b"bad" in row.body:
            raise RuntimeError("no words for it")
        return passages(row)

    monkeypatch.setattr(index, "indexed_passages", fail)
    monkeypatch.setattr(index, "_DELAY_S", 0.05)  # all three are one write
    sessions = [ref("first"), ref("middle"), ref("last")]
    said = ["a good word", "a bad word", "a good word"]
    await asyncio.gather(*(write(house, *one) for one in zip(sessions, said, strict=True)))
    async with asyncio.timeout(30):
        for session in (sessions[0], sessions[2]):
            while not sequences(await house.client.recall.search(session, query="word")):
                await asyncio.sleep(0.01)
    behind = await house.client.recall.search(sessions[1], query="word")
    assert (sequences(behind), behind.revision) == ([], 0)
    with pytest.raises(ContextEngineError):
        await find(house, "word", sessions[1])
    monkeypatch.undo()
    assert sequences(await find(house, "word", sessions[1])) == [1]


async def test_a_store_that_goes_away_amid_a_write_takes_nobody_off_the_list(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write of several sessions fails for one of them, and then for the store's own sake."""
    kind, tried = type(house.app.store.index), list[int]()
    advance, write_piece, all_written = kind.advance, index.Indexer._write, asyncio.Event()

    async def of_all_three(self: index.Indexer) -> None:
        await all_written.wait()
        await write_piece(self)

    async def failing(self: SearchIndex, steps: Sequence[Advance]) -> None:
        tried.append(len(steps))
        if len(steps) > 1:
            raise ValueError("one of them")
        if tried == [3, 1]:
            raise StoreUnavailable("away for a moment")
        await advance(self, steps)

    monkeypatch.setattr(kind, "advance", failing)
    monkeypatch.setattr(index.Indexer, "_write", of_all_three)
    monkeypatch.setattr(index, "_RETRY_S", 0.01)
    sessions = [ref("first"), ref("middle"), ref("last")]
    await asyncio.gather(*(write(house, one, "a word") for one in sessions))
    all_written.set()
    async with asyncio.timeout(30):
        for session in sessions:
            while not sequences(await house.client.recall.search(session, query="word")):
                await asyncio.sleep(0.01)
    assert tried[:2] == [3, 1]


@pytest.mark.parametrize("depth", [200, 300, 960, 1_020])
async def test_what_is_nested_as_deep_as_can_be_read_is_found(house: House, depth: int) -> None:
    nested = b'{"path": "needle", "a": ' + b"[" * depth + b"1" + b"]" * depth + b"}"
    opaque = t.Message(role=t.ROLE_USER)
    opaque.parts.add().opaque.json = nested
    call = assistant(tool_calls=[tool_call("c1", "read", {})])
    call.parts[0].tool_call.arguments_json = nested
    await write(house, S, opaque, call, tool_result("c1", "done"))
    assert sorted(sequences(await find(house, "needle"))) == [1, 2]


async def test_a_deletion_takes_along_what_is_remembered_of_texts(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleared: list[type] = []
    for kind in (TurnBeginnings, Questions):
        monkeypatch.setattr(kind, "clear", lambda self: cleared.append(type(self)))
    await write(house, S, "word one")
    await find(house, "word")
    assert not cleared
    await house.client.sessions.delete(S)
    async with asyncio.timeout(30):
        while len(cleared) < 2:
            await asyncio.sleep(0.01)
    assert cleared == [TurnBeginnings, Questions]


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM search_cursors WHERE session = 's1'",
        "UPDATE search_cursors SET sequence = 0, revision = 0 WHERE session = 's1'",
        "UPDATE search_cursors SET sequence = 1 WHERE session = 's1'",
    ],
)
async def test_a_damaged_cursor_is_mended_and_keeps_nobody_from_being_found(
    house: House, damage: str
) -> None:
    path = house.database
    await write(house, S, "word one", "word two")
    await find(house, "word")
    await house.stop()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(damage)
    await house.start()
    another = ref("another")
    await write(house, another, "a word")
    await write(house, S, "word three")
    assert sequences(await find(house, "word", another)) == [1]
    assert sorted(sequences(await find(house, "word"))) == [1, 2, 3]
