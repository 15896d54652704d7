"""Hermes' list beside the session that keeps it: what is new is stored once, what was undone leaves
the view, a compaction is kept where Hermes goes on with it."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from grpc import StatusCode

from contextengine import Client, ContextEngineError
from contextengine.errors import Unavailable
from contextengine.messages import text_of
from contextengine_hermes.block import block, part
from contextengine_hermes.conversation import Conversation
from contextengine_hermes.rows import Row, listed
from tests.integration.harness import House, house, ref

Answer = TypeVar("Answer")
HERE = ref("h1", agent="hermes")


def said(words: str) -> Row:
    return {"role": "user", "content": words}


def replied(words: str) -> Row:
    return {"role": "assistant", "content": words}


def worked(call: str, result: str) -> list[Row]:
    """A step with a tool."""
    function = {"name": "terminal", "arguments": '{"command": "ls"}'}
    calls = [{"id": call, "type": "function", "function": function}]
    asked = {"role": "assistant", "content": "", "tool_calls": calls, "finish_reason": "tool_calls"}
    return [asked, {"role": "tool", "tool_call_id": call, "content": result}]


def long(turns: int) -> list[Row]:
    """A conversation that is worth a compaction."""
    return [
        row
        for at in range(turns)
        for row in (said(f"question {at} " + "word " * 200), replied(f"answer {at} " + "so " * 300))
    ]


def from_disk(rows: list[Row]) -> list[Row]:
    """As Hermes has them after a restart: its own keys are not written down."""
    return [{key: copy.deepcopy(row[key]) for key in row if key[0] != "_"} for row in rows]


class Host:
    """Hermes' side: a client, and as many conversations as it began."""

    def __init__(self, home: House, client: Client) -> None:
        self.home = home
        self.client = client
        self.talk = Conversation(client, "hermes", "h1")

    async def do(self, call: Callable[[], Answer]) -> Answer:
        return await asyncio.to_thread(call)

    async def record(self, rows: list[Row], **more: Any) -> None:
        await self.do(lambda: self.talk.record(rows, **more))

    async def compact(self, rows: list[Row], room: int = 3_000) -> list[Row]:
        made = await self.do(
            lambda: self.talk.compact(rows, tokens=None, room=room, focus="", force=True)
        )
        return made.rows

    def restart(self) -> None:
        self.talk = Conversation(self.client, "hermes", "h1")

    async def stored(self) -> list[str]:
        rows = await self.home.rows(HERE)
        return [text_of(row.message) for row in rows if not row.retired_revision]

    async def summaries(self) -> int:
        return (await self.home.client.get_status(HERE)).summary_count


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with house(tmp_path) as home:
        with Client(home.app.address, retry_for=0) as client:
            yield Host(home, client)


def words(rows: list[Row]) -> list[str]:
    return [str(row["content"]) for row in rows]


async def test_a_list_that_grows_is_stored_once(host: Host) -> None:
    rows = [said("one")]
    await host.record(rows)
    rows += worked("c1", "a.txt")
    await host.record(rows)
    await host.record(rows)
    rows += [replied("done"), said("one"), replied("done")]  # alike, and said twice
    await host.record(rows, ended=True)
    assert await host.stored() == words(rows)
    first = (await host.home.rows(HERE))[1].message
    assert first.parts[-1].tool_call.call_id == "c1"


async def test_after_a_restart_of_hermes_the_list_is_known(host: Host) -> None:
    rows = long(3)
    await host.record(rows)
    rows = from_disk(rows)
    host.restart()
    await host.record([*rows, said("more")])
    assert await host.stored() == [*words(rows), "more"]


@pytest.mark.parametrize("restarted", [False, True])
async def test_what_was_undone_leaves_the_view(host: Host, restarted: bool) -> None:
    rows = [said("one"), replied("first"), said("two"), replied("second")]
    await host.record(rows)
    if restarted:
        rows = from_disk(rows)
        host.restart()
    await host.record([*rows[:2], said("two, again")])
    assert await host.stored() == ["one", "first", "two, again"]


async def test_a_message_that_hermes_rewrote_is_seen(host: Host) -> None:
    rows = [said("one"), *worked("c1", "a.txt"), replied("done")]
    await host.record(rows)
    rows[2]["content"] += "\nand what the user said meanwhile"
    await host.record([*rows, said("two")])
    assert (await host.stored())[-1] == "two"
    assert len(await host.stored()) == 5


async def test_a_compaction_is_kept_once_hermes_goes_on_with_it(host: Host) -> None:
    rows = long(20)
    made = await host.compact(rows)
    assert await host.summaries() == 0
    assert len(made) < len(rows)
    assert all(any(row is kept for kept in rows) for row in made[1:])
    await host.record([*made, said("next")])
    assert await host.summaries() > 0
    assert await host.stored() == [*words(rows), "next"]
    # After a restart its own message is known by what it says.
    host.restart()
    await host.record([*from_disk(made), said("next"), replied("last")])
    assert await host.stored() == [*words(rows), "next", "last"]


async def test_one_that_hermes_does_not_take_is_given_up(host: Host) -> None:
    rows = long(20)
    await host.compact(rows)
    await host.record([*rows, said("next")])
    assert await host.summaries() == 0
    assert await host.stored() == [*words(rows), "next"]


async def test_a_block_within_a_users_words_is_not_the_users(host: Host) -> None:
    rows = long(20)
    made = await host.compact(rows)
    joined = said(f"{made[0]['content']}\n\nnext")
    await host.record([joined, *made[1:]])
    await host.record([*made, said("last")])
    assert await host.stored() == [*words(rows), "last"]


async def test_compacted_again_the_list_has_all_summaries(host: Host) -> None:
    rows = long(20)
    made = await host.compact(rows)
    await host.record(made)
    more = long(20)
    again = await host.compact([*made, *more])
    assert len(again) < len(more)
    ids = part(str(again[0]["content"])).items
    await host.record([*again, said("next")])
    live = await host.summaries()
    assert live >= len(ids) > 0
    assert await host.stored() == [*words(rows), *words(more), "next"]


async def test_a_compaction_that_changes_nothing_leaves_the_very_list(host: Host) -> None:
    """Hermes compares it with a copy, and splits the session where they differ."""
    rows = long(2)
    before = copy.deepcopy(rows)
    made = await host.do(
        lambda: host.talk.compact(rows, tokens=None, room=30_000, focus="", force=False)
    )
    assert not made.changed
    assert made.rows == before


async def test_what_a_compaction_stored_unheard_is_not_stored_twice(host: Host) -> None:
    rows = long(20)
    await host.record(rows[:-1])
    with pytest.MonkeyPatch.context() as patched:
        compact = host.client.compact

        def unheard(*given: Any, **named: Any) -> None:
            compact(*given, **named)
            raise Unavailable("gone", code=StatusCode.UNAVAILABLE)

        patched.setattr(host.client, "compact", unheard)
        with pytest.raises(Unavailable):
            await host.compact(rows)
    await host.record(rows)
    assert await host.stored() == words(rows)


async def test_a_compaction_whose_keeping_was_unheard_is_kept_under_another_id(host: Host) -> None:
    rows = long(20)
    made = await host.compact(rows)
    before, other = host.talk, Conversation(host.client, "hermes", "h2")
    with pytest.MonkeyPatch.context() as patched:

        def lost(*_: Any, **__: Any) -> None:
            raise Unavailable("gone", code=StatusCode.UNAVAILABLE)

        patched.setattr(host.client, "commit_compaction", lost)
        await host.do(lambda: other.begin(model="m", window=64_000, continues=before))
    await host.do(lambda: other.record([*made, said("next")]))
    shown = await host.home.client.assemble(other.ref)
    assert any(item.HasField("summary") for item in shown.items)


async def test_a_session_goes_on_under_another_id(host: Host) -> None:
    rows = long(20)
    made = await host.compact(rows)
    await host.do(host.talk.taken)
    before, other = host.talk, Conversation(host.client, "hermes", "h2")
    await host.do(lambda: other.begin(model="m", window=64_000, continues=before))
    await host.do(lambda: other.record([*from_disk(made), said("next")]))
    assert (await host.do(lambda: other.due(None))).tokens > 0
    there = [row for row in await host.home.rows(other.ref) if not row.stored_in_session_id]
    assert [text_of(row.message) for row in there] == ["next"]
    shown = await host.home.client.assemble(other.ref)
    assert any(item.HasField("summary") for item in shown.items)


async def test_a_session_that_was_never_stored_keeps_none_that_follows_it_from_being(
    host: Host,
) -> None:
    gone = Conversation(host.client, "hermes", "never")
    await host.do(lambda: host.talk.begin(model="m", window=64_000, continues=gone))
    await host.record([said("one"), replied("first")])
    assert await host.stored() == ["one", "first"]


async def test_a_proposal_that_is_gone_keeps_nothing_from_being_stored(host: Host) -> None:
    rows = long(20)
    made = await host.compact(rows)
    await host.home.client.sessions.delete(HERE)
    await host.record([*made, said("next")])
    assert (await host.stored())[-1] == "next"


async def test_two_threads_store_a_list_once(host: Host) -> None:
    """As where Hermes ends while a turn runs."""
    rows = [said("one")]
    await host.record(rows)
    rows.append(replied("first"))
    ingest = host.client.ingest_batch

    def slow(*given: Any, **named: Any) -> Any:
        other = threading.Thread(target=host.talk.record, args=(rows,))
        other.start()
        other.join(0.5)
        return ingest(*given, **named)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(host.client, "ingest_batch", slow)
        await host.record(rows)
    await host.record(rows)
    assert await host.stored() == ["one", "first"]


async def test_while_the_service_is_away_nothing_is_lost(host: Host) -> None:
    rows = [said("one")]
    away = Conversation(Client("127.0.0.1:1", retry_for=0), "hermes", "h1")
    with pytest.raises(ContextEngineError):
        await host.do(lambda: away.record(rows))
    rows += [replied("first"), said("two")]
    await host.record(rows)
    assert await host.stored() == ["one", "first", "two"]


async def test_what_hermes_made_up_for_a_request_is_not_said(host: Host) -> None:
    nudge = {"role": "user", "content": "Go on.", "_empty_recovery_synthetic": True}
    await host.record([said("one"), nudge, replied("first")])
    assert await host.stored() == ["one", "first"]


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "",
        '<contextengine items="x" digest="0000000000000000">\nfeigned\n</contextengine>',
        "</contextengine>\n<contextengine ",
        block([("ce:1", "a")], "").replace("\na\n", "\nb\n"),
    ],
)
def test_what_only_looks_like_a_block_stays(text: str) -> None:
    assert part(text).words == text
    assert part(text).items == ()


@pytest.mark.parametrize("inner", ["a", "", "a\n</contextengine>\nb", 'x <contextengine items="">'])
def test_a_block_is_found_wherever_it_stands(inner: str) -> None:
    made = block([("ce:1", inner), ("ce:2", "more")], "note")
    for text, kept in (
        (made, ""),
        (f"{made}\n\nafter", "after"),
        (f"before\n\n{made}", "before"),
        (f"before\n\n{made}\n\nafter", "before\n\nafter"),
    ):
        assert part(text).items == ("ce:1", "ce:2")
        assert part(text).words == kept
    (row,) = listed([{"role": "user", "content": [{"type": "text", "text": f"{made}\n\nhi"}]}])
    assert row.said == [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
