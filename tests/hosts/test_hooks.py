"""Hooks of Codex and Claude Code: the transcript is stored as it grows, whatever becomes of it."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from contextengine import Client
from contextengine.messages import text_of
from contextengine_mcp import hooks
from contextengine_mcp.away import GLANCE_S, PROBE_S, Away
from contextengine_mcp.command import main
from tests.hosts.gate import Way, gate
from tests.hosts.stage import soon
from tests.hosts.waits import FIRST_S, LATER_S
from tests.hosts.wire import wire
from tests.integration.harness import PATIENCE_S, House, house, ref, texts

SESSION = "ec77ab8c-8c96-4900-8f81-e345bd29db80"
LONG = "a long tale of what was done " * 40
HERE = ref(SESSION, agent="claude-code")


def said(uuid: str, parent: str | None, words: str, **more: Any) -> dict[str, Any]:
    message = {"role": "user", "content": words}
    return entry(uuid, parent, "user", message, **more)


def replied(uuid: str, parent: str, words: str) -> dict[str, Any]:
    content = [{"type": "text", "text": words}]
    message = {"id": f"m-{uuid}", "role": "assistant", "model": "m", "content": content}
    return entry(uuid, parent, "assistant", message)


def block(uuid: str, parent: str, **content: Any) -> dict[str, Any]:
    """An entry of the reply m, which is written down piece by piece."""
    message = {"id": "m", "role": "assistant", "model": "m", "content": [content]}
    return entry(uuid, parent, "assistant", message)


def called(uuid: str, parent: str, call: str) -> dict[str, Any]:
    return block(uuid, parent, type="tool_use", id=call, name="look", input={})


def answered(uuid: str, parent: str, call: str) -> dict[str, Any]:
    content = [{"type": "tool_result", "tool_use_id": call, "content": "found"}]
    return entry(uuid, parent, "user", {"role": "user", "content": content})


def entry(uuid: str, parent: str | None, kind: str, message: Any, **more: Any) -> dict[str, Any]:
    named = {"uuid": uuid, "parentUuid": parent, "sessionId": SESSION}
    return {**named, "type": kind, "message": message, **more}


def away(address: str, cache: Path | None = None) -> Away:
    """What is remembered of a service. cache: where; None: as the environment says."""
    return Away(address, lambda: None, cache)


class Host:
    """A host that calls its hook at each event."""

    def __init__(self, home: House, directory: Path) -> None:
        self.home = home
        self.file = directory / f"{SESSION}.jsonl"

    async def fire(self, event: str, *entries: dict[str, Any]) -> str:
        """Writes entries and calls the hook; what the hook prints."""
        with self.file.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(one) + "\n" for one in entries)
        given = {
            "session_id": SESSION,
            "transcript_path": str(self.file),
            "hook_event_name": event,
        }

        def call() -> str:
            address, event = self.home.app.address, hooks.read(json.dumps(given))
            with Client(address, retry_for=0) as client:
                hooks.record(client, "claude-code", event, PATIENCE_S, away(address))
            return hooks.note(event)

        return await asyncio.to_thread(call)

    async def stored(self) -> list[str]:
        rows = await self.home.rows(HERE)
        return [text_of(row.message) for row in rows if not row.retired_revision]


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with house(tmp_path) as home:
        yield Host(home, tmp_path)


async def test_what_came_since_the_last_event_is_stored_and_nothing_twice(host: Host) -> None:
    await host.fire("UserPromptSubmit")
    await host.fire("Stop", said("u1", None, "one"), replied("a1", "u1", "first"))
    assert await host.stored() == ["one", "first"]
    await host.fire("PreCompact", said("u2", "a1", "two"))
    await host.fire("PreCompact")
    await host.fire("Stop", replied("a2", "u2", "second"))
    await host.fire("Stop")
    assert await host.stored() == ["one", "first", "two", "second"]


async def test_an_edited_prompt_takes_the_old_one_out_of_the_view(host: Host) -> None:
    await host.fire("Stop", said("u1", None, "one"), replied("a1", "u1", "first"))
    await host.fire("Stop", said("u2", "a1", "LEFT"), replied("a2", "u2", "LEFT TOO"))
    await host.fire("Stop", said("u3", "a1", "edited"), replied("a3", "u3", "answer"))
    assert await host.stored() == ["one", "first", "edited", "answer"]
    shown = texts((await host.home.client.assemble(HERE)).items)
    assert shown == ["one", "first", "edited", "answer"]
    # The very first prompt can be edited as well.
    await host.fire("Stop", said("u9", None, "anew"), replied("a9", "u9", "well"))
    assert await host.stored() == ["anew", "well"]


async def test_what_a_reply_has_become_takes_the_place_of_the_part_that_was_stored(
    host: Host,
) -> None:
    """Claude Code writes each block down as it comes, and may call a hook before the last."""
    thought = block("a1", "u1", type="thinking", thinking="hm", signature="s")
    await host.fire("Stop", said("u1", None, "one"), thought)
    await host.fire("UserPromptSubmit", block("a2", "a1", type="text", text="first"))
    await host.fire("UserPromptSubmit", said("u2", "a2", "two"))
    assert await host.stored() == ["one", "first", "two"]


async def test_a_call_that_comes_behind_the_result_of_another_is_stored_with_it(host: Host) -> None:
    await host.fire("PreCompact", said("u1", None, "one"), called("a1", "u1", "c1"))
    await host.fire("PreCompact", answered("r1", "a1", "c1"))
    await host.fire("Stop", called("a2", "a1", "c2"), answered("r2", "a2", "c2"))
    rows = [row for row in await host.home.rows(HERE) if not row.retired_revision]
    assert [row.message.id for row in rows] == ["u1", "a1", "r1", "r2"]
    assert [part.tool_call.call_id for part in rows[1].message.parts] == ["c1", "c2"]


async def test_a_reply_that_is_stored_whole_is_no_change(host: Host) -> None:
    await host.fire("Stop", said("u1", None, "one"), replied("a1", "u1", "first"))
    revision = (await host.home.client.get_status(HERE)).revision
    await host.fire("SessionStart")
    assert (await host.home.client.get_status(HERE)).revision == revision


async def test_a_turn_that_is_larger_than_a_request_may_be_is_stored(tmp_path: Path) -> None:
    """As one with pictures of the screen is."""
    written = [said("0", None, "go on")]
    for at in range(1, 11):
        written.append(block(str(at), str(at - 1), type="text", text="a screen " * 50_000))
        written[-1]["message"]["id"] = f"m{at}"
    async with house(tmp_path, **{"server.max_message_bytes": "4MiB"}) as home:
        host = Host(home, tmp_path)
        await host.fire("Stop", *written)
        assert len(await host.stored()) == 11


async def test_a_compaction_of_the_host_is_shown_as_its_summary(host: Host) -> None:
    await host.fire("Stop", said("u1", None, LONG), replied("a1", "u1", LONG))
    boundary = {**said("b", None, ""), "type": "system", "subtype": "compact_boundary"}
    boundary["logicalParentUuid"] = "a1"
    summary = said("k", "b", "They told a long tale.", isCompactSummary=True)
    for _ in range(2):
        await host.fire("SessionStart", boundary, summary)
        boundary = summary = said("u2", "k", "two")
    items = (await host.home.client.assemble(HERE)).items
    assert [item.origin.WhichOneof("kind") for item in items] == ["summary_id", "sequence"]
    assert "They told a long tale." in texts(items)[0]


async def test_a_session_that_begins_hears_one_constant_note(host: Host) -> None:
    printed = [await host.fire("SessionStart") for _ in range(2)]
    assert printed[0] == printed[1]
    added = json.loads(printed[0])["hookSpecificOutput"]
    assert added == {"hookEventName": "SessionStart", "additionalContext": hooks.NOTE}
    assert await host.fire("Stop", said("u1", None, "one")) == ""


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("no JSON", "standard input is no JSON"),
        ("[]", "session_id is missing"),
        ('{"session_id": "s"}', "hook_event_name is missing"),
        ('{"session_id": "s", "hook_event_name": "Stop", "transcript_path": "x"}', ""),
    ],
)
def test_what_goes_wrong_is_said_and_stops_no_host(
    given: str,
    complaint: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(given))
    assert main(["--address", "127.0.0.1:1", "hook"]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert complaint in printed.err


async def test_a_service_that_is_away_costs_a_hook_its_recording_and_the_next_one_catches_up(
    host: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host.file.write_text(json.dumps(said("u1", None, "one")) + "\n", encoding="utf-8")
    given = {"session_id": SESSION, "transcript_path": str(host.file), "hook_event_name": "Stop"}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(given)))
    assert await asyncio.to_thread(main, ["--address", "127.0.0.1:1", "hook"]) == 0
    assert "not recorded: UNAVAILABLE" in capsys.readouterr().err
    await host.fire("Stop", replied("a1", "u1", "first"))
    assert await host.stored() == ["one", "first"]


async def test_a_service_that_hangs_costs_one_hook_its_patience_and_all_behind_it_a_glance(
    host: Host, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    begun: list[list[str]] = []

    class Begun:
        def __init__(self, words: list[str], **_: Any) -> None:
            begun.append(words)

    monkeypatch.setattr("subprocess.Popen", Begun)
    async with wire(host.home.app.address) as way:

        async def fire(event: str = "Stop") -> list[float]:
            """For how many seconds the hook waits for each of its calls."""
            given = {
                "session_id": SESSION,
                "transcript_path": str(host.file),
                "hook_event_name": event,
            }
            monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(given)))
            words = ["--address", way.address, "--agent", "claude-code", "hook"]
            assert await asyncio.to_thread(main, words) == 0
            return [bound for _, bound in way.taken().calls]

        host.file.write_text(json.dumps(said("u1", None, "one")) + "\n", encoding="utf-8")
        way.hangs = True
        (first,) = await fire()
        assert GLANCE_S < first <= FIRST_S
        (mark,) = (tmp_path / "cache" / "contextengine").iterdir()
        # However long it hangs, and however old what is known of it is.
        for age in (0, PROBE_S, 3_600, -3_600):
            now = time.time()
            os.utime(mark, (now - age, now - age))
            assert all(bound <= LATER_S for bound in await fire())
        assert len(begun) == 3, "a question goes on beside, one at a time"
        # Another service is not known to hang.
        assert not away("127.0.0.1:1").known
        probe = begun[0][begun[0].index("--address") :]
        assert await asyncio.to_thread(main, probe) == 0
        assert mark.exists()
        way.hangs = False
        assert await asyncio.to_thread(main, probe) == 0
        assert not mark.exists()
        await fire()
    assert await host.stored() == ["one"]


async def test_the_question_that_a_hook_begins_outlives_it_and_holds_none_of_its_streams(
    host: Host, tmp_path: Path
) -> None:
    given = {"session_id": SESSION, "transcript_path": str(host.file), "hook_event_name": "Stop"}
    host.file.write_text(json.dumps(said("u1", None, "one")) + "\n", encoding="utf-8")
    async with wire(host.home.app.address) as way:
        mark = away(way.address, tmp_path).mark
        mark.parent.mkdir(parents=True)
        mark.touch()
        os.utime(mark, (0, 0))
        # It answers no glance.
        way.slow = {"List": 4 * GLANCE_S}
        words = ["-m", "contextengine_mcp.command", "--address", way.address, "hook"]
        hook = await asyncio.create_subprocess_exec(
            sys.executable,
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
            start_new_session=True,
        )
        out, _ = await hook.communicate(json.dumps(given).encode())
        assert b"not recorded: DEADLINE_EXCEEDED" in out
        with suppress(ProcessLookupError):
            os.killpg(hook.pid, signal.SIGKILL)

        async def gone() -> bool:
            return not mark.exists()

        await soon(gone)


async def test_a_hook_that_runs_out_of_its_own_time_says_nothing_of_the_service(
    host: Host,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """It answers, and then takes longer for what is to be stored than a hook waits."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    host.file.write_text(json.dumps(said("u1", None, "one")) + "\n", encoding="utf-8")
    told = {"session_id": SESSION, "transcript_path": str(host.file), "hook_event_name": "Stop"}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(told)))
    async with gate(host.home.app.address) as way:
        asked = Away.ask

        def asked_and_slow(self: Away, *given: Any) -> None:
            asked(self, *given)
            way.turn(Way.DEAF)

        monkeypatch.setattr(Away, "ask", asked_and_slow)
        words = ["--address", way.address, "--agent", "claude-code", "hook"]
        assert await asyncio.to_thread(main, words) == 0
        assert "not recorded: DEADLINE_EXCEEDED" in capsys.readouterr().err
        assert not away(way.address).known
    await host.fire("Stop")
    assert await host.stored() == ["one"]


@pytest.mark.parametrize("away", [False, True])
def test_a_session_hears_the_note_whatever_becomes_of_the_recording(
    away: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    file = tmp_path / f"{SESSION}.jsonl"
    file.write_text(json.dumps(said("u1", None, "one")) if away else "", encoding="utf-8")
    told = {"session_id": SESSION, "transcript_path": str(file), "hook_event_name": "SessionStart"}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(told)))
    assert main(["--address", "127.0.0.1:1", "hook"]) == 0
    printed = capsys.readouterr()
    assert hooks.NOTE in printed.out
    assert ("not recorded: UNAVAILABLE" in printed.err) == away
