"""OpenClaw itself, with the service as its context engine: judged by what its provider was asked
and by what is stored. Runs where CONTEXTENGINE_OPENCLAW names a folder that has OpenClaw and its
Node (`make test-openclaw`)."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from pathlib import Path

import pytest

from contextengine.breaker import PROBE_SECONDS
from contextengine.formats import Transcript
from contextengine.messages import text_of
from contextengine_server.cli.imports.files import read_sessions, session_files
from tests.hosts.gateway import INSTALLED, KEY, openclaw, serves, summarized, words_of
from tests.hosts.providers import Json
from tests.hosts.stage import soon
from tests.hosts.waits import FIRST_S
from tests.hosts.wire import wire

pytestmark = [
    pytest.mark.skipif(not INSTALLED, reason="CONTEXTENGINE_OPENCLAW names no folder"),
    pytest.mark.timeout(900),
]


def imported(path: Path) -> dict[str, Transcript]:
    """What `contextengine import` reads of OpenClaw's own transcripts."""
    files, _ = session_files([path / "state"])
    return {one.session_id: one for file in files for one in read_sessions(file)}


def common(one: list[Json], other: list[Json]) -> int:
    """How many messages two requests begin with alike."""
    differs = [
        at for at, (here, there) in enumerate(zip(one, other, strict=False)) if here != there
    ]
    return differs[0] if differs else min(len(one), len(other))


async def test_all_that_is_said_is_stored_and_what_is_sent_fits(tmp_path: Path) -> None:
    async with openclaw(tmp_path) as host:
        asked: list[str] = []
        for at in range(24):
            words = f"question {at}{' TOOLS' if at % 4 == 1 else ''}"
            asked.append(words)
            await host.say(f"{words}: {'and what of this ' * 250}")
            # Else it depends on the machine at which request a compaction is seen.
            await host.rested()
        said = await host.said()
        assert [one for one in said if one.startswith("question")] == asked
        answers = [one for one in said if one.startswith("Answer")]
        assert len(answers) == len(set(answers)) == len(asked)
        # A call that found something and one that failed, with their results.
        results = [
            part.tool_result
            for row in await host.stored()
            for part in row.message.parts
            if part.HasField("tool_result")
        ]
        assert len(results) == 12
        assert all(result.parts for result in results)
        last = host.asked[-1]
        assert summarized(last)
        assert len(last) < len(await host.stored())
        # What was sent is the beginning of what is sent next, but for where a new summary stands.
        parted = [
            (before, after[shared:])
            for before, after in pairwise(host.asked)
            if (shared := common(before, after)) < len(before)
        ]
        print(f"{len(parted)} of {len(host.asked)} requests differ within the one before them")
        assert all(summarized(rest[:1]) and rest[0] not in before for before, rest in parted)
        assert len(parted) <= await host.compactions()

        # The provider says that it is too long: OpenClaw compacts and comes again.
        before = len(host.asked)
        host.mock.too_long = 1
        await host.say("after too much")
        retried = host.asked[before:]
        assert len(retried) >= 2
        assert len(json.dumps(retried[-1])) < len(json.dumps(retried[0]))
        assert "after too much" in words_of(retried[-1][-1])

        # A compaction that the user asks for.
        told = await host.call("sessions.compact", key=KEY)
        print(f"sessions.compact: {json.dumps(told)[:300]}")
        assert told["ok"] is True, told
        await host.say("the end")
        assert summarized(host.asked[-1])
        assert (await host.said())[-2:-1] == ["the end"]


async def test_what_its_page_says_leads_to_a_request_with_a_summary(tmp_path: Path) -> None:
    async with openclaw(tmp_path, plugin=False) as host:
        for at in range(4):
            await host.say(f"question {at}: {'and what of this ' * 250}")
        told = await host.call("sessions.compact", key=KEY)
        assert told["ok"] is True, told
        await host.say("the end")
        assert summarized(host.asked[-1])
        assert (await host.said())[-2:-1] == ["the end"]


async def test_a_service_that_dies_loses_no_turn(tmp_path: Path) -> None:
    async with openclaw(tmp_path) as host:
        await host.say("ALPHA")
        await host.say("BRAVO TOOLS")
        host.service.kill()
        took: list[float] = []
        for words in ("CHARLIE", "DELTA"):
            began = time.monotonic()
            await host.say(words)
            took.append(time.monotonic() - began)
        shown = " ".join(words_of(row) for row in host.asked[-1])
        assert all(words in shown for words in ("ALPHA", "BRAVO", "CHARLIE", "DELTA"))
        host.service.start()
        await soon(lambda: serves(host.service.address))
        host.mock.broken = 10
        print(f"a failed turn: {(await host.say('ECHO', fails=True))[:200]}")
        host.mock.broken = 0
        await host.say("FOXTROT")
        await host.end()
        await host.start()
        await host.say("GOLF")
        shown = " ".join(words_of(row) for row in host.asked[-1])
        assert all(words in shown for words in ("ALPHA", "CHARLIE", "DELTA", "FOXTROT", "GOLF"))
        said = [one for one in await host.said() if not one.startswith("Answer")]
        assert [one for one in said if one != "ECHO"] == [
            *("ALPHA", "BRAVO TOOLS", "CHARLIE", "DELTA", "FOXTROT", "GOLF")
        ]
        ids = [row.message.id for row in await host.stored()]
        assert len(set(ids)) == len(ids)
        print(f"turns without the service took {took[0]:.2f} s and {took[1]:.2f} s")


@pytest.mark.parametrize("dead", [False, True], ids=["hung", "dead"])
async def test_a_service_that_is_away_loses_no_turn_and_the_same_words_are_two_turns(
    tmp_path: Path, dead: bool
) -> None:
    async with wire("127.0.0.1:1") as way, openclaw(tmp_path, way=way) as host:
        await host.say("ALPHA")
        assert way.taken().calls, "calls are counted"
        if dead:
            host.service.kill()
        else:
            host.service.hang(True)
        took: list[float] = []
        for words in ("go on", "go on"):
            began = time.monotonic()
            await host.say(words)
            took.append(time.monotonic() - began)
            heard = way.taken()
            if len(took) == 1:
                # One call: another attempt at it has what is left of its time.
                bounds = [bound for _, bound in heard.calls]
                assert bounds == sorted(bounds, reverse=True), heard
                assert max(bounds) <= FIRST_S, heard
                assert len({rpc for rpc, _ in heard.calls}) == 1, heard
                assert dead or len(bounds) == 1, heard
            else:
                assert not heard.calls, "what is known to be away is not called"
            # Each is waited for once, for a moment, and takes five seconds where nobody answers.
            assert dead or heard.asked <= 1 + heard.seconds / PROBE_SECONDS, heard
        shown = [words_of(row) for row in host.asked[-1]]
        assert sum(words.endswith("go on") for words in shown) == 2
        if dead:
            host.service.start()
        else:
            host.service.hang(False)
        await soon(lambda: serves(host.service.address))
        await host.say("go on")
        await host.say("BRAVO")
        said = [one for one in await host.said() if not one.startswith("Answer")]
        assert said == ["ALPHA", "go on", "go on", "go on", "BRAVO"]
        await host.agrees()
        print(f"turns without a service that answers took {took[0]:.2f} s and {took[1]:.2f} s")


async def test_what_is_stored_is_its_transcript_row_for_row_though_it_names_calls_anew(
    tmp_path: Path,
) -> None:
    async with openclaw(tmp_path) as host:
        for at in range(6):
            await host.say(f"question {at}{' TOOLS' if at % 2 else ''}: {'and so ' * 250}")
            await host.agrees()
        told = host.transcript()
        assert len(told) == 6 * 2 + 3 * 3
        wrote = [one for _, _, said in told for one in said if one[0] in ("call", "result")]
        named = {one[1] for one in wrote}
        assert len(named) == 6
        assert any(one[-1] for one in wrote if one[0] == "result"), "there are details"
        # What OpenClaw sends has other ids of its calls and no details: as it names them to us.
        sent = json.dumps(host.asked[-1])
        assert not any(f'"{name}"' in sent for name in named), "calls are named anew"
        assert all(f'"{name.replace("_", "")}"' in sent for name in named)
        # And what was sent is the beginning of what is sent next.
        for before, after in pairwise(host.asked):
            assert after[: len(before)] == before
        await host.end()
        await host.start()
        await host.say("the end TOOLS")
        await host.agrees()
        assert host.transcript()[: len(told)] == told


async def test_what_was_taken_back_leaves_the_view_and_a_fork_leaves_what_it_came_from(
    tmp_path: Path,
) -> None:
    async with openclaw(tmp_path) as host:

        async def before(words: str) -> Json:
            """Where the user's screen would click."""
            rows = [row.message for row in await host.stored(-1)]
            (entry,) = [row.id for row in rows if text_of(row) == words]
            return {"sessionKey": KEY, "entryId": entry}

        for words in ("ALPHA", "BRAVO", "CHARLIE"):
            await host.say(words)
        print(f"sessions.rewind: {await host.call('sessions.rewind', **await before('CHARLIE'))}")
        await host.say("DELTA")
        told = [one for one in await host.said(-1) if not one.startswith("Answer")]
        # OpenClaw goes on in another transcript, of another id under the same key.
        assert told == ["ALPHA", "BRAVO", "DELTA"]
        shown = " ".join(words_of(row) for row in host.asked[-1])
        assert "CHARLIE" not in shown
        assert all(words in shown for words in told)
        kept = await host.said(-1)
        forked = await host.call("sessions.fork", **await before("DELTA"))
        print(f"sessions.fork: {forked}")
        await host.say("ECHO", key=forked["sessionKey"])
        shown = " ".join(words_of(row) for row in host.asked[-1])
        assert all(words in shown for words in ("ALPHA", "BRAVO", "ECHO"))
        assert "DELTA" not in shown
        assert await host.said(-2) == kept
        told = [one for one in await host.said(-1) if not one.startswith("Answer")]
        assert told == ["ALPHA", "BRAVO", "ECHO"]

        # What `contextengine import` reads of OpenClaw's own transcripts is what is stored of them.
        read = imported(tmp_path)
        for at in (0, -2, -1):
            rows = [row.message.id for row in await host.stored(at)]
            assert rows in [[message.id for message in one.messages] for one in read.values()]
        assert KEY in {one.session_key for one in read.values()}


async def test_a_conversation_that_begins_anew_is_shown_nothing_of_before(tmp_path: Path) -> None:
    async with openclaw(tmp_path) as host:

        async def shown(words: str) -> str:
            await host.say(words)
            return " ".join(words_of(row) for row in host.asked[-1])

        await shown("ALPHA")
        assert "ALPHA" in await shown("BRAVO TOOLS")
        # `/new` and `/reset`: OpenClaw goes on under the same id.
        for words in ("CHARLIE", "DELTA"):
            await host.call("sessions.reset", key=KEY)
            told = await shown(words)
            assert [one for one in ("ALPHA", "BRAVO", "CHARLIE", "DELTA") if one in told] == [words]
            await host.end()
            await host.start()
            assert words in await shown("and more")
        assert [
            [one for one in await host.said(at) if not one.startswith("Answer")] for at in range(3)
        ] == [["ALPHA", "BRAVO TOOLS"], ["CHARLIE", "and more"], ["DELTA", "and more"]]
        read = [[message.id for message in one.messages] for one in imported(tmp_path).values()]
        assert read == [[row.message.id for row in await host.stored(at)] for at in range(3)]
