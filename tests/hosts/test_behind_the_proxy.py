"""Codex and Claude Code behind the proxy, set up as docs/hosts.md says: once its conversation does
not fit any more, the request of the program itself holds a summary of the service's."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.responses import Response

from tests.codex.app_server import binary
from tests.hosts.frameworks.claude_code_host import INSTALLED
from tests.hosts.providers import Answer, Json
from tests.hosts.stage import apart
from tests.hosts.upstream import Upstream, serving
from tests.hosts.walk import commands
from tests.integration.harness import house, ref

PAGES = "127.0.0.1:8787"
"""Where the page's proxy listens; the test's takes a port that is free."""
pytestmark = pytest.mark.timeout(900)


@dataclass(frozen=True)
class Program:
    """How a test says what a user of the program would type into it."""

    title: str
    """Its part of docs/hosts.md."""
    path: Path | None
    """None: it is not installed."""
    begun: tuple[str, ...]
    goes_on: tuple[str, ...]
    settings: dict[str, str]
    tool: tuple[str, Json]
    window: int
    """Tokens, so that some turns do not fit behind what it says before all messages."""


CODEX = Program(
    "Codex, where the service decides what its model sees",
    binary(),
    ("exec", "--skip-git-repo-check"),
    ("exec", "resume", "--last", "--skip-git-repo-check"),
    {},
    ("exec_command", {"cmd": "true"}),
    48_000,
)
CLAUDE_CODE = Program(
    "Claude Code, where the service decides what its model sees",
    next(INSTALLED.glob("@anthropic-ai/claude-code-*/claude"), None),
    ("--allowedTools=Read", "-p"),
    ("--allowedTools=Read", "--continue", "-p"),
    {
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    },
    ("Read", {"file_path": str(Path(__file__).parent / "walk.py")}),
    70_000,
)
PROGRAMS = [pytest.param(CODEX, id="codex"), pytest.param(CLAUDE_CODE, id="claude-code")]


class Typing:
    """A user who types what the page says, into a folder of its own."""

    def __init__(self, path: Path, program: Program, settings: dict[str, str]) -> None:
        self._program, self._settings = program, settings
        self._work = path / "work"
        self._work.mkdir()
        (path / "codex").mkdir()
        self._home = path

    async def types(self, words: Sequence[str], given: str = "") -> None:
        """One command, to its end."""
        assert self._program.path is not None
        process = await asyncio.create_subprocess_exec(
            self._program.path,
            *words,
            cwd=self._work,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self._home),
                "CODEX_HOME": str(self._home / "codex"),
                **self._program.settings,
                **self._settings,
            },
        )
        out, _ = await process.communicate(given.encode())
        assert process.returncode == 0, out.decode()


def answering(program: Program) -> Upstream:
    """A provider: each question is answered behind a call, since the newest steps are never
    summarized."""
    tool, arguments = program.tool

    def answer(number: int, given: Json) -> Answer:
        rows = given.get("messages") or given["input"]
        said = [row for row in rows if row.get("role") == "user" or "output" in row][-1]
        if "tool_result" in json.dumps(said) or "output" in said:
            return Answer(f"Answer {number}: {'well ' * 1_500}")
        return Answer(calls=[arguments], tool=tool)

    return Upstream(answer)


async def test_codex_compacts_by_itself_and_goes_on(tmp_path: Path) -> None:
    """Where it is told that a request took most of its window it has the provider compact, which
    answers what nobody else can read; that stands first from then on."""
    if CODEX.path is None:
        pytest.skip("it is not installed")
    usual, full = answering(CODEX), list[int]()

    def answer(number: int, given: Json) -> Answer | Response:
        if given["input"][-1].get("type") == "compaction_trigger":
            return Answer(sealed="c2VjcmV0")
        replied = usual.answer(number, given)
        assert isinstance(replied, Answer)
        if not full and "Question two" in json.dumps(given["input"]):
            full.append(number)
            replied.read = 50_000
        return replied

    upstream = Upstream(answer)
    *_, last = commands()[CODEX.title]
    async with (
        house(tmp_path) as home,
        serving(upstream.application) as there,
        apart(there, home.app.address, tmp_path) as (_, base),
    ):
        typing = Typing(tmp_path, CODEX, {})
        words = shlex.split(last.replace(f"http://{PAGES}", base))[1:]
        await typing.types(["login", "--with-api-key"], "none")
        flags = [*words, "-c", "model_auto_compact_token_limit=40000"]
        await typing.types([*CODEX.begun, *flags, "Question one"])
        for said in ("two", "three"):
            await typing.types([*CODEX.goes_on, *flags, f"Question {said}"])
        sent = [one.json["input"] for one in upstream.seen if one.body]
        kinds = [[row.get("type") for row in rows] for rows in sent]
        assert "compaction_trigger" in [one[-1] for one in kinds]
        assert "compaction" in kinds[-1]
        assert "Question three" in json.dumps(sent[-1])
        for one in (await home.client.sessions.list(agent_id="proxy")).sessions:
            rows = await home.rows(ref(one.session_id, agent="proxy"))
            assert not any("compaction_trigger" in str(row.message) for row in rows)


@pytest.mark.parametrize("program", PROGRAMS)
async def test_what_its_page_says_leads_to_a_request_with_a_summary(
    program: Program, tmp_path: Path
) -> None:
    if program.path is None:
        pytest.skip("it is not installed")
    _, proxy, last = commands()[program.title]
    assert proxy == "contextengine-proxy"
    upstream = answering(program)
    told = [f"question {at}: and so on{' and what of this' * 400}" for at in range(8)]
    more = ("--window", str(program.window))
    async with (
        house(tmp_path) as home,
        serving(upstream.application) as there,
        apart(there, home.app.address, tmp_path, "--anthropic", there, *more) as (_, base),
    ):
        words = shlex.split(last.replace(f"http://{PAGES}", base))
        named = [one for one in words if "_BASE_URL=" in one]
        typing = Typing(tmp_path, program, dict(one.split("=", 1) for one in named))
        flags = words[len(named) + 1 :]
        if program is CODEX:
            await typing.types(["login", "--with-api-key"], "none")
        for at, said in enumerate(told):
            begun = program.goes_on if at else program.begun
            await typing.types([*begun, *flags, said])
        sessions = (await home.client.sessions.list(agent_id="proxy")).sessions
        assert sum(one.message_count > 2 for one in sessions) == 1, "one conversation, one session"
        sent = [json.dumps(one.json) for one in upstream.seen if one.body]
    assert "trust=untrusted" in sent[-1], "a summary stands in the request"
    assert told[0] not in sent[-1], "in place of what was said"
    assert told[-1] in sent[-1]
