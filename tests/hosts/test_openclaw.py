"""OpenClaw itself, with the service as its context engine: judged by what its provider was asked
and by what is stored. Runs where CONTEXTENGINE_OPENCLAW names a folder that has OpenClaw and its
Node (`make test-openclaw`)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.responses import JSONResponse, Response

from contextengine import AsyncClient, ContextEngineError, SessionRef
from contextengine import types as t
from contextengine.messages import text_of
from tests.clients.mortal import Mortal
from tests.hosts.stage import soon
from tests.hosts.upstream import Answer, Json, Upstream, serving
from tests.soak.killing import free_port

INSTALLED = os.environ.get("CONTEXTENGINE_OPENCLAW", "")
PLUGIN = Path(__file__).parents[2] / "integrations" / "openclaw"
TURN_S = 300.0
START_S = 300.0
KEY, TOKEN = "agent:main:talk", "a-token-of-the-gateway"
INTERNAL = "OPENCLAW_INTERNAL_CONTEXT"
"""What OpenClaw adds behind each request, which belongs to no turn."""

pytestmark = [
    pytest.mark.skipif(not INSTALLED, reason="CONTEXTENGINE_OPENCLAW names no folder"),
    pytest.mark.timeout(900),
]


def words_of(row: Json) -> str:
    content = row.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


def asked_of(given: Json) -> list[Json]:
    """The messages of a request, without the system prompt and what OpenClaw adds behind."""
    rows = [row for row in given["messages"] if row["role"] not in ("system", "developer")]
    return [row for row in rows if INTERNAL not in words_of(row)]


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

    def __init__(self, path: Path, mock: Mock, upstream: Upstream, provider: str) -> None:
        self.mock, self.upstream = mock, upstream
        self.service = Mortal(path)
        self._path = path
        self._port = free_port()
        self._process: asyncio.subprocess.Process | None = None
        (path / "state").mkdir()
        (path / "home").mkdir()
        self._config = path / "state" / "openclaw.json"
        self._config.write_text(json.dumps(self._settings(provider)))

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
        plugin = {"enabled": True, "config": {"address": self.service.address}}
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
        }

    async def _run(self, *words: str, output: Any) -> asyncio.subprocess.Process:
        program = Path(INSTALLED) / "node_modules" / "openclaw" / "openclaw.mjs"
        return await asyncio.create_subprocess_exec(
            "node",
            str(program),
            *words,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            env=self._environment,
            cwd=self._path,
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
            listed = (await client.sessions.list(agent_id="main")).sessions
            one = sorted(listed, key=lambda one: one.create_time.ToNanoseconds())[at]
            ref = SessionRef(agent_id="main", session_id=one.session_id)
            async with client.sessions.export(ref) as rows:
                found = [row.message async for row in rows if row.HasField("message")]
        return [row for row in found if not row.retired_revision]

    async def said(self, at: int = 0) -> list[str]:
        """The first words of what users and the model said, as it is stored."""
        rows = [row.message for row in await self.stored(at)]
        texts = [text_of(one) for one in rows if one.role in (t.ROLE_USER, t.ROLE_ASSISTANT)]
        return [text.split(":")[0] for text in texts if text]


@asynccontextmanager
async def openclaw(path: Path) -> AsyncIterator[OpenClaw]:
    mock = Mock()
    upstream = Upstream(mock)
    async with serving(upstream.application) as provider:
        host = OpenClaw(path, mock, upstream, provider)
        host.service.start()
        try:
            await soon(lambda: serves(host.service.address))
            await host.start()
            yield host
        finally:
            await host.end()
            host.service.end()


async def serves(address: str) -> bool:
    async with AsyncClient(address, retry_for=0) as client:
        try:
            await client.engines.list(timeout=5)
        except ContextEngineError:
            return False
    return True


def summarized(rows: list[Json]) -> bool:
    return any("trust=untrusted" in words_of(row) for row in rows)


async def test_all_that_is_said_is_stored_and_what_is_sent_fits(tmp_path: Path) -> None:
    async with openclaw(tmp_path) as host:
        asked: list[str] = []
        for at in range(24):
            words = f"question {at}{' TOOLS' if at % 4 == 1 else ''}"
            asked.append(words)
            await host.say(f"{words}: {'and what of this ' * 250}")
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
        # What was sent is the beginning of what is sent next, unless summaries take its place.
        same = [
            after[: len(before)] == before
            for before, after in zip(host.asked, host.asked[1:], strict=False)
        ]
        print(f"{sum(same)} of {len(same)} requests begin with the one before")
        assert sum(same) >= len(same) - 6

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
        assert told["ok"] is True
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


async def test_a_service_that_hangs_loses_no_turn_and_the_same_words_are_two_turns(
    tmp_path: Path,
) -> None:
    async with openclaw(tmp_path) as host:
        await host.say("ALPHA")
        host.service.hang(True)
        took: list[float] = []
        for words in ("go on", "go on"):
            began = time.monotonic()
            await host.say(words)
            took.append(time.monotonic() - began)
        shown = [words_of(row) for row in host.asked[-1]]
        assert sum(words.endswith("go on") for words in shown) == 2
        host.service.hang(False)
        await soon(lambda: serves(host.service.address))
        await host.say("go on")
        await host.say("BRAVO")
        said = [one for one in await host.said() if not one.startswith("Answer")]
        assert said == ["ALPHA", "go on", "go on", "go on", "BRAVO"]
        print(f"turns with a service that hangs took {took[0]:.2f} s and {took[1]:.2f} s")


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
