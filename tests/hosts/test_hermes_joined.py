"""What Hermes makes of its messages, beside the session that keeps them: it joins them, writes into
them and keeps them in other words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from contextengine import Client
from contextengine.messages import text_of
from contextengine_hermes.block import part
from contextengine_hermes.conversation import Conversation
from contextengine_hermes.rows import Row
from tests.hosts.test_hermes import HERE, Host, from_disk, long, replied, said, words, worked
from tests.integration.harness import house

TASKS = """[Your active task list was preserved across context compression]
- [>] 1. build the house,
and the door (in_progress)
- [ ] 2. paint it (pending)"""


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with house(tmp_path) as home:
        with Client(home.app.address, retry_for=0) as client:
            yield Host(home, client)


def work(at: int) -> list[Row]:
    """A step that says much."""
    return worked(f"c{at}", f"result {at} " + "so " * 300)


async def test_a_users_words_behind_a_stored_result_are_stored(host: Host) -> None:
    """As `/steer` while Hermes compacts: they are written into the newest result."""
    rows = [said("one"), *worked("c1", "a.txt"), *worked("c1", "b.txt")]
    await host.record(rows)
    rows[4]["content"] += "\n\n[OUT-OF-BAND USER MESSAGE]\nstop\n[/OUT-OF-BAND USER MESSAGE]"
    await host.record(rows)
    await host.record([*rows, replied("stopped")])
    shown = [row.message for row in await host.home.rows(HERE) if not row.retired_revision]
    assert [text_of(one) for one in shown] == [
        "one",
        "",
        "a.txt",
        "",
        rows[4]["content"],
        "stopped",
    ]


@pytest.mark.parametrize("function", [{"name": "", "arguments": "{}"}, None])
async def test_a_call_that_is_none_keeps_nothing_from_being_stored(
    host: Host, function: Row | None
) -> None:
    """Weak models call tools without a name; Hermes tells them so, and goes on."""
    odd = {"id": "c1", "type": "function", "function": function}
    rows = [said("one"), {"role": "assistant", "content": "", "tool_calls": [odd]}]
    rows += [{"role": "tool", "tool_call_id": "c1", "content": "no"}, replied("well")]
    await host.record(rows)
    await host.record([*from_disk(rows), said("two")])
    stored = await host.stored()
    assert len(stored) == 5
    assert [stored[0], *stored[2:]] == ["one", "no", "well", "two"]
    assert function is None or await host.compact(rows) == rows


async def test_words_that_hermes_joined_to_its_task_list_are_stored_without_it(host: Host) -> None:
    rows = [*long(1), {"role": "user", "content": TASKS, "_todo_snapshot_synthetic": True}]
    await host.record(rows)
    rows[-1]["content"] += "\n\nnow the door"
    await host.record(rows)
    assert await host.stored() == [*words(rows[:2]), "now the door"]
    host.restart()
    await host.record([*from_disk(rows), replied("open")])
    assert await host.stored() == [*words(rows[:2]), "now the door", "open"]


async def test_a_request_between_two_summaries_stays_between_them(host: Host) -> None:
    """As after a compaction amid a long turn: Hermes joins the three."""
    rows = [*long(12), said("the request"), *(row for at in range(24) for row in work(at))]
    made = await host.compact(rows)
    parts = [row for row in made if row["role"] == "user"]
    assert [part(row["content"]).words for row in parts] == ["", "the request", ""]
    assert made[:3] == parts
    joined = {**made[0], "content": "\n\n".join(words(made[:3]))}
    await host.record([joined, *made[3:], said("next")])
    assert await host.stored() == [*words(rows), "next"]
    again = await host.compact([joined, *made[3:], said("next"), *long(20), said("last")])
    assert "the request" in str(again) or await host.summaries() > 2


@pytest.mark.parametrize("turned", [False, True])
async def test_a_compaction_of_the_beginning_shows_nothing_twice(host: Host, turned: bool) -> None:
    """As `/compress here`: Hermes keeps the newest turns itself, and puts them behind the list."""
    rows = long(20)
    await host.record(rows)
    if turned:
        before, host.talk = host.talk, Conversation(host.client, "hermes", "h2")
        await host.do(lambda: host.talk.begin(model="m", window=64_000, continues=before))
    made = await host.compact(rows[:-4])
    assert not any(row in rows[-4:] for row in made)
    await host.record([*made, *rows[-4:], said("next")])
    there = [row for row in await host.home.rows(host.talk.ref) if not row.retired_revision]
    assert [text_of(row.message) for row in there] == [*words(rows), "next"]


async def test_a_message_that_hermes_wrote_down_in_other_words_is_the_same(host: Host) -> None:
    rows = [
        said("one"),
        replied("first"),
        said("[a note of the gateway's]\n\ntwo"),
        replied("second"),
    ]
    await host.record(rows)
    host.restart()
    kept = from_disk(rows)
    kept[2] |= {"content": "two", "api_content": rows[2]["content"]}
    await host.record([*kept, said("three")])
    assert await host.stored() == [*words(rows), "three"]
    assert len(await host.home.rows(HERE)) == 5


async def test_messages_that_hermes_joined_are_two(host: Host) -> None:
    """As after a request that was not answered: the next one is joined to it, and with little room
    the list shows nothing else."""
    rows = [*long(3), said("one")]
    await host.record(rows)
    made = await host.compact([*rows, said("two\n\nand more")], room=80)
    assert words(made)[-2:] == ["one", "two\n\nand more"]
    joined = said("\n\n".join(words(made)))
    await host.record([joined, replied("done")])
    assert await host.stored() == [*words(rows), "two\n\nand more", "done"]


async def test_a_picture_that_hermes_wrote_down_as_words_is_not_lost(host: Host) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    seen: Row = {"role": "user", "content": [{"type": "text", "text": "look"}, picture]}
    await host.record([said("one"), replied("first"), seen, replied("seen")])
    host.restart()
    rows = [said("one"), replied("first"), said("look\n[screenshot]"), replied("seen")]
    await host.record([*rows, said("next")])
    stored = await host.home.rows(HERE)
    assert [text_of(row.message) for row in stored] == ["one", "first", "look", "seen", "next"]
    assert stored[2].message.parts[1].HasField("image")


async def test_what_is_left_out_stays_where_all_that_was_shown_is_undone(host: Host) -> None:
    rows = [*long(3), said("one")]
    made = await host.compact(rows, room=10)
    assert words(made)[1:] == ["one"]
    await host.record([*made, replied("first")])
    await host.record([made[0], said("two")])
    await host.record([made[0], said("two"), replied("second")])
    stored = await host.stored()
    assert stored[: len(rows) - 1] == words(rows[:-1])
    assert stored[-2:] == ["two", "second"]
