"""Claude Code itself, installed into tests/hosts/claude-code by npm, with the plugin of
integrations/claude-code."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from contextengine.types import SessionRef
from tests.hosts.providers import Answer

from .brain import Brain
from .recorded import RecordedHost

INSTALLED = Path(__file__).parents[1] / "claude-code" / "node_modules"
TURN_S = 60.0
SEARCH = "mcp__plugin_contextengine_contextengine__ctx_search"
OWN = ("<system-reminder>", "<command-name>", "<local-command-")
"""How texts begin that Claude Code adds to what is said."""


class TurnFailed(Exception):
    """Claude Code says that a turn failed. The text is what its user reads."""


class ClaudeCodeHost(RecordedHost):
    """One conversation of `claude`, a process through its turns."""

    name, title = "claude-code", "Claude Code"
    summarizing = "CRITICAL: Respond with TEXT ONLY."

    def __init__(self, address: str, brain: Brain) -> None:
        super().__init__(address, brain)
        self._ends: list[str] = []
        """The entry that each turn ended with."""

    async def open(self) -> None:
        await self._open(*(["--resume", self.session] if self.session else []))

    async def _open(self, *more: str) -> None:
        words = ["-p", "--input-format", "stream-json", "--output-format", "stream-json"]
        allowed = ["--allowedTools", "Read", SEARCH]
        self._process = await self.begin(*words, "--verbose", *more, *allowed)

    async def stop(self) -> None:
        if self._process.returncode is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                await asyncio.wait_for(self._process.wait(), TURN_S)
            finally:
                if self._process.returncode is None:
                    self._process.kill()

    async def say(self, words: str) -> None:
        last = ""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        said = {"type": "user", "message": {"role": "user", "content": words}}
        self._process.stdin.write(json.dumps(said).encode() + b"\n")
        async with asyncio.timeout(TURN_S):
            while line := await self._process.stdout.readline():
                told: dict[str, Any] = json.loads(line)
                self.session = told.get("session_id", self.session)
                if told["type"] == "assistant":
                    last = told["uuid"]
                if told["type"] == "result":
                    if told["is_error"]:
                        raise TurnFailed(told.get("result"))
                    self._ends.append(last)
                    return
        raise TurnFailed("Claude Code ended")

    async def compact(self) -> None:
        await self.say("/compact")
        self._ends.pop()

    async def undo(self) -> None:
        self._ends.pop()
        await self.stop()
        await self._open("--resume", self.session, "--resume-session-at", self._ends[-1])

    async def fork(self) -> None:
        await self.stop()
        await self._open("--resume", self.session, "--fork-session")

    def call(self, of: str) -> tuple[str, Any]:
        return "Read", {"file_path": str(self.work / of)}

    def search(self, wanted: str) -> Answer:
        return Answer(calls=[{"query": wanted}], tool=SEARCH)

    def own(self, text: str) -> bool:
        return text.startswith(OWN)

    @property
    def ref(self) -> SessionRef:
        return SessionRef(agent_id="claude-code", session_id=self.session)

    def binary(self) -> Path | None:
        return next(INSTALLED.glob("@anthropic-ai/claude-code-*/claude"), None)

    def settings(self) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": self.provider,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
