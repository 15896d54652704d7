"""What hosts wrote down, brought into a server once, once more, and when it has grown: nothing is
doubled and nothing is lost, whatever host it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contextengine import ContextEngineError
from contextengine.messages import text_of, user
from contextengine_server.cli.imports.files import read_sessions, session_files
from contextengine_server.cli.imports.session import ImportedTranscript, store
from tests.integration.harness import House, ref, texts
from tests.unit.cli.imports import test_openclaw as openclaw
from tests.unit.cli.imports.hosts import HERMES, OPENCLAW, written
from tests.unit.client import pi_files
from tests.unit.client import test_claude_code as claude
from tests.unit.client import test_codex_rollout as codex

Json = dict[str, Any]
LONG = "a long tale of what was done " * 40


def asked(turn: int) -> str:
    return f"question {turn} {LONG}"


def answer(turn: int) -> str:
    return f"answer {turn} {LONG}"


def lines(file: Path, *rows: Json) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def of_codex(folder: Path, turns: int) -> str:
    said = [
        one
        for turn in range(turns)
        for one in (codex.said(asked(turn)), codex.said(answer(turn), "assistant"), codex.EVENT)
    ]
    lines(folder / "sessions" / "2026" / "rollout-1.jsonl", codex.HEAD, codex.CHOSE, *said)
    return codex.THREAD


def of_claude_code(folder: Path, turns: int) -> str:
    said: list[Json] = []
    for turn in range(turns):
        before = said[-1]["uuid"] if said else None
        words = claude.text(answer(turn))
        said += [
            claude.said(f"u{turn}", before, asked(turn)),
            claude.reply(f"a{turn}", f"u{turn}", f"m{turn}", words),
        ]
    lines(folder / "projects" / "one" / f"{claude.SESSION}.jsonl", claude.QUEUED, *said)
    return claude.SESSION


def entries(turns: int) -> list[Json]:
    """As Pi and OpenClaw have them."""
    said: list[Json] = []
    for turn in range(turns):
        before = said[-1]["id"] if said else None
        said += [
            openclaw.said("user", f"u{turn}", before, asked(turn)),
            openclaw.said("assistant", f"a{turn}", f"u{turn}", answer(turn)),
        ]
    return said


def of_openclaw_before(folder: Path, turns: int) -> str:
    file = folder / "agents" / "main" / "sessions" / "pi-1.jsonl"
    lines(file, pi_files.HEAD, *entries(turns))
    return "pi-1"


def of_openclaw(folder: Path, turns: int) -> str:
    file = folder / "agents" / "main" / "openclaw-agent.sqlite"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    window = {"session_id": "s", "session_key": "agent:main:talk", "created_at": 1}
    events = openclaw.rows("s", {"type": "session", "id": "s", "version": 4}, *entries(turns))
    written(file, OPENCLAW, {"session_windows": [window], "transcript_events": events})
    return "s"


def hermes(folder: Path, sessions: list[Json], rows: list[Json]) -> None:
    file = folder / "state.db"
    file.unlink(missing_ok=True)
    numbered = [{"id": at, "timestamp": 1795466528.5 + at, **row} for at, row in enumerate(rows, 1)]
    written(file, HERMES, {"sessions": sessions, "messages": numbered})


def turns_of(session: str, first: int, last: int) -> list[Json]:
    """As Hermes keeps them."""
    return [
        {"session_id": session, "role": role, "content": words}
        for turn in range(first, last)
        for role, words in (("user", asked(turn)), ("assistant", answer(turn)))
    ]


def of_hermes(folder: Path, turns: int) -> str:
    session = {"id": "s", "session_key": "main", "model": "m", "started_at": 1.0}
    hermes(folder, [session], turns_of("s", 0, turns))
    return "s"


async def brought(house: House, folder: Path) -> list[ImportedTranscript]:
    files, passed_over = session_files([folder])
    assert not passed_over
    return [
        await store(house.client, "agent", session, lambda *_: None)
        for file in files
        for session in read_sessions(file)
    ]


async def said(house: House, session: str) -> list[str]:
    rows = await house.rows(ref(session))
    assert len({row.message.id for row in rows}) == len(rows)
    return [text_of(row.message) for row in rows if not row.retired_revision]


def talk(turns: int) -> list[str]:
    return [words for turn in range(turns) for words in (asked(turn), answer(turn))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the host keeps what it writes down."""
    made = tmp_path / "host"
    made.mkdir()
    return made


HOSTS = [of_codex, of_claude_code, of_openclaw_before, of_openclaw, of_hermes]


@pytest.mark.parametrize("host", HOSTS)
async def test_a_host_that_went_on_is_followed_and_nothing_is_doubled(
    house: House, folder: Path, host: Callable[[Path, int], str]
) -> None:
    session = host(folder, 2)
    for stored, known in ((4, 0), (0, 4)):
        (done,) = await brought(house, folder)
        assert (done.session_id, done.stored, done.known) == (session, stored, known)
    host(folder, 3)
    house.forget()
    (done,) = await brought(house, folder)
    assert (done.session_id, done.stored, done.known) == (session, 2, 4)
    assert await said(house, session) == talk(3)
    assert len((await house.client.sessions.list(agent_id="agent")).sessions) == 1


SUMMARY = {"role": "assistant", "content": "[CONTEXT COMPACTION — REFERENCE ONLY] they talked"}
A = {"id": "a", "session_key": "main", "started_at": 1.0}
ENDED = {**A, "end_reason": "compression"}
B = {"id": "b", "session_key": "main", "parent_session_id": "a", "started_at": 2.0}


def parted(folder: Path, turns: int, *, also_c: bool = False) -> None:
    """A talk that Hermes went on with under another id after its third turn, where it wrote the
    last one down again; and under a third one."""
    rows = [
        *turns_of("a", 0, 3),
        {**SUMMARY, "session_id": "b"},
        *turns_of("b", 2, turns),
    ]
    sessions = [ENDED, B]
    if also_c:
        sessions = [ENDED, {**B, "end_reason": "compression"}]
        sessions.append({**B, "id": "c", "parent_session_id": "b", "started_at": 3.0})
        rows += [{**SUMMARY, "session_id": "c"}, *turns_of("c", turns - 1, turns + 1)]
    hermes(folder, sessions, rows)


async def own(house: House, session: str) -> list[str]:
    """What a session itself stores."""
    rows = await house.rows(ref(session))
    return [text_of(row.message) for row in rows if not row.stored_in_session_id]


async def test_a_session_of_hermes_that_a_compaction_parted_meanwhile_is_stored_once(
    house: House, folder: Path
) -> None:
    hermes(folder, [A], turns_of("a", 0, 2))
    (first,) = await brought(house, folder)
    assert (first.session_id, first.stored) == ("a", 4)
    # It went on for a turn, then under another id.
    parted(folder, 4)
    (done,) = await brought(house, folder)
    assert (done.session_id, done.stored, done.known, done.summaries) == ("b", 4, 4, 1)
    assert await said(house, "b") == talk(4)
    assert (await own(house, "a"), await own(house, "b")) == (talk(3), talk(4)[6:])
    shown = texts((await house.client.assemble(ref("b"))).items)
    assert "they talked" in shown[0]
    current = await house.client.get_status(ref("", key="main"))
    assert current.session_id == "b"
    # And once more; and further, under a third id.
    (again,) = await brought(house, folder)
    assert (again.session_id, again.stored, again.known, again.summaries) == ("b", 0, 8, 0)
    parted(folder, 5, also_c=True)
    house.forget()
    for stored, known in ((4, 8), (0, 12)):
        (done,) = await brought(house, folder)
        assert (done.session_id, done.stored, done.known) == ("c", stored, known)
    assert await said(house, "c") == talk(6)
    assert [await own(house, one) for one in "abc"] == [talk(3), talk(5)[6:], talk(6)[10:]]
    current = await house.client.get_status(ref("", key="main"))
    assert current.session_id == "c"


async def test_one_that_was_parted_before_is_stored_under_its_newest_id(
    house: House, folder: Path
) -> None:
    parted(folder, 4)
    (done,) = await brought(house, folder)
    assert (done.session_id, done.stored) == ("b", 8)
    parted(folder, 5, also_c=True)
    (done,) = await brought(house, folder)
    assert (done.session_id, done.stored, done.known) == ("c", 4, 8)
    assert await said(house, "c") == talk(6)
    assert await own(house, "b") == talk(5)
    with pytest.raises(ContextEngineError, match="SESSION_NOT_FOUND"):
        await house.client.get_status(ref("a"))


async def test_another_conversation_of_its_earlier_id_is_left_alone(
    house: House, folder: Path
) -> None:
    await house.client.ingest(ref("a"), user("of somebody else"))
    parted(folder, 4)
    (done,) = await brought(house, folder)
    assert (done.session_id, done.stored) == ("b", 8)
    assert await own(house, "a") == ["of somebody else"]
    assert await own(house, "b") == talk(4)


async def test_what_was_taken_back_in_hermes_leaves_the_view(house: House, folder: Path) -> None:
    of_hermes(folder, 3)
    await brought(house, folder)
    session = {"id": "s", "session_key": "main", "started_at": 1.0}
    rows = turns_of("s", 0, 3)
    undone = [*rows[:4], *({**row, "active": 0} for row in rows[4:]), *turns_of("s", 7, 8)]
    hermes(folder, [session], undone)
    (done,) = await brought(house, folder)
    assert (done.stored, done.known, done.rewound) == (2, 4, 2)
    assert await said(house, "s") == [*talk(2), asked(7), answer(7)]
    (again,) = await brought(house, folder)
    assert (again.stored, again.known, again.rewound) == (0, 6, 0)
