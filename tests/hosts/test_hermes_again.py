"""What Hermes' user says again, in the same words or with more behind them, beside the session that
keeps it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from contextengine import Client
from contextengine_hermes.conversation import Conversation
from contextengine_hermes.rows import Row, listed
from tests.hosts.test_hermes import HERE, Host, long, replied, said, words, worked
from tests.integration.harness import house


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with house(tmp_path) as home:
        with Client(home.app.address, retry_for=0) as client:
            yield Host(home, client)


def driven(turns: int) -> list[Row]:
    """A conversation whose user says the same each time."""
    return [
        row
        for at in range(turns)
        for row in (said("continue"), replied(f"answer {at} " + "so " * 300))
    ]


@pytest.mark.parametrize("kept", [2, 4], ids=["undo", "here"])
async def test_a_user_who_repeats_words_can_compact_the_beginning(host: Host, kept: int) -> None:
    """As `/compress here`, and `/undo` before `/compress`."""
    rows = driven(20)
    await host.record(rows)
    made = await host.compact(rows[:-kept])
    assert len(made) < len(rows) // 2
    await host.record([*made, *rows[-kept:], said("next")])
    assert await host.summaries() > 0
    assert await host.stored() == [*words(rows), "next"]


async def test_repeated_words_that_are_not_the_sessions_own_are_not_shown_twice(
    host: Host,
) -> None:
    """As where a turn goes on under another id, and then its beginning alone is compacted: the
    words that began it are not taken back."""
    rows = [*driven(20), said("continue")]
    await host.record(rows)
    host.talk, before = Conversation(host.client, "hermes", "h2"), host.talk
    await host.do(lambda: host.talk.begin(model="m", window=64_000, continues=before))
    await host.record([*rows, replied("well")])
    assert await host.compact(rows[:-1]) == rows[:-1]


async def test_what_hermes_joined_stays_apart_behind_a_compaction_that_changed_nothing(
    host: Host,
) -> None:
    rows = [said("zero"), replied("ok"), said("one")]
    await host.record(rows)
    rows[2] = said("one\n\ntwo")
    await host.record(rows)
    assert await host.compact(rows) == rows
    await host.record([*rows, replied("done"), said("three")])
    await host.record([*rows, replied("done"), said("four")])
    stored = await host.home.rows(HERE)
    there = [row.sequence for row in stored if not row.retired_revision]
    assert await host.stored() == ["zero", "ok", "one", "two", "done", "four"]
    assert there[:5] == list(range(there[0], there[0] + 5))


async def test_words_that_are_typed_again_with_more_behind_them_are_one_message(
    host: Host,
) -> None:
    """As `/undo`, and the same paragraph with another below it."""
    rows = [said("zero"), replied("ok"), said("fix the bug"), replied("done")]
    await host.record(rows)
    rows[2:] = [said("fix the bug\n\nin parser.py only")]
    await host.record(rows)
    assert await host.stored() == words(rows)


async def test_the_newest_of_results_with_calls_alike_is_shown(host: Host) -> None:
    """Small models number their calls from nothing in each reply."""
    rows = [*long(20), said("go"), *worked("call_0", "a " * 900), *worked("call_0", "b " * 900)]
    rows += [replied("well")]
    await host.record(rows)
    for room in range(200, 1_600, 100):
        made = await host.compact(rows, room=room)
        shown = [row["content"] for row in made if row["role"] == "tool"]
        assert made[-1] == rows[-1]
        assert shown in ([], ["b " * 900], ["a " * 900, "b " * 900]), room


def test_a_message_with_a_key_without_a_name_is_read() -> None:
    assert listed([{**said("one"), "": 1}])
