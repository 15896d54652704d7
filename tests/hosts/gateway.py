"""OpenClaw itself: its gateway, the service behind it and its provider. It is where
CONTEXTENGINE_OPENCLAW names a folder that has OpenClaw and its Node."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import zstandard
from starlette.responses import JSONResponse, Response

from contextengine import AsyncClient, ContextEngineError, SessionRef
from contextengine import types as t
from contextengine.messages import text_of
from tests.acceptance.shell import ROOT
from tests.clients.mortal import Mortal
from tests.hosts.providers import Answer, Json
from tests.hosts.stage import soon
from tests.hosts.upstream import Upstream, serving
from tests.hosts.walk import commands
from tests.hosts.wire import Wire
from tests.soak.killing import free_port

INSTALLED = os.environ.get("CONTEXTENGINE_OPENCLAW", "")
PLUGIN = Path(__file__).parents[2] / "integrations" / "openclaw"
TURN_S = 300.0
START_S = 300.0
KEY, TOKEN = "agent:main:talk", "a-token-of-the-gateway"
INTERNAL = "OPENCLAW_INTERNAL_CONTEXT"
"""What OpenClaw adds behind each request, which belongs to no turn."""


def words_of(row: Json) -> str:
    content = row.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


def asked_of(given: Json) -> list[Json]:
    """The messages of a request, without the system prompt and what OpenClaw adds behind."""
    rows = [row for row in given["messages"] if row["role"] not in ("system", "developer")]
    return [row for row in rows if INTERNAL not in words_of(row)]


Row = tuple[str, str, list[Any]]
"""A message as it is compared: its id, who says it, and what is in it."""


def row_of_entry(entry: Json) -> Row:
    """What is in an entry of OpenClaw's transcript."""
    message = entry["message"]
    content = message["content"]
    pieces = [{"type": "text", "text": content}] if isinstance(content, str) else content
    said: list[Any] = [
        ("call", one["id"], one["name"], one["arguments"])
        if one["type"] == "toolCall"
        else one["text"]
        for one in pieces
    ]
    if message["role"] == "toolResult":
        about = (message["toolCallId"], bool(message.get("isError")))
        return entry["id"], "tool", [("result", *about, said, message.get("details"))]
    return entry["id"], message["role"], said


def row_of_stored(message: t.Message) -> Row:
    """The same of a message that is stored."""
    said: list[Any] = []
    for part in message.parts:
        match part.WhichOneof("kind"):
            case "text":
                said.append(part.text.text)
            case "tool_call":
                call = part.tool_call
                said.append(("call", call.call_id, call.name, json.loads(call.arguments_json)))
            case "tool_result":
                result = part.tool_result
                details = json.loads(result.details_json) if result.details_json else None
                texts = [one.text.text for one in result.parts]
                said.append(("result", result.call_id, result.is_error, texts, details))
    role = t.Role.Name(message.role).removeprefix("ROLE_").lower()
    return message.id, role, said


def entries_of(file: Path, key: str) -> Iterator[Json]:
    """The entries of the transcript of a key, in the order in which OpenClaw wrote them."""
    with sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True) as database:
        found = database.execute(
            "SELECT event_json, event_zstd, event_utf8_bytes FROM transcript_events"
            " JOIN session_windows USING (session_id) WHERE session_key = ? ORDER BY seq",
            (key,),
        )
        for text, packed, size in found:
            plain = zstandard.ZstdDecompressor().decompress(packed, size) if packed else text
            entry: Json = json.loads(plain)
            yield entry


class Mock:
    """What the model says: two calls at once, one of which fails, where it is asked for tools; that
    the prompt is too long, or nothing at all, as often as a test says."""

    def __init__(self) -> None:
        self.too_long = self.broken = 0

    def __call__(self, number: int, given: Json) -> Answer | Response:
        last = asked_of(given)[-1]
        if self.too_long:
            self.too_long -= 1
            error = {"code": "context_length_exceeded", "type": "invalid_request_error"}
            said = "This model's maximum context length is 60000 tokens, but 61000 were sent."
            return JSONResponse({"error": {"message": said, **error}}, 400)
        if self.broken:
            self.broken -= 1
            return JSONResponse({"error": {"message": "no", "type": "invalid_request_error"}}, 400)
        if last["role"] == "user" and "TOOLS" in words_of(last):
            paths = [str(PLUGIN / "package.json"), f"/nowhere/{number}"]
            return Answer(calls=[{"path": path} for path in paths], tool="read")
        return Answer(f"Answer {number}: {'well ' * 900}")


class OpenClaw:
    """A gateway, the service behind it and its provider."""

    def __init__(
        self,
        path: Path,
        service: Mortal,
        address: str,
        mock: Mock,
        upstream: Upstream,
        provider: str,
        plugin: bool = True,
    ) -> None:
        """address: where it finds the service. plugin: whether it is set up with the plugin from
        the beginning."""
        self.mock, self.upstream = mock, upstream
        self.service, self._address = service, address
        self._path = path
        self._port = free_port()
        self._process: asyncio.subprocess.Process | None = None
        (path / "state").mkdir()
        (path / "home").mkdir()
        self._config = path / "state" / "openclaw.json"
        settings = self._settings(provider)
        if not plugin:
            del settings["plugins"], settings["tools"]["alsoAllow"]
        self._config.write_text(json.dumps(settings))

    def _settings(self, provider: str) -> Json:
        model = {
            "id": "mock-1",
            "name": "mock-1",
            "reasoning": False,
            "input": ["text"],
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
            "contextWindow": 60_000,
            "maxTokens": 4_096,
        }
        mocked = {
            "baseUrl": f"{provider}/v1",
            "apiKey": "none",
            "api": "openai-completions",
            "models": [model],
        }
        plugin = {"enabled": True, "config": {"address": self._address}}
        return {
            "gateway": {
                "mode": "local",
                "port": self._port,
                "bind": "loopback",
                "auth": {"mode": "token", "token": TOKEN},
                "http": {"endpoints": {"chatCompletions": {"enabled": True}}},
            },
            "models": {"mode": "replace", "providers": {"mock": mocked}},
            "agents": {
                "defaults": {
                    "model": {"primary": "mock/mock-1"},
                    "workspace": str(self._path / "workspace"),
                }
            },
            "tools": {"profile": "coding", "alsoAllow": ["ctx_search", "ctx_inspect"]},
            "plugins": {
                "load": {"paths": [str(PLUGIN)]},
                "allow": ["contextengine", "memory-core"],
                "slots": {"contextEngine": "contextengine"},
                "entries": {"contextengine": plugin},
            },
        }

    @property
    def _environment(self) -> dict[str, str]:
        node = Path(INSTALLED) / "node_modules" / "node" / "bin"
        return {
            "PATH": f"{node}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self._path / "home"),
            "OPENCLAW_STATE_DIR": str(self._config.parent),
            "OPENCLAW_CONFIG_PATH": str(self._config),
            "OPENCLAW_GATEWAY_TOKEN": TOKEN,
            "CONTEXTENGINE_ADDRESS": self._address,
        }

    async def set_up(self) -> None:
        """Types what docs/hosts.md says, up to where the gateway is started."""
        typed = [shlex.split(line) for line in commands()["OpenClaw"]]
        for words in [one for one in typed if one[:2] != ["openclaw", "gateway"]]:
            if words[0] == "openclaw":
                pipe = asyncio.subprocess.PIPE
                process = await self._run(*words[1:], output=pipe, where=ROOT)
                out, _ = await process.communicate()
                assert process.returncode == 0, out.decode()
                assert "blocked" not in out.decode(), out.decode()

    async def _run(
        self, *words: str, output: Any, where: Path | None = None
    ) -> asyncio.subprocess.Process:
        program = Path(INSTALLED) / "node_modules" / "openclaw" / "openclaw.mjs"
        return await asyncio.create_subprocess_exec(
            "node",
            str(program),
            *words,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            env=self._environment,
            cwd=where or self._path,
            start_new_session=True,
        )

    async def start(self) -> None:
        """Starts the gateway, and waits until it serves."""
        with (self._path / "gateway.log").open("ab") as log:
            self._process = await self._run("gateway", "run", output=log)
        async with asyncio.timeout(START_S), httpx2.AsyncClient() as client:
            while True:
                assert self._process.returncode is None, self.log[-3_000:]
                with suppress(httpx2.HTTPError):
                    if (await client.get(f"http://127.0.0.1:{self._port}/healthz")).is_success:
                        return
                await asyncio.sleep(0.2)

    async def end(self) -> None:
        """Ends the gateway, and what it started."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()

    @property
    def log(self) -> str:
        return (self._path / "gateway.log").read_text(errors="replace")

    async def say(self, words: str, *, fails: bool = False, key: str = KEY) -> str:
        """One turn: what came back."""
        async with httpx2.AsyncClient(timeout=TURN_S) as client:
            reply = await client.post(
                f"http://127.0.0.1:{self._port}/v1/chat/completions",
                headers={"authorization": f"Bearer {TOKEN}", "x-openclaw-session-key": key},
                json={"model": "openclaw", "messages": [{"role": "user", "content": words}]},
            )
        if fails:
            return reply.text
        assert reply.is_success, reply.text
        said: str = reply.json()["choices"][0]["message"]["content"]
        return said

    async def call(self, method: str, **params: Any) -> Json:
        """A call of the gateway by its command line."""
        words = ("gateway", "call", method, "--json", "--params", json.dumps(params))
        process = await self._run(*words, output=asyncio.subprocess.PIPE)
        async with asyncio.timeout(TURN_S):
            out, _ = await process.communicate()
        text = out.decode()
        found: Json = json.loads(text[text.index("{") :])
        return found

    @property
    def asked(self) -> list[list[Json]]:
        """The messages of each request."""
        bodies = [one.json for one in self.upstream.seen if one.body]
        return [asked_of(body) for body in bodies if "messages" in body]

    async def stored(self, at: int = 0) -> list[t.ExportResponse.ExportedMessage]:
        """What is in the view of the session that began as the `at`-th, in order."""
        async with AsyncClient(self.service.address) as client:
            rows = client.sessions.export(await self._ref(client, at))
            found = [row.message async for row in rows if row.HasField("message")]
        return [row for row in found if not row.retired_revision]

    def transcript(self) -> list[Row]:
        """What OpenClaw wrote down of a conversation that went back behind nothing, in order."""
        (file,) = (self._path / "state").rglob("openclaw-agent.sqlite")
        return [row_of_entry(one) for one in entries_of(file, KEY) if one["type"] == "message"]

    async def agrees(self) -> None:
        """Waits until the service holds OpenClaw's transcript, row for row, and nothing else."""

        async def same() -> bool:
            return await self._rows() == self.transcript()

        try:
            await soon(same)
        except TimeoutError:
            assert await self._rows() == self.transcript()

    async def _rows(self) -> list[Row]:
        return [row_of_stored(row.message) for row in await self.stored()]

    async def rested(self) -> None:
        """Waits until the service owes the session nothing."""

        async def done() -> bool:
            return not (await self._status()).jobs

        await soon(done)

    async def compactions(self) -> int:
        """How often the session was compacted."""
        return (await self._status()).compaction_count

    async def _status(self) -> t.GetStatusResponse:
        async with AsyncClient(self.service.address) as client:
            return await client.get_status(await self._ref(client, 0))

    async def _ref(self, client: AsyncClient, at: int) -> SessionRef:
        listed = (await client.sessions.list(agent_id="main")).sessions
        one = sorted(listed, key=lambda one: one.create_time.ToNanoseconds())[at]
        return SessionRef(agent_id="main", session_id=one.session_id)

    async def said(self, at: int = 0) -> list[str]:
        """The first words of what users and the model said, as it is stored."""
        rows = [row.message for row in await self.stored(at)]
        texts = [text_of(one) for one in rows if one.role in (t.ROLE_USER, t.ROLE_ASSISTANT)]
        return [text.split(":")[0] for text in texts if text]


@asynccontextmanager
async def openclaw(
    path: Path, plugin: bool = True, way: Wire | None = None
) -> AsyncIterator[OpenClaw]:
    """way: what stands before the service and counts its calls. None: nothing does."""
    mock = Mock()
    upstream, service = Upstream(mock), Mortal(path)
    async with serving(upstream.application) as provider:
        address = service.address
        if way is not None:
            way.target, address = address, way.address
        host = OpenClaw(path, service, address, mock, upstream, provider, plugin)
        service.start()
        try:
            await soon(lambda: serves(service.address))
            if not plugin:
                await host.set_up()
            await host.start()
            yield host
        finally:
            await host.end()
            service.end()


async def serves(address: str) -> bool:
    async with AsyncClient(address, retry_for=0) as client:
        try:
            await client.engines.list(timeout=5)
        except ContextEngineError:
            return False
    return True


def summarized(rows: list[Json]) -> bool:
    return any("trust=untrusted" in words_of(row) for row in rows)
