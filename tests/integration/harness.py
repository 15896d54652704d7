"""A running service that a test can restart, and the ways to call it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest

from contextengine import AsyncClient, ContextEngineError
from contextengine import types as t
from contextengine.answers import Replies, answer_of
from contextengine.errors import from_rpc_error
from contextengine_proto.v1 import context_engine_pb2_grpc, engines_pb2_grpc, sessions_pb2_grpc
from contextengine_server.api.pipeline.auth import hash_token
from contextengine_server.api.pipeline.contract import Rpc
from contextengine_server.app import App, running
from contextengine_server.config.load import load_settings
from contextengine_server.engines.registration import Registration
from contextengine_server.plugins.engines import installed_engines
from tests import databases, postgres

LARGE = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]

ALICE, BOB, RUNTIME = "token-of-alice", "token-of-bob", "token-of-a-runtime"
"""Tokens of two tenants' operators, and of a runtime of the first tenant."""

PATIENCE_S = 60
"""How long a test waits for what must come: the machine may stand still for a while."""

TOKENS = [
    {"sha256": hash_token(ALICE), "tenant": "alice", "role": "operator"},
    {"sha256": hash_token(BOB), "tenant": "bob", "role": "operator"},
    {"sha256": hash_token(RUNTIME), "tenant": "alice", "role": "runtime"},
]
"""What `auth.tokens` is set to for these tokens: `House(path, **{"auth.tokens": TOKENS})`."""


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, start_ms: int = 1_700_000_000_000) -> None:
        self.ms = start_ms

    def __call__(self) -> int:
        return self.ms

    def advance(self, seconds: float) -> None:
        self.ms += round(seconds * 1000)


class House:
    """A server on loopback over one database file, through as many lives as a test likes.

    `settings` are dotted paths, as flags are: `House(path, **{"sessions.idle_end": "1s"})`.
    `engines` are there besides what is installed. `client`, `stub` and `channel` belong to
    the life that runs now.
    """

    def __init__(
        self,
        directory: Path,
        *,
        clock: Any = None,
        engines: Sequence[Registration] = (),
        token: str = "",
        **settings: Any,
    ) -> None:
        self._database = directory / "contextengine.db"
        self.engines = list(engines)
        self.settings = settings
        self._clock = clock
        self._token = token
        self._life = contextlib.AsyncExitStack()
        self.app: App
        self.client: AsyncClient
        self.channel: grpc.aio.Channel

    @property
    def database(self) -> Path:
        """The SQLite file. A test that looks into it has nothing to say of another store."""
        if postgres.INSISTS:
            pytest.skip("it looks into SQLite's file")
        return self._database

    async def start(self) -> None:
        """Begins a life."""
        url = self.settings.get("store.url") or databases.url(self._database)
        flags = {"server.address": "127.0.0.1:0", **self.settings, "store.url": url}
        plugins = flags.get("plugins.directory")
        engines = installed_engines(Path(plugins) if plugins else None)
        for registration in self.engines:
            engines = engines.tried(registration)
        settings = load_settings(None, flags, {}, engines)
        self.app = await self._life.enter_async_context(running(settings, clock_ms=self._clock))
        self.channel = await self.open_channel()
        self.client = self.client_of(self._token)

    async def stop(self) -> None:
        """Ends a life in good order."""
        await self._life.aclose()
        self._life = contextlib.AsyncExitStack()

    async def restart(self, **settings: Any) -> None:
        """Another life over the same database, with these settings changed."""
        await self.stop()
        self.settings |= settings
        await self.start()

    async def working(self, calls: int) -> None:
        """Waits until the service works on so many calls."""
        async with asyncio.timeout(PATIENCE_S):
            while self.app.metrics.snapshot()["contextengine.rpc.in_flight"] != calls:
                await asyncio.sleep(0.01)

    def forget(self) -> None:
        """Evicts every session that is not in use from the cache."""
        warm = self.app.core.cache
        capacity, warm.capacity = warm.capacity, 0
        warm.shrink()
        warm.capacity = capacity

    async def open_channel(self) -> grpc.aio.Channel:
        """A bare channel, which neither sets ids nor sends again."""
        return await self._life.enter_async_context(
            grpc.aio.insecure_channel(self.app.address, [*LARGE, ("grpc.enable_retries", 0)])
        )

    def client_of(self, token: str = "") -> AsyncClient:
        """A client with its own connection and credentials; closed with the server's life."""
        client = AsyncClient(self.app.address, token=token)
        self._life.push_async_callback(client.close)
        return client

    @property
    def stub(self) -> context_engine_pb2_grpc.ContextEngineAsyncStub:
        """ContextEngine without a client's help: no ids are set."""
        return context_engine_pb2_grpc.ContextEngineStub(self.channel)

    @property
    def sessions(self) -> sessions_pb2_grpc.SessionsAsyncStub:
        """Sessions without a client's help."""
        return sessions_pb2_grpc.SessionsStub(self.channel)

    @property
    def engine_stub(self) -> engines_pb2_grpc.EnginesAsyncStub:
        """Engines without a client's help."""
        return engines_pb2_grpc.EnginesStub(self.channel)

    async def raw(
        self,
        rpc: Rpc,
        *requests: bytes,
        metadata: tuple[tuple[str, str], ...] = (),
        timeout: float = PATIENCE_S,
    ) -> Answer:
        """Any rpc with any bytes, and what came of it."""
        many_in, many_out = (
            ("unary", "stream")[rpc.streams_in],
            ("unary", "stream")[rpc.streams_out],
        )
        invoke: Any = getattr(self.channel, f"{many_in}_{many_out}")(f"/{rpc.method}")
        request = iter(requests) if rpc.streams_in else requests[0]
        call = invoke(request, metadata=metadata, timeout=timeout)
        try:
            if rpc.streams_out:
                replies = [reply async for reply in Replies(call)]
            else:
                replies = [await answer_of(call)]
        except grpc.RpcError as error:
            return Answer(error.code().name, [], from_rpc_error(error))
        except asyncio.CancelledError:
            # One that is cancelled while it begins would stand open: grpc.aio ends the task alone.
            call.cancel()
            raise
        return Answer("OK", replies)

    async def rows(
        self, session: t.SessionRef, client: AsyncClient | None = None, **more: Any
    ) -> list[t.ExportResponse.ExportedMessage]:
        """The session's messages as Export answers them."""
        return (await self.export(session, client, **more)).messages

    async def export(
        self, session: t.SessionRef, client: AsyncClient | None = None, **more: Any
    ) -> Exported:
        """All of Export's stream."""
        found = Exported(t.SessionInfo(), [], [])
        async for reply in (client or self.client).sessions.export(session, **more):
            match reply.WhichOneof("kind"):
                case "session":
                    found.session = reply.session
                case "message":
                    found.messages.append(reply.message)
                case "summary":
                    found.summaries.append(reply.summary)
        return found


@dataclass
class Exported:
    """A session as it was exported."""

    session: t.SessionInfo
    messages: list[t.ExportResponse.ExportedMessage]
    summaries: list[t.ExportResponse.ExportedSummary]


@dataclass
class Answer:
    """What came of a call: the name of its status, the replies, and the error where it failed."""

    code: str
    replies: list[bytes]
    error: ContextEngineError | None = None


@asynccontextmanager
async def house(directory: Path, **options: Any) -> AsyncIterator[House]:
    """A House that has started; ended when left."""
    made = House(directory, **options)
    try:
        await made.start()
        yield made
    finally:
        await made.stop()


def ref(session: str = "s1", *, agent: str = "agent", key: str = "") -> t.SessionRef:
    """Names a session."""
    return t.SessionRef(agent_id=agent, session_id=session, session_key=key)


def budget(message_tokens: int) -> t.Budget:
    """A final budget."""
    return t.Budget(message_tokens=message_tokens)


def texts(items: Iterable[Any]) -> list[str]:
    """The texts of items, messages or exported rows, in order: of tool results too, calls as
    `call:NAME`."""
    return [_text(getattr(item, "message", item)) for item in items]


def _text(message: t.Message) -> str:
    said = []
    for part in message.parts:
        kind = part.WhichOneof("kind")
        if kind == "tool_call":
            said.append(f"call:{part.tool_call.name}")
        elif kind == "tool_result":
            said += [inner.text.text for inner in part.tool_result.parts]
        else:
            said.append(part.text.text)
    return "\n".join(said)


def problem(error: ContextEngineError) -> tuple[str, str, list[str]]:
    """What an error says for machines: its status, its reason and the fields it names."""
    return error.code.name, error.reason, [violation.field for violation in error.violations]
