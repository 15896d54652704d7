"""What a client is set to, and what gRPC is told because of it. Shared by both clients."""

from __future__ import annotations

import ipaddress
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import grpc
from google.protobuf.message import Message as ProtoMessage

from .affinity import SESSION_HEADER, session_metadata
from .attempts import RETRY_FOR, Absence, Attempts
from .breaker import HEALTH, PROBE_SECONDS, Breaker
from .calls import CALLS, Call, service_config
from .pending import MAX_BYTES, MAX_MESSAGES, Pending, Rejected
from .spill import Spill
from .tracing import trace_context
from .types import SessionRef

DEFAULT_TARGET = "127.0.0.1:50051"
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""The server's default limit."""
KEEPALIVE_SECONDS = 310.0
"""A gRPC server without settings of its own takes a ping every five minutes and hangs up on whoever
pings more often."""

MetadataProvider = Callable[[], Iterable[tuple[str, str]]]
"""Called before every rpc; answers metadata to send along, for example `[("traceparent",
"00-…")]`."""


class Connection:
    """A channel to a server and its settings."""

    _library: ClassVar[Any]
    """Who makes channels: grpc or grpc.aio."""

    def __init__(
        self,
        target: str = DEFAULT_TARGET,
        *,
        token: str = "",
        tls: bool = False,
        root_certificates: str | PathLike[str] | None = None,
        credentials: grpc.ChannelCredentials | None = None,
        insecure: bool = False,
        timeouts: Mapping[str, float] | None = None,
        metadata: MetadataProvider | None = None,
        retry_for: float = RETRY_FOR,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        keepalive: float = KEEPALIVE_SECONDS,
        fallback: bool = True,
        max_queued_messages: int = MAX_MESSAGES,
        max_queued_bytes: int = MAX_BYTES,
        spill_file: str | PathLike[str] | None = None,
        breaker: bool = False,
        options: Sequence[tuple[str, str | int]] = (),
    ) -> None:
        """Connects at the first call.

        target: where the server is, `host:port` or any gRPC target. token: the bearer token. Empty:
        none. It goes unencrypted only to this machine, unless `insecure` is set. tls: True for TLS
        with the system's root certificates. root_certificates: a PEM file of root certificates for
        TLS. Implies `tls`. credentials: gRPC's own channel credentials, for mTLS say. Excludes
        `tls` and `root_certificates`. insecure: True lets the token travel unencrypted to another
        machine. timeouts: deadlines in seconds by `Service.Rpc`, for example
        `{"ContextEngine.Compact": 60}`; math.inf: none. metadata: called before every rpc, answers
        metadata to send along. A `traceparent` of its own wins over the span of
            OpenTelemetry that is current.
        retry_for: seconds for which calls are sent again while the service is away (UNAVAILABLE),
            counted for all of them from when it went, never beyond a deadline; 0: they are not.
        max_message_bytes: the largest request or reply.
        keepalive: seconds between pings on an idle connection.
        fallback: what session handles do while the service is away: True bears it, False raises.
        max_queued_messages, max_queued_bytes: the most that waits for the service to come back.
        spill_file: a file that outlives this process with what waits. One client at a time.
        breaker: True: once a call has found the service dead or hung, each further one waits 50 ms
            at most for it and fails as that one did, until the service answers a question that
            goes on beside them (grpc.health.v1). Where calls hang all the same, it is asked the
            later each time, after a minute at most.
        options: further gRPC channel options; they win over those set here. A `grpc.service_config`
            that says nothing of methods keeps what is set here of them.

        Raises ValueError for settings that contradict each other and for a damaged spill file,
        OSError for files that cannot be read.
        """
        known = {call.name for call in CALLS}
        unknown = sorted(set(timeouts or {}) - known)
        if unknown:
            raise ValueError(
                f"timeouts: unknown rpc {', '.join(unknown)}; known are {', '.join(sorted(known))}"
            )
        self._target = target
        self._token = token
        self._timeouts = dict(timeouts or {})
        self._metadata = metadata
        if not retry_for >= 0:
            raise ValueError(f"retry_for is {retry_for} seconds: it must be 0 or above")
        self._retry_for = retry_for
        self._absence = Absence(time.monotonic)
        self._breaker, self._guarded = Breaker(), breaker
        self._credentials = channel_credentials(tls, root_certificates, credentials)
        if token and self._credentials is None and not insecure and not is_loopback(target):
            raise ValueError(
                f"the token would travel unencrypted to {target}: set tls or root_certificates, "
                "or insecure=True where the network is trusted"
            )
        self._options = channel_options(max_message_bytes, keepalive, options)
        spill = Spill(spill_file) if fallback and spill_file is not None else None
        self.queue = Pending(max_queued_messages, max_queued_bytes, spill) if fallback else None
        """What waits for the service to come back. None: nothing ever does."""
        self._callables: dict[str, Any] = {}

    @cached_property
    def _channel(self) -> Any:
        """The channel, made at the first call: asyncio's belongs to the loop that runs then."""
        if self._credentials is None:
            return self._library.insecure_channel(self._target, self._options)
        return self._library.secure_channel(self._target, self._credentials, self._options)

    def pending(self, session: SessionRef | None = None) -> int:
        """How many messages wait for the service to come back, of a session or of all."""
        return 0 if self.queue is None else self.queue.count(session)

    @property
    def rejected(self) -> list[Rejected]:
        """What had waited and was then refused for what it is, the newest last; the last
        thousand."""
        return [] if self.queue is None else list(self.queue.rejected)

    def _call_metadata(self, request: ProtoMessage | None = None) -> tuple[tuple[str, str], ...]:
        """The metadata of one rpc. `request`: its first, which may name its session."""
        provided = tuple(self._metadata()) if self._metadata is not None else ()
        if not any(name == "traceparent" for name, _ in provided):
            provided += trace_context()
        if request is not None and not any(name == SESSION_HEADER for name, _ in provided):
            provided += session_metadata(request)
        return (("authorization", f"Bearer {self._token}"), *provided) if self._token else provided

    def timeout_of(self, call: Call[Any, Any], timeout: float | None) -> float | None:
        """The deadline of one rpc in seconds: its own argument, else the client's, else the
        default. None: none."""
        if timeout is None:
            timeout = self._timeouts.get(call.name, call.timeout)
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout is {timeout} seconds: it must be above 0")
        return None if timeout is None or math.isinf(timeout) else timeout

    def _attempts(self, call: Call[Any, Any], timeout: float | None) -> Attempts:
        """The attempts of a unary rpc that begins now."""
        return Attempts(
            self.timeout_of(call, timeout),
            time.monotonic,
            retry_for=self._retry_for if call.retried else 0.0,
            absence=self._absence,
        )

    def _stream_arguments(
        self, call: Call[Any, Any], timeout: float | None, request: ProtoMessage | None = None
    ) -> dict[str, Any]:
        """How a streaming rpc is called, besides its requests. `request`: the first of them, where
        it is known before the rpc begins."""
        metadata = self._call_metadata(request)
        return {"timeout": self.timeout_of(call, timeout), "metadata": metadata}

    def _question(self) -> tuple[Any, dict[str, Any]]:
        """What asks whether the server serves: gRPC's callable, on bytes, and its arguments."""
        found = self._callables.get(HEALTH)
        if found is None:
            found = self._callables[HEALTH] = self._channel.unary_unary(HEALTH)
        return found, {"timeout": PROBE_SECONDS, "metadata": self._call_metadata()}

    def _callable(self, kind: str, call: Call[Any, Any]) -> Any:
        """gRPC's callable of an rpc, made once. `kind`: which method of the channel makes it,
        `unary_unary` say."""
        found = self._callables.get(call.path)
        if found is None:
            found = getattr(self._channel, kind)(
                call.path,
                request_serializer=call.request.SerializeToString,
                response_deserializer=call.response.FromString,
            )
            self._callables[call.path] = found
        return found


def channel_credentials(
    tls: bool,
    root_certificates: str | PathLike[str] | None,
    credentials: grpc.ChannelCredentials | None,
) -> grpc.ChannelCredentials | None:
    """The credentials of the channel. None: no TLS."""
    if credentials is not None:
        if tls or root_certificates is not None:
            raise ValueError("credentials excludes tls and root_certificates: give one of them")
        return credentials
    if root_certificates is not None:
        return grpc.ssl_channel_credentials(root_certificates=Path(root_certificates).read_bytes())
    return grpc.ssl_channel_credentials() if tls else None


def channel_options(
    max_message_bytes: int, keepalive: float, options: Sequence[tuple[str, str | int]]
) -> list[tuple[str, str | int]]:
    """gRPC's channel arguments."""
    ours: dict[str, str | int] = {
        "grpc.max_send_message_length": max_message_bytes,
        "grpc.max_receive_message_length": max_message_bytes,
        "grpc.keepalive_time_ms": int(keepalive * 1000),
        # What is too large to be held is not sent again.
        "grpc.per_rpc_retry_buffer_size": max_message_bytes,
        # A restarted server is found again within about a second.
        "grpc.initial_reconnect_backoff_ms": 100,
        "grpc.max_reconnect_backoff_ms": 1_000,
    }
    given = dict(options)
    # Of an argument that is given twice, gRPC takes the first.
    service = service_config(given=str(given.pop("grpc.service_config", "{}")))
    return [*(ours | given).items(), ("grpc.service_config", service)]


def is_loopback(target: str) -> bool:
    """Whether a gRPC target can only be this machine."""
    if target.startswith(("unix:", "unix-abstract:")):
        return True
    address = target.rsplit("/", 1)[-1]
    for scheme in ("dns:", "ipv4:", "ipv6:"):
        address = address.removeprefix(scheme)
    # With a port, without one, or an IPv6 address by itself.
    for host in (address.rpartition(":")[0].strip("[]"), address.strip("[]")):
        if host == "localhost":
            return True
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            continue
    return False
