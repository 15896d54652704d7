"""Hermes itself: a process of it, the service behind it and its provider. It is where
CONTEXTENGINE_HERMES names a Python that has Hermes and contextengine-hermes."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.responses import JSONResponse, Response

from contextengine import AsyncClient, SessionRef
from contextengine import types as t
from contextengine.messages import text_of
from tests.clients.mortal import Mortal
from tests.hosts.frameworks.brain import FAILS
from tests.hosts.gate import Gate, gate
from tests.hosts.gateway import serves
from tests.hosts.providers import Answer, Json
from tests.hosts.stage import soon
from tests.hosts.upstream import Upstream, serving
from tests.integration.harness import ref

HERMES = os.environ.get("CONTEXTENGINE_HERMES", "")
AGENT = Path(__file__).parent / "hermes" / "told_agent.py"
TURN_S = 120.0


def refs(session: str) -> SessionRef:
    return ref(session, agent="hermes")


def lively(number: int, given: Json) -> Answer | Response:
    """Now and then calls a tool that there is not, twice at once: Hermes says so. What Hermes asks
    besides, to find out who serves, is not there."""
    if "messages" not in given:
        return Response(status_code=404)
    if str(given["messages"][-1]["content"]).endswith(FAILS):
        error = {"message": "no", "type": "invalid_request_error"}
        return JSONResponse({"error": error}, 400)
    if given["messages"][-1]["role"] == "user" and number % 5 == 1:
        return Answer(calls=[{"of": str(at)} for at in range(2)])
    return Answer(f"Answer {number}: {'well ' * 900}")


class Hermes:
    """A process of Hermes and what stands around it."""

    def __init__(
        self,
        service: Mortal,
        upstream: Upstream,
        way: Gate,
        begin: Callable[[], Awaitable[asyncio.subprocess.Process]],
    ) -> None:
        self.service, self.upstream, self.way, self._begin = service, upstream, way, begin
        self._process: asyncio.subprocess.Process | None = None
        self.too_long = 0
        """How many of the next requests the provider refuses for their length."""

    def answer(self, number: int, given: Json) -> Answer | Response:
        """What the provider answers."""
        if self.too_long and "messages" in given:
            self.too_long -= 1
            said = "This model's maximum context length is 64000 tokens, but 65000 were sent."
            error = {"code": "context_length_exceeded", "type": "invalid_request_error"}
            return JSONResponse({"error": {"message": said, **error}}, 400)
        return lively(number, given)

    async def start(self) -> None:
        """Begins, or begins again from what it wrote down."""
        self._process = await self._begin()

    async def kill(self) -> None:
        """kill -9."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def end(self) -> None:
        """Ends it and the service."""
        await self.kill()
        self.service.end()

    async def do(self, **asked: Any) -> dict[str, Any]:
        """Tells it something; its list afterwards."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        async with asyncio.timeout(TURN_S):
            line = await self._process.stdout.readline()
        assert line, "Hermes ended"
        told: dict[str, Any] = json.loads(line)
        return told

    async def sessions(self) -> list[str]:
        """The ids of its sessions, the oldest first."""
        async with AsyncClient(self.service.address, retry_for=0) as client:
            listed = (await client.sessions.list(agent_id="hermes")).sessions
        by_age = sorted(listed, key=lambda one: one.create_time.ToNanoseconds())
        return [one.session_id for one in by_age]

    async def _exported(self, session: str) -> list[t.ExportResponse]:
        async with AsyncClient(self.service.address, retry_for=0) as client:
            return [reply async for reply in client.sessions.export(refs(session))]

    async def summaries(self) -> set[str]:
        """The items of all summaries that are stored."""
        replies = [one for name in await self.sessions() for one in await self._exported(name)]
        found = [reply.summary for reply in replies if reply.HasField("summary")]
        return {f"ce:summary:{one.info.id}" for one in found}

    async def stored(self, *sessions: str) -> list[str]:
        """What is in the views of these sessions, or of all of them, the oldest first, without
        what one continues."""
        named = sessions or await self.sessions()
        replies = [one for name in named for one in await self._exported(name)]
        rows = [reply.message for reply in replies if reply.HasField("message")]
        own = [row for row in rows if not (row.retired_revision or row.stored_in_session_id)]
        return [text_of(row.message) for row in own]

    @property
    def asked(self) -> list[list[Json]]:
        """The messages of each request for an answer, without the system prompt."""
        bodies = [one.json for one in self.upstream.seen if one.body]
        requests = [body["messages"] for body in bodies if "messages" in body]
        return [[row for row in rows if row["role"] != "system"] for rows in requests]


@asynccontextmanager
async def hermes(path: Path, sessions: str = "kept") -> AsyncIterator[Hermes]:
    service = Mortal(path)
    upstream = Upstream(lively)
    async with gate(service.address) as way, serving(upstream.application) as there:
        known = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}

        async def begin() -> asyncio.subprocess.Process:
            return await asyncio.create_subprocess_exec(
                HERMES,
                str(AGENT),
                there.removeprefix("http://"),
                sessions,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=2**26,
                env={
                    **known,
                    "HERMES_HOME": str(path / "hermes"),
                    "CONTEXTENGINE_ADDRESS": way.address,
                },
            )

        host = Hermes(service, upstream, way, begin)
        upstream.answer = host.answer
        service.start()
        try:
            await soon(lambda: serves(service.address))
            await host.start()
            yield host
        finally:
            await host.end()


async def agrees(host: Hermes, told: dict[str, Any], *sessions: str) -> None:
    """Waits until the views hold what Hermes' list does, in its order and nothing else. sessions:
    whose views; none: those of all."""
    wanted = [text for _, text in told["rows"] if text]

    async def same() -> bool:
        return [text for text in await host.stored(*sessions) if text] == wanted

    try:
        await soon(same)
    except TimeoutError:
        assert [text for text in await host.stored(*sessions) if text] == wanted
