"""Codex itself, installed into tests/codex by npm, with the plugin of integrations/codex, by the
app server that its own screen talks to."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from contextengine.types import SessionRef
from contextengine_mcp.hooks import NOTE
from tests.codex.app_server import QUIET, AppServer, binary
from tests.hosts.providers import Answer, Json

from .brain import Brain
from .recorded import RecordedHost

CONFIG = """\
model = "mock-model"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[model_providers.mock]
name = "mock"
base_url = "{provider}/v1"
wire_api = "responses"
env_key = "MOCK_KEY"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false
[analytics]
enabled = false
[feedback]
enabled = false
[features]
apps = false
"""

OWN = ("<environment_context>", "<skills_instructions>")
"""How texts begin that Codex adds to a thread, though QUIET asks for none: where it is forked."""


class CodexHost(RecordedHost):
    """One thread, and forks of it."""

    name, title = "codex", "Codex"
    tries_again = False
    summarizing = "You are performing a CONTEXT CHECKPOINT COMPACTION."

    def __init__(self, address: str, brain: Brain) -> None:
        super().__init__(address, brain)
        self._turns: list[str] = []

    async def install(self) -> None:
        (self.folder / "codex").mkdir()
        config = CONFIG.format(provider=self.provider)
        (self.folder / "codex" / "config.toml").write_text(config, encoding="utf-8")
        await super().install()

    async def open(self) -> None:
        self._process = await self.begin("app-server")
        self._server = AppServer(self._process)
        about = {"name": "contextengine", "title": "t", "version": "1"}
        await self._server.call("initialize", clientInfo=about)
        await self._trust()
        where = {"cwd": str(self.work), "config": QUIET}
        if self.session:
            await self._server.call("thread/resume", threadId=self.session, **where)
        else:
            self._enter(await self._server.call("thread/start", **where))

    async def _trust(self) -> None:
        """What its user says when Codex asks whether the hooks may run."""
        listed = await self._server.call("hooks/list", cwds=[str(self.work)])
        hooks = [hook for each in listed["data"] for hook in each["hooks"]]
        state = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in hooks}
        edit = {"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}
        await self._server.call("config/batchWrite", edits=[edit], reloadUserConfig=True)

    async def stop(self) -> None:
        await self._server.stop()

    async def say(self, words: str) -> None:
        given = [{"type": "text", "text": words}]
        ended = await self._server.turn(self.session, given)
        self._turns.append(ended["turn"]["id"])

    async def compact(self) -> None:
        await self._server.compact(self.session)

    async def undo(self) -> None:
        await self._server.call(
            "thread/revert", threadId=self.session, beforeTurnId=self._turns.pop()
        )

    async def fork(self) -> None:
        self._enter(await self._server.call("thread/fork", threadId=self.session))

    def _enter(self, reply: Any) -> None:
        self.session = reply["thread"]["id"]

    def call(self, of: str) -> tuple[str, Any]:
        return "exec_command", {"cmd": f"cat {shlex.quote(of)}"}

    def search(self, wanted: str) -> Answer:
        calls: list[Json] = [{"query": wanted}]
        return Answer(calls=calls, tool="ctx_search", namespace="mcp__contextengine")

    def own(self, text: str) -> bool:
        return text == NOTE or text.startswith(OWN)

    @property
    def ref(self) -> SessionRef:
        return SessionRef(agent_id="codex", session_id=self.session)

    def binary(self) -> Path | None:
        return binary()

    def settings(self) -> dict[str, str]:
        return {"CODEX_HOME": str(self.folder / "codex"), "MOCK_KEY": "none"}
