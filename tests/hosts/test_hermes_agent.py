"""Hermes itself, with the service as its context engine: judged by what its provider was asked and
by what is stored. Runs where CONTEXTENGINE_HERMES names a Python that has Hermes and
contextengine-hermes (`make test-hermes`)."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import time
from pathlib import Path
from typing import Any

import pytest

from contextengine import types as t
from contextengine.messages import text_of
from contextengine_hermes.block import part
from tests.hosts.frameworks.brain import FAILS
from tests.hosts.gate import Way
from tests.hosts.hermes_host import HERMES, agrees, hermes, lively, refs
from tests.hosts.upstream import Upstream, serving
from tests.hosts.waits import FIRST_S, LATER_S
from tests.hosts.walk import commands
from tests.integration.harness import house

THEIRS = """
model:
  {provider: custom, base_url: "%s/v1", api_key: k, default: mock-1, context_length: 64000}
memory: {memory_enabled: false, user_profile_enabled: false}
"""
"""What a user of Hermes has set before."""
PROBED_S = 2.0
"""By then a client has seen that the service is there again."""
pytestmark = pytest.mark.skipif(not HERMES, reason="CONTEXTENGINE_HERMES names no Python")


@pytest.mark.parametrize("sessions", ["", "kept", "turned"])
async def test_all_that_is_said_is_stored_and_what_is_sent_is_compacted(
    tmp_path: Path, sessions: str
) -> None:
    async with hermes(tmp_path, sessions) as host:
        said: list[str] = []
        told: dict[str, Any] = {}
        for at in range(40):
            said.append(f"question {at}: {'and what of this ' * 60}")
            told = await host.do(say=said[-1])
        assert told["engine"] == "contextengine"
        assert "ctx_search" in told["tools"]
        assert told["compactions"] >= 1
        assert (told["session"] == "h1") == (sessions != "turned")
        stored = await host.stored()
        assert [one for one in stored if one.startswith("question")] == said
        answers = [one for one in stored if one.startswith("Answer")]
        assert len(answers) == len(set(answers)) == 40
        last = host.asked[-1]
        # The summaries that Hermes goes on with are those that the service keeps.
        shown = set(part(str(last[0]["content"])).items)
        assert shown
        assert shown <= await host.summaries()
        assert len(last) < len(stored)
        # What follows the summaries is what was said, in its own words and order.
        spoken = [one.strip() for one in stored if one.startswith(("question", "Answer"))]
        behind = [str(row["content"]).strip() for row in last[1:] if row["role"] != "tool"]
        words = [one for one in behind if one]
        assert words == spoken[-len(words) - 1 : -1]
        unchanged = sum(
            one[: len(before)] == before
            for before, one in zip(host.asked, host.asked[1:], strict=False)
        )
        assert unchanged >= len(host.asked) - 1 - 2 * told["compactions"]


async def test_a_service_that_is_away_loses_no_turn(tmp_path: Path) -> None:
    async with hermes(tmp_path) as host:
        await host.do(say="one")
        host.way.turn(Way.CLOSED)
        began = time.monotonic()
        await host.do(say="two")
        told = await host.do(say="three")
        print(f"two turns without the service: {time.monotonic() - began:.2f} s")
        assert [row[1] for row in told["rows"] if row[0] == "user"] == ["one", "two", "three"]
        host.way.turn(Way.OPEN)
        said = ["one", "two", "three", *(f"more {at}" for at in range(8))]
        for words in said[3:]:
            await host.do(say=words)
        stored = await host.stored()
        assert [one for one in stored if one in said] == said
        assert len([one for one in stored if one.startswith("Answer")]) == len(said)


@pytest.mark.parametrize("way", [Way.CLOSED, Way.HUNG])
async def test_a_service_that_is_away_is_waited_for_once(tmp_path: Path, way: Way) -> None:
    async with hermes(tmp_path) as host:
        assert (await host.do(say="one"))["sent"], "calls are counted"
        host.way.turn(way)
        took = []
        for words in ("two", "three", "four"):
            began = time.monotonic()
            told = await host.do(say=words)
            took.append(time.monotonic() - began)
            if words == "two":
                assert sum(bound for _, bound in told["sent"]) <= FIRST_S, told["sent"]
            else:
                # A turn makes seven calls.
                assert not told["sent"], "what is known to be away is not called"
                assert told["waited"] <= LATER_S or way is Way.CLOSED
        print(f"turns, {way.name}: {', '.join(f'{one:.2f}' for one in took)} s")
        assert [row[1] for row in told["rows"] if row[0] == "user"] == [
            *("one", "two", "three", "four")
        ]
        host.way.turn(Way.CLOSED)
        host.way.turn(Way.OPEN)
        await asyncio.sleep(PROBED_S)
        await agrees(host, await host.do(say="five"))


async def test_what_its_page_says_leads_to_a_request_with_a_summary(tmp_path: Path) -> None:
    home, program = tmp_path / "hermes", Path(HERMES).with_name("hermes")
    home.mkdir()
    # Each turn calls a tool: the newest steps are never summarized.
    upstream = Upstream(lambda number, given: lively(1, given))
    async with house(tmp_path) as service, serving(upstream.application) as there:
        (home / "config.yaml").write_text(THEIRS % there, encoding="utf-8")
        given = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "HERMES_HOME": str(home),
            "CONTEXTENGINE_ADDRESS": service.app.address,
        }

        async def types(*words: str) -> None:
            process = await asyncio.create_subprocess_exec(
                program,
                *words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env=given,
                cwd=tmp_path,
            )
            out, _ = await process.communicate()
            assert process.returncode == 0, out.decode()

        *setting_up, begun = [
            shlex.split(line) for line in commands()["Hermes Agent"] if line.startswith("hermes")
        ]
        for line in setting_up:
            await types(*line[1:])
        # The page's last command, told what its user would type into it.
        assert begun == ["hermes"]
        told = [f"question {at}: {'and what of this ' * 2_000}" for at in range(6)]
        for at, words in enumerate(told):
            await types("chat", "-Q", *(["--continue"] if at else []), "-q", words)
        asked = [one.json for one in upstream.seen if one.body]
        last = [row for row in asked[-1]["messages"] if row["role"] != "system"]
        assert part(str(last[0]["content"])).items, "a summary stands in the request"
        assert any(str(row["content"]).endswith(told[-1].strip()) for row in last)
        assert "ctx_search" in json.dumps(asked[-1]["tools"])
        (session,) = (await service.client.sessions.list(agent_id="hermes")).sessions
        rows = await service.rows(refs(session.session_id))
        said = [text_of(row.message) for row in rows if row.message.role == t.ROLE_USER]
        assert [one.strip() for one in said] == [one.strip() for one in told]


async def test_two_turns_with_the_same_words_are_two(tmp_path: Path) -> None:
    async with hermes(tmp_path) as host:
        told: dict[str, Any] = {}
        for words in ("one", "go on", "go on", "go on", "two", "go on"):
            told = await host.do(say=words)
        await agrees(host, told)
        assert (await host.stored()).count("go on") == 4


async def test_a_turn_that_failed_stays_apart_from_the_next(tmp_path: Path) -> None:
    """Hermes joins what was not answered with what is said next."""
    async with hermes(tmp_path) as host:
        await host.do(say="one")
        await host.do(say=f"two {FAILS}")
        assert f"two {FAILS}\n\nthree" in [row[1] for row in (await host.do(say="three"))["rows"]]
        stored = [one for one in await host.stored() if one]
        assert stored[0] == "one"
        assert stored[-3:-1] == [f"two {FAILS}", "three"]
        (last,) = [row["content"] for row in host.asked[-1]][-1:]
        assert str(last).endswith("three")


async def test_what_was_undone_is_not_in_the_view(tmp_path: Path) -> None:
    async with hermes(tmp_path) as host:
        await host.do(say="one")
        rows = (await host.do(say="two"))["rows"]
        begin = [row[1] for row in rows].index("two")
        await host.do(undo=len(rows) - begin)
        await host.do(say="instead")
        stored = await host.stored()
        assert [one for one in stored if one in ("one", "two", "instead")] == ["one", "instead"]


@pytest.mark.parametrize("turns", [3, 30], ids=["verbatim", "compacted"])
async def test_a_host_that_is_killed_and_starts_again_goes_on_where_it_was(
    tmp_path: Path, turns: int
) -> None:
    async with hermes(tmp_path) as host:
        said = [f"question {at}: {'and what of this ' * 60}well" for at in range(turns)]
        for words in said:
            await host.do(say=words)
        before = await host.stored()
        await host.kill()
        await host.start()
        told = await host.do(say="and now")
        stored = await host.stored()
        # What was stored is neither gone nor there twice, and what was said since is behind it.
        assert stored[: len(before)] == before
        assert [one for one in stored if one.startswith(("question", "and now"))] == [
            *said,
            "and now",
        ]
        assert host.asked[-1][-1]["content"] == "and now"
        assert [row[1] for row in told["rows"] if row[0] == "user"][-1] == "and now"
        if turns == 30:
            assert set(part(str(host.asked[-1][0]["content"])).items) <= await host.summaries()
        else:
            await agrees(host, told)
