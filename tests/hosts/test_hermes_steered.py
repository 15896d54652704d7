"""What a user says to Hermes amid a turn (`/steer`), which Hermes writes behind a result that may
be stored: it is stored too, whatever was heard of what the session holds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode

from contextengine import Client, ContextEngineError
from contextengine.errors import Unavailable
from tests.hosts.hermes_life import STEER
from tests.hosts.test_hermes import Host, from_disk, long, replied, said, words, worked
from tests.integration.harness import house


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with house(tmp_path) as home:
        with Client(home.app.address, retry_for=0) as client:
            yield Host(home, client)


async def test_behind_a_result_of_which_nothing_was_heard(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [said("one"), *worked("c1", "a.txt")]
    await host.record(rows)
    ingest = host.client.ingest_batch

    def unheard(*given: Any, **named: Any) -> None:
        ingest(*given, **named)
        raise Unavailable("away, having heard", code=StatusCode.UNAVAILABLE)

    rows += worked("c2", "b.txt")
    with monkeypatch.context() as away:
        away.setattr(host.client, "ingest_batch", unheard)
        with pytest.raises(ContextEngineError):
            await host.record(rows)
    rows[-1]["content"] += STEER.format("stop")
    await host.record(rows)
    await host.record([*rows, replied("stopped")])
    assert await host.stored() == [*words(rows), "stopped"]


async def test_behind_a_result_before_hermes_begins_anew(host: Host) -> None:
    rows = [said("one"), *worked("c1", "a.txt"), *worked("c2", "b.txt")]
    await host.record(rows)
    rows[-1]["content"] += STEER.format("stop")
    host.restart()
    await host.record([*from_disk(rows), said("and?")])
    assert await host.stored() == [*words(rows), "and?"]


async def test_behind_one_result_while_hermes_shortens_another(host: Host) -> None:
    rows = [said("one"), *worked("c1", "a.txt"), *worked("c2", "b.txt")]
    await host.record(rows)
    before = words(rows)
    rows[2]["content"] = "[Old tool output cleared]"
    rows[-1]["content"] += STEER.format("stop")
    await host.record(rows)
    await host.record([*rows, replied("stopped")])
    assert await host.stored() == [*before[:-1], words(rows)[-1], "stopped"]


async def test_what_a_summary_covers_stays_where_hermes_begins_anew(host: Host) -> None:
    rows = [*long(20), *worked("c1", "a.txt")]
    rows[-1]["content"] += STEER.format("stop")
    made = await host.compact([*rows, replied("well")])
    await host.record([*made, said("next")])
    before = await host.summaries()
    assert before > 0
    assert made[-2] == rows[-1]
    host.restart()
    await host.record([*from_disk(made), said("next"), replied("last")])
    assert await host.summaries() == before
    assert await host.stored() == [*words(rows), "well", "next", "last"]


async def test_a_result_that_is_shown_in_short_is_not_what_is_stored(host: Host) -> None:
    rows = [said("one"), *worked("c1", "so " * 4_000), *worked("c2", "b.txt")]
    rows[2]["content"] += STEER.format("stop")
    await host.record(rows)
    shown = from_disk(rows)
    shown[2]["content"] = (
        "so so\n[... 11,000 of 12,000 characters are left out here; the whole message is stored:"
        " expand sequence 3 to read it ...]\nso so" + STEER.format("stop")
    )
    host.restart()
    await host.record([*shown, replied("stopped")])
    assert await host.stored() == [*words(rows), "stopped"]
