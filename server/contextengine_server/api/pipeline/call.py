"""One call as its servicer sees it, and what is counted of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import ContextVar
from time import perf_counter, time
from typing import Any, cast

import grpc
import msgspec

from contextengine_server.api.pipeline.admission import Admission
from contextengine_server.api.pipeline.auth import LOCAL_OPERATOR, NEVER_S, Caller
from contextengine_server.api.pipeline.contract import Rpc
from contextengine_server.errors import DomainError, Unauthenticated
from contextengine_server.telemetry.metrics import Histogram, Metrics
from contextengine_server.telemetry.tracing import NO_TRACE, Trace

Context = grpc.aio.ServicerContext[Any, Any]
Metadata = tuple[tuple[str, str | bytes], ...]


METADATA: ContextVar[Metadata] = ContextVar("metadata", default=())
"""The metadata of the call that the current task works on. gRPC reads them once to find the
handler; asking it again would read them again, for 20 µs."""

_MOST_S = 86_400.0
"""A timer of the event loop may be no longer than this; it is set again then."""

_LATE_S = 0.01
"""What a call is on its way, and a clock late, where a deadline is near."""


def _nothing(size: int) -> None:
    """Nothing counts the bytes."""


_CURRENT_TASK = cast("Callable[[], asyncio.Task[object]]", asyncio.current_task)


class Call(msgspec.Struct, eq=False):
    """One call: who makes it, until when, and its trace. Handed to the servicer explicitly, and
    made in the task that works on it."""

    rpc: Rpc
    context: Context
    """gRPC's side of the call. Servicers need it for nothing: the pipeline answers."""
    metadata: Metadata = msgspec.field(default_factory=METADATA.get)
    """What the client sent along, keys in lower case."""
    task: asyncio.Task[object] = msgspec.field(default_factory=_CURRENT_TASK)
    started: float = msgspec.field(default_factory=perf_counter)
    caller: Caller = LOCAL_OPERATOR
    trace: Trace = NO_TRACE
    raw: bytes = b""
    """The request as it came, where there is one."""
    counts: int = 0
    """What this request counts as, where it does, of the bytes in flight."""
    held: int = 0
    """Bytes of its messages that count as in flight."""
    stopped: DomainError | None = None
    """Why the server itself cancelled the work. None: it did not."""
    ending: asyncio.TimerHandle | None = None
    """Ends a stream with its credentials."""
    admission: Admission | None = None
    """Who admitted it."""
    working: bool = False
    turn: asyncio.Future[None] | None = None
    began: float = 0.0
    """When its turn came, as `started`; 0: not yet."""
    give_back: Callable[[int], None] = _nothing
    """Takes so many bytes of a stream of requests out of those in flight: they are stored."""

    @property
    def tenant(self) -> str:
        """On whose behalf."""
        return self.caller.tenant

    def away(self) -> AbstractAsyncContextManager[None]:
        """Gives its place back while it only waits."""
        if self.admission is None:
            return nullcontext()
        return self.admission.away(self, self.admission.kind_of(self.rpc.kind))

    def gives_way(self) -> bool:
        """True while a call of another tenant, which has none waiting, is worked on as well."""
        return self.admission is not None and self.admission.gives_way(self)

    @property
    def peer(self) -> str:
        """The other end as gRPC names it, for example `ipv4:127.0.0.1:40312`."""
        return self.context.peer()

    @property
    def deadline(self) -> float | None:
        """When the client stops waiting, in the event loop's `time()`. None: never."""
        remaining = self.remaining()
        return None if remaining is None else self.task.get_loop().time() + remaining

    def remaining(self) -> float | None:
        """Seconds left until the deadline, at least 0. None: there is none."""
        return cast("float | None", self.context.time_remaining())

    def is_late(self) -> bool:
        """True where a call that was cancelled now was so by its deadline, as far as one can know:
        the client's own clock may ring first, since a timeout goes over the wire rounded up, by as
        much as a hundredth (gRPC core, `timeout_encoding`), and counts anew where it arrives."""
        remaining = self.remaining()
        if remaining is None:
            return False
        return remaining <= _LATE_S + (perf_counter() - self.started) / 100

    async def opened(self) -> None:
        """Tells the client that its stream stands, before there is anything to send: it misses
        nothing from here on."""
        await self.context.send_initial_metadata(())

    def stop(self, error: DomainError) -> None:
        """Cancels the work; the call answers `error`."""
        if self.stopped is None:
            self.stopped = error
            self.task.cancel()

    def end_with_credentials(self) -> None:
        """Has the call stopped when its caller's credentials expire."""
        left = self.caller.expires_s - time()
        if left <= 0:
            self.stop(
                Unauthenticated(
                    "the credentials of this stream have expired: resume it with new ones"
                )
            )
        elif self.caller.expires_s < NEVER_S:
            loop = self.task.get_loop()
            self.ending = loop.call_later(min(left, _MOST_S), self.end_with_credentials)


class Meter:
    """The metrics of one rpc."""

    __slots__ = ("_metrics", "by_status", "received", "rpc", "sent")

    def __init__(self, metrics: Metrics, rpc: Rpc) -> None:
        self._metrics, self.rpc = metrics, rpc
        label = {"rpc.method": rpc.method}
        self.received = metrics.counter(
            "contextengine.rpc.received", "Bytes of requests", label, "By"
        )
        self.sent = metrics.counter("contextengine.rpc.sent", "Bytes of replies", label, "By")
        self.by_status: dict[str, Histogram] = {}
        """How long calls took, by the name of their gRPC status; of those that were met so far."""
        self.latency("OK")

    def latency(self, status: str) -> Histogram:
        """How long calls of a status took."""
        # The name and the labels are OpenTelemetry's for servers of rpcs.
        labels = {
            "rpc.system.name": "grpc",
            "rpc.method": self.rpc.method,
            "rpc.response.status_code": status,
        }
        latency = self._metrics.histogram(
            "rpc.server.call.duration",
            "From a call's arrival to its reply; of a stream, to its end",
            labels,
        )
        self.by_status[status] = latency
        return latency
