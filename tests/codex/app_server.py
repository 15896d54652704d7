"""A client of `codex app-server`: JSON lines over its standard streams, and the few calls that
projections need."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contextengine import types as t

Json = dict[str, Any]

HERE = Path(__file__).parent
WAIT_S = 30.0
"""A turn against the mock takes about half a second on an idle machine."""

QUIET: Json = {
    "include_permissions_instructions": False,
    "include_environment_context": False,
    "include_collaboration_mode_instructions": False,
    "include_apps_instructions": False,
    "skills.include_instructions": False,
    "project_doc_max_bytes": 0,
    "web_search": "disabled",
}
"""Switches off what varies from day to day in Codex's own part of a request."""

CONFIG = """\
model = "mock-model"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "read-only"
check_for_update_on_startup = false
{more}
[model_providers.mock]
name = "mock"
base_url = "{url}"
wire_api = "responses"
env_key = "MOCK_KEY"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false
[analytics]
enabled = false
[feedback]
enabled = false
[history]
persistence = "none"
[features]
plugins = false
apps = false
"""


def binary() -> Path | None:
    """The real Codex: named by CODEX_BINARY, or as `make test-codex` installs it. None: it is not
    here."""
    if named := os.environ.get("CODEX_BINARY"):
        return Path(named)
    found = sorted(HERE.glob("node_modules/@openai/codex-*/vendor/*/bin/codex"))
    return found[0] if found else None


def configure(home: Path, url: str, more: str) -> None:
    """Writes the configuration of a Codex whose only provider is the mock."""
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(CONFIG.format(url=url, more=more), encoding="utf-8")


class AppServer:
    """A running app server."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._next = 0
        self._notices: list[Json] = []

    @classmethod
    async def start(cls, home: Path, url: str, more: str = "") -> AppServer:
        """Starts Codex with a home of its own and the mock as its only provider. `more`: lines of
        its configuration."""
        command = binary()
        assert command is not None
        configure(home, url, more)
        process = await asyncio.create_subprocess_exec(
            command,
            "app-server",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=home,
            limit=64 * 1024 * 1024,
            env={
                "CODEX_HOME": str(home),
                "MOCK_KEY": "none",
                "PATH": os.environ["PATH"],
                "HOME": str(home),
            },
        )
        server = cls(process)
        await server.call(
            "initialize", clientInfo={"name": "contextengine", "title": "t", "version": "1"}
        )
        server._send({"method": "initialized"})
        return server

    async def stop(self) -> None:
        """Ends it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), 5)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    async def call(self, method: str, **params: Any) -> Json:
        """A request's result. Raises AssertionError with what Codex says is wrong."""
        self._next += 1
        self._send({"id": self._next, "method": method, "params": params})
        while True:
            line = await self._read()
            if line.get("id") == self._next and "method" not in line:
                assert "error" not in line, line["error"]
                return dict(line["result"])
            self._notices.append(line)

    async def thread(self, instructions: str = "", **more: Any) -> str:
        """A new thread's id."""
        given = {"developerInstructions": instructions} if instructions else {}
        reply = await self.call("thread/start", cwd=str(HERE), config=QUIET, **given, **more)
        return str(reply["thread"]["id"])

    async def turn(self, thread: str, given: list[Json]) -> Json:
        """A turn, to its end: the notice that says so."""
        self.forget()
        await self.call("turn/start", threadId=thread, input=given)
        return await self.ended()

    async def compact(self, thread: str) -> Json:
        """Has Codex compact the thread, to its end."""
        self.forget()
        await self.call("thread/compact/start", threadId=thread)
        return await self.ended()

    def forget(self) -> None:
        """What Codex told until now."""
        self._notices.clear()

    async def ended(self, ways: Sequence[str] = ("completed",)) -> Json:
        """Waits for the end of the turn that runs, in one of these ways."""
        while True:
            line = self._notices.pop(0) if self._notices else await self._read()
            if line.get("method") == "turn/completed":
                assert line["params"]["turn"]["status"] in ways, line
                return dict(line["params"])

    def _send(self, message: Json) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def _read(self) -> Json:
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), WAIT_S)
        assert line, "codex ended"
        return dict(json.loads(line))


class Harness:
    """A harness of the kind that the projection's answers are for: it does what they say, and keeps
    the binding."""

    def __init__(self, server: AppServer) -> None:
        self.server = server
        self.binding: t.ProjectionBinding | None = None

    async def run(self, projection: t.ProjectResponse) -> Json:
        """One turn as the projection says."""
        binding = t.ProjectionBinding()
        binding.CopyFrom(projection.binding)
        if projection.action in (t.PROJECTION_ACTION_START, t.PROJECTION_ACTION_ROTATE):
            binding.thread_id = await self.server.thread(projection.instructions)
        if projection.inject_items_json:
            items = [json.loads(item) for item in projection.inject_items_json]
            await self.server.call("thread/inject_items", threadId=binding.thread_id, items=items)
        self.binding = binding
        given = [{"type": "text", "text": projection.prompt}]
        if projection.turn_input_json:
            given = json.loads(projection.turn_input_json)
        return await self.server.turn(binding.thread_id, given)

    def stored(self, reply: t.AfterTurnResponse) -> None:
        """What AfterTurn stored is in the thread already."""
        assert self.binding is not None
        self.binding.last_sequence = max(stored.sequence for stored in reply.stored)
