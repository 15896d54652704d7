"""Tracing with a cheap hot path: whether an rpc is traced is decided once, before any span object
exists.

Where the answer is no, the rpc carries `NO_TRACE`, one shared object that does nothing. Where it is
yes, spans are opened by hand and turned into OpenTelemetry's only when they end. The hot path hands
its span over explicitly; what passes many hands, a commit or a summary, finds it in `CURRENT`,
which is set for sampled work alone. Times are nanoseconds since 1970 UTC.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Literal, NamedTuple, Self

Value = str | int | float | bool | tuple[str, ...]
Kind = Literal["server", "internal", "client"]

MAX_VALUE_CHARS = 256
"""Attributes are names, ids and counts. Whatever is longer than this was not meant to be one and is
cut."""

SERVER_ERRORS = frozenset(
    {"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"}
)
"""The status codes that make a server span an error, by OpenTelemetry's semantic conventions for
gRPC."""


MAX_STATE_CHARS = 512
"""A `tracestate` longer than this is not passed on: what W3C asks everyone to pass on at least."""


class SpanParent(NamedTuple):
    """What a W3C `traceparent` says, and the `tracestate` beside it."""

    trace_id: int
    span_id: int
    sampled: bool
    state: str = ""


class Trace:
    """What an rpc that is not sampled carries, and the interface of a `Span`. All of it does
    nothing."""

    __slots__ = ()

    sampled = False

    def span(self, name: str, kind: Kind = "internal") -> Trace:
        """Opens a child span; use it as a context manager."""
        return self

    def set(self, key: str, value: Value) -> None:
        """Sets an attribute. Never text of messages."""

    def traceparent(self) -> str:
        """This span as a W3C traceparent, for linking background work. Empty where nothing is
        traced."""
        return ""

    def ids(self) -> Mapping[str, str]:
        """`trace_id` and `span_id` for a log line. Empty where nothing is traced."""
        return {}

    def finish(self, status: str) -> None:
        """Ends an rpc's span with the name of its gRPC status."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return None


NO_TRACE = Trace()

CURRENT: ContextVar[Trace] = ContextVar("trace", default=NO_TRACE)
"""The span that the current task works for: of a sampled rpc, or of background work."""


@contextmanager
def under(span: Trace) -> Iterator[Trace]:
    """What is observed within is part of this span."""
    token = CURRENT.set(span)
    try:
        yield span
    finally:
        CURRENT.reset(token)


class Span(Trace):
    """A span of a sampled trace. Handed to `sink` when it ends, once."""

    __slots__ = (
        "attributes",
        "end",
        "error",
        "kind",
        "link",
        "name",
        "parent_id",
        "parent_remote",
        "sink",
        "span_id",
        "start",
        "state",
        "trace_id",
    )

    sampled = True

    def __init__(
        self,
        sink: Sink,
        name: str,
        kind: Kind,
        trace_id: int,
        *,
        parent_id: int = 0,
        parent_remote: bool = False,
        link: SpanParent | None = None,
        state: str = "",
    ) -> None:
        self.sink, self.name, self.kind, self.trace_id = sink, name, kind, trace_id
        self.parent_id, self.parent_remote, self.link = parent_id, parent_remote, link
        self.state = state
        self.span_id = random.getrandbits(64) or 1
        self.attributes: dict[str, Value] = {}
        self.error = False
        self.end = 0
        self.start = time.time_ns()

    def span(self, name: str, kind: Kind = "internal") -> Span:
        return Span(self.sink, name, kind, self.trace_id, parent_id=self.span_id, state=self.state)

    def set(self, key: str, value: Value) -> None:
        self.attributes[key] = value[:MAX_VALUE_CHARS] if isinstance(value, str) else value

    def traceparent(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-01"

    def ids(self) -> Mapping[str, str]:
        return {"trace_id": f"{self.trace_id:032x}", "span_id": f"{self.span_id:016x}"}

    def finish(self, status: str) -> None:
        if self.end:
            return
        self.attributes["rpc.response.status_code"] = status
        if status != "OK":
            self.attributes["error.type"] = status
            self.error = status in SERVER_ERRORS
        self._close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            # The name of the exception alone: its text may quote a message.
            self.attributes["error.type"] = kind.__name__
            self.error = True
        self._close()

    def _close(self) -> None:
        if not self.end:
            self.end = time.time_ns()
            self.sink(self)


Sink = Callable[[Span], None]


class Tracer:
    """Decides what is traced. `ratio` is the share, 0 to 1, of the rpcs that come without a
    decision of their caller.

    `parent_based`: a caller's decision is followed, either way. Else the ratio decides of every
    rpc, by its trace id, so that services with the same ratio decide alike; the caller's trace is
    continued all the same.

    Without a `sink` tracing is off: `on` is False and everything answers `NO_TRACE`.
    """

    def __init__(
        self, ratio: float = 0.0, sink: Sink | None = None, *, parent_based: bool = True
    ) -> None:
        self.ratio = ratio
        self.parent_based = parent_based
        self._sink = sink
        self.on = sink is not None

    def begin(
        self, method: str, metadata: Iterable[tuple[str, str | bytes]], peer: Callable[[], str]
    ) -> Trace:
        """The server span of an rpc, or `NO_TRACE`.

        `method` is `package.Service/Name`. `peer` is asked only where the answer is yes.
        """
        if self._sink is None:
            return NO_TRACE
        parent = _caller(metadata)
        if parent is None:
            if random.random() >= self.ratio:
                return NO_TRACE
            span = Span(self._sink, method, "server", _new_trace_id())
        elif parent.sampled if self.parent_based else _low_64(parent.trace_id) < self.ratio:
            span = Span(
                self._sink,
                method,
                "server",
                parent.trace_id,
                parent_id=parent.span_id,
                parent_remote=True,
                state=parent.state,
            )
        else:
            return NO_TRACE
        span.attributes = {
            "rpc.system.name": "grpc",
            "rpc.method": method,
            **_peer_attributes(peer()),
        }
        return span

    def background(self, name: str, cause: str) -> Trace:
        """A trace of its own for work that an rpc caused and does not wait for, linked to it.

        `cause` is the rpc's `traceparent()`, empty where it was not traced: then this is not
        either. Use it as a context manager.
        """
        link = parse_traceparent(cause) if self._sink is not None else None
        if self._sink is None or link is None or not link.sampled:
            return NO_TRACE
        return Span(self._sink, name, "internal", _new_trace_id(), link=link)


def _caller(metadata: Iterable[tuple[str, str | bytes]]) -> SpanParent | None:
    """The caller's span. None where none is named: then it has decided nothing."""
    parent, state = None, ""
    for key, value in metadata:
        if key == "traceparent":
            parent = parse_traceparent(value)
        elif key == "tracestate" and isinstance(value, str):
            state = f"{state},{value}" if state else value
    if parent is None or not state or len(state) > MAX_STATE_CHARS or not _STATE.fullmatch(state):
        return parent
    return parent._replace(state=state)


def _low_64(trace_id: int) -> float:
    """Where a trace id stands between 0 and 1, as OpenTelemetry's sampler by ratio has it."""
    return (trace_id & 0xFFFF_FFFF_FFFF_FFFF) / 2**64


def parse_traceparent(value: str | bytes) -> SpanParent | None:
    """Reads a W3C traceparent. None where it is not one."""
    if (
        not isinstance(value, str)
        or len(value) < 55
        or value[:2] == "ff"
        or (value[:2] == "00" and len(value) > 55)
    ):
        return None
    if value[2] != "-" or value[35] != "-" or value[52] != "-" or value[55:56] not in ("", "-"):
        return None
    fields = value[:2], value[3:35], value[36:52], value[53:55]
    if not all(_LOWER_HEX.issuperset(field) for field in fields):
        return None
    trace_id, span_id = int(fields[1], 16), int(fields[2], 16)
    if not trace_id or not span_id:
        return None
    return SpanParent(trace_id, span_id, bool(int(fields[3], 16) & 1))


_MEMBER = (
    r"[a-z0-9][a-z0-9_\-*/@]{0,255}="
    r"[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)
_STATE = re.compile(rf"\s*{_MEMBER}\s*(,\s*{_MEMBER}\s*)*", re.ASCII)
_LOWER_HEX = frozenset("0123456789abcdef")


def _new_trace_id() -> int:
    return random.getrandbits(128) or 1


def _peer_attributes(peer: str) -> dict[str, Value]:
    """gRPC names a peer `ipv4:1.2.3.4:5`, `ipv6:%5B::1%5D:5` or `unix:path`."""
    family, _, rest = peer.partition(":")
    if family not in ("ipv4", "ipv6"):
        return {"network.transport": "unix"} if family == "unix" else {}
    host, _, port = rest.rpartition(":")
    host = host.removeprefix("%5B").removesuffix("%5D").strip("[]")
    attributes: dict[str, Value] = {"network.transport": "tcp", "network.peer.address": host}
    if port.isdigit():
        attributes["network.peer.port"] = int(port)
    return attributes
