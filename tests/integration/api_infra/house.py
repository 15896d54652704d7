"""A server with small servicers behind the real pipeline, and channels to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import grpc
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2_grpc
from grpc_status import rpc_status

from contextengine_proto.v1 import (
    assemble_pb2,
    context_engine_pb2_grpc,
    engines_pb2,
    lifecycle_pb2,
    runtime_pb2,
    sessions_pb2,
    sessions_pb2_grpc,
)
from contextengine_server.api.pipeline import contract, unserved
from contextengine_server.api.pipeline.call import Call
from contextengine_server.api.pipeline.server import Server, ServerOptions, traffic_of
from contextengine_server.telemetry.metrics import Metrics
from contextengine_server.telemetry.tracing import Tracer

OPTIONS = ServerOptions(address="127.0.0.1:0")
LARGE = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
Behaviour = Callable[[Any, Call], Any]


@dataclass
class Seen:
    """What the servicers saw, for tests to wait on."""

    calls: list[Call] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    finished: asyncio.Event = field(default_factory=asyncio.Event)


class ContextEngineDouble:
    """Assemble does what a test asks of it; GetStatus answers at once."""

    def __init__(self, seen: Seen, behaviour: Behaviour) -> None:
        self._seen, self._behaviour = seen, behaviour

    async def assemble(self, request: assemble_pb2.AssembleRequest, call: Call) -> Any:
        self._seen.calls.append(call)
        self._seen.started.set()
        try:
            reply = await self._behaviour(request, call)
        except asyncio.CancelledError:
            self._seen.cancelled.set()
            raise
        self._seen.finished.set()
        return reply

    async def get_status(self, request: lifecycle_pb2.GetStatusRequest, call: Call) -> Any:
        return lifecycle_pb2.GetStatusResponse(session_id=request.session.session_id, revision=7)


class SessionsDouble:
    """Counts what is imported, exports three parts, and watches for ever."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen

    async def import_(self, requests: AsyncIterator[sessions_pb2.ImportRequest], call: Call) -> Any:
        self._seen.started.set()
        async for request in requests:
            self._seen.parts.append(request.ByteSize())
        self._seen.finished.set()
        return sessions_pb2.ImportResponse(stored_count=len(self._seen.parts))

    async def export(self, request: sessions_pb2.ExportRequest, call: Call) -> AsyncIterator[Any]:
        for _ in range(3):
            part = sessions_pb2.ExportResponse()
            part.message.sequence = 1
            yield part
        if request.session.session_id == "broken":
            raise RuntimeError("a text that must not be seen outside")

    async def watch(self, request: sessions_pb2.WatchRequest, call: Call) -> AsyncIterator[Any]:
        self._seen.started.set()
        try:
            yield sessions_pb2.WatchResponse()
            await asyncio.Event().wait()
        finally:
            self._seen.finished.set()


class EnginesDouble:
    async def assign(self, request: engines_pb2.AssignRequest, call: Call) -> Any:
        return engines_pb2.AssignResponse()


class RecallDouble:
    """Nothing of its own: every rpc answers an empty reply."""


async def nothing(request: Any, call: Call) -> Any:
    return assemble_pb2.AssembleResponse(revision=3)


class RuntimeDouble:
    """Answers each request with as many bytes of text, at once."""

    async def attach(
        self, requests: AsyncIterator[runtime_pb2.AttachRequest], call: Call
    ) -> AsyncIterator[Any]:
        async for request in requests:
            reply = runtime_pb2.AttachResponse()
            reply.welcome.stream_id = request.hello.host_id
            yield reply.SerializeToString()


def servicers(seen: Seen, behaviour: Behaviour = nothing) -> dict[str, object]:
    """A servicer for each service; what the doubles above lack answers an empty reply."""
    doubles: dict[str, object] = {
        "contextengine.v1.ContextEngine": ContextEngineDouble(seen, behaviour),
        "contextengine.v1.Recall": RecallDouble(),
        "contextengine.v1.Projection": RecallDouble(),
        "contextengine.v1.Sessions": SessionsDouble(seen),
        "contextengine.v1.Engines": EnginesDouble(),
        "contextengine.v1.Runtime": RuntimeDouble(),
    }

    async def empty(request: Any, call: Call) -> bytes:
        return b""

    for rpc in contract.rpcs():
        double = doubles.get(rpc.service)
        if double and rpc.method not in unserved.UNSERVED and not hasattr(double, rpc.attribute):
            setattr(double, rpc.attribute, empty)
    return doubles


@dataclass
class House:
    server: Server
    seen: Seen
    metrics: Metrics
    port: int
    channel: Any

    def __post_init__(self) -> None:
        self.engine: Any = context_engine_pb2_grpc.ContextEngineStub(self.channel)
        self.sessions: Any = sessions_pb2_grpc.SessionsStub(self.channel)
        self.health: Any = health_pb2_grpc.HealthStub(self.channel)

    async def raw(self, method: str, body: bytes = b"", **options: Any) -> bytes:
        """Calls a unary method with bytes, past any stub."""
        reply: bytes = await self.channel.unary_unary(f"/contextengine.v1.{method}")(
            body, **options
        )
        return reply


@asynccontextmanager
async def house(
    behaviour: Behaviour = nothing,
    *,
    options: ServerOptions = OPTIONS,
    tracer: Tracer | None = None,
    credentials: grpc.ChannelCredentials | None = None,
    host: str = "127.0.0.1",
    pressed: Callable[[], bool] = bool,
) -> AsyncIterator[House]:
    seen, metrics = Seen(), Metrics()
    served = servicers(seen, behaviour)
    traffic = traffic_of(options, metrics, pressed=pressed)
    server = Server(options, served, tracer=tracer or Tracer(), metrics=metrics, traffic=traffic)
    port = await server.start()
    target = options.address if options.address.startswith("unix:") else f"{host}:{port}"
    channel = (
        grpc.aio.insecure_channel(target, LARGE)
        if credentials is None
        else grpc.aio.secure_channel(target, credentials, LARGE)
    )
    try:
        yield House(server, seen, metrics, port, channel)
    finally:
        await channel.close()
        await server.drain(0)


@dataclass
class Failure:
    """A failed call, its details unpacked."""

    code: grpc.StatusCode
    text: str
    reason: str
    metadata: dict[str, str]
    fields: dict[str, str]
    retry_ms: int | None


async def failure(call: Any) -> Failure:
    """Awaits a call that must fail and reads its details as a client would."""
    try:
        async with asyncio.timeout(30):
            await call
    except grpc.aio.AioRpcError as error:
        return failure_of(error)
    raise AssertionError("the call did not fail")


def failure_of(error: grpc.aio.AioRpcError) -> Failure:
    status: status_pb2.Status | None = rpc_status.from_call(cast(grpc.Call, error))
    found: dict[str, Any] = {}
    for kind in (
        error_details_pb2.ErrorInfo,
        error_details_pb2.BadRequest,
        error_details_pb2.RetryInfo,
    ):
        for detail in status.details if status else ():
            if detail.Is(kind.DESCRIPTOR):
                detail.Unpack(found.setdefault(kind.__name__, kind()))
    info, bad, retry = (found.get(name) for name in ("ErrorInfo", "BadRequest", "RetryInfo"))
    assert info is None or info.domain == "contextengine"
    return Failure(
        code=error.code(),
        text=error.details() or "",
        reason=info.reason if info else "",
        metadata=dict(info.metadata) if info else {},
        fields={wrong.field: wrong.description for wrong in bad.field_violations} if bad else {},
        retry_ms=retry.retry_delay.ToMilliseconds() if retry else None,
    )
