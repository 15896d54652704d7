"""The gRPC server: where it listens, with which limits, how healthy it says it is, and how it
ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import grpc
import msgspec
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from contextengine_server.api.identity.rules import CertificateRule, IssuerRules
from contextengine_server.api.pipeline import contract
from contextengine_server.api.pipeline.auth import (
    Authenticator,
    ConfigurationError,
    TokenGrant,
    check_exposure,
    is_local,
    split_address,
)
from contextengine_server.api.pipeline.bytes_in_flight import ByteLimits
from contextengine_server.api.pipeline.certificates import Certificates, TlsFiles
from contextengine_server.api.pipeline.limits import Limits
from contextengine_server.api.pipeline.listener import bind
from contextengine_server.api.pipeline.rpc import Pipeline
from contextengine_server.api.pipeline.symbols import Symbols
from contextengine_server.api.pipeline.traffic import Traffic
from contextengine_server.api.transports.kinds import TRANSPORTS
from contextengine_server.api.transports.transport import Transport, TransportOptions
from contextengine_server.fairness.quota import TenantQuotas
from contextengine_server.telemetry.logs import get_logger
from contextengine_server.telemetry.metrics import Metrics
from contextengine_server.telemetry.tracing import Tracer

if TYPE_CHECKING:
    from contextengine_server.api.identity.issuers import Issuers

HOOK_TIMEOUT_S = 10.0
"""How long each thing that has to be done at the end may take: engines are disposed of within 10
s."""

CLOSE_GRACE_S = 1.0
"""For replies that are still being written, and for streams of health and reflection, when all
calls are done."""

Hook = Callable[[], Awaitable[object]]

log = get_logger("contextengine.api")


class ServerOptions(msgspec.Struct, frozen=True):
    """How to serve. Sizes in bytes, times in seconds unless named otherwise."""

    address: str = "127.0.0.1:50051"
    """HOST:PORT, [V6]:PORT or unix:PATH. Port 0: any that is free."""
    transport: str = "grpcio"
    """Which of `TRANSPORTS` carries calls."""
    tls: TlsFiles | None = None
    tokens: tuple[TokenGrant, ...] = ()
    issuers: tuple[IssuerRules, ...] = ()
    certificates: tuple[CertificateRule, ...] = ()
    """Which client certificates name whom; needs `tls` with an authority of clients."""
    owners: tuple[str, ...] = ()
    """Tenants whose operators own the server."""
    insecure: bool = False
    """Listen beyond loopback without TLS or tokens all the same."""
    max_message_bytes: int = 64 * 1024 * 1024
    """The largest request, reply, or part of a stream."""
    max_bytes_in_flight: int = 1 << 30
    """Bytes of large requests and replies in memory at once, at least two of the largest."""
    max_tenant_bytes_in_flight: int = 1 << 30
    """Those of one tenant."""
    max_concurrent_rpcs: int = 1_000
    """Ordinary calls at once, those that wait for their turn included; beyond it
    RESOURCE_EXHAUSTED with RetryInfo."""
    max_working_rpcs: int = 32
    """Of those, how many of one tenant are worked on at once where no other is there."""
    max_wait_s: float = 5.0
    """How long a call waits for its turn."""
    max_long_rpcs: int = 1_000
    """Calls of Compact, Import and Export at once, counted apart."""
    max_long_lived_rpcs: int = 1_024
    """Streams of Watch and Attach at once, counted apart."""
    max_waiting_reads: int = 1_024
    """Reads that wait for a revision, counted apart."""
    max_streams_per_connection: int = 0
    """HTTP/2 streams of one connection; a client queues what is beyond. 0: as many as the server
    lets in of ordinary calls and of streams that last, so that nobody waits for what they leave no
    room for, and who sends whatever becomes of it is slowed down by his own connection."""
    overload_retry_ms: int = 200
    keepalive_s: float = 60.0
    """How long a connection may be silent before it is pinged."""
    keepalive_timeout_s: float = 20.0
    """How long it may take to answer before it is closed."""
    min_client_ping_s: float = 10.0
    """Clients that ping more often than this are sent away."""

    @property
    def streams_per_connection(self) -> int:
        """HTTP/2 streams of one connection."""
        let_in = self.max_concurrent_rpcs + self.max_long_lived_rpcs
        return self.max_streams_per_connection or let_in

    @property
    def credentials(self) -> bool:
        """True where callers are known by credentials."""
        return bool(self.tokens or self.issuers or self.certificates)


class Server:
    """Serves the contract on one address. Belongs to one event loop; started once, drained once.

    `servicers` has the servicer of each full service name. Raises ConfigurationError or ValueError
    before anything listens where options or servicers cannot be right.
    """

    def __init__(
        self,
        options: ServerOptions,
        servicers: Mapping[str, object],
        *,
        tracer: Tracer,
        metrics: Metrics,
        draining: asyncio.Event | None = None,
        traffic: Traffic | None = None,
    ) -> None:
        if not options.address.startswith("unix"):
            split_address(options.address)
        check_exposure(
            options.address, options.tls is not None, options.credentials, options.insecure
        )
        if options.insecure and not is_local(options.address):
            log.warning(
                "exposed",
                address=options.address,
                tls=options.tls is not None,
                tokens=len(options.tokens),
            )
        self._options = options
        self._certificates = Certificates(options.tls) if options.tls is not None else None
        self._issuers, self._authenticator = _identity(options)
        traffic = traffic or traffic_of(options, metrics)
        self._admission = traffic.admission
        self._draining = draining or asyncio.Event()
        """Set from the moment on that the server takes no new calls."""
        metrics.gauge(
            "contextengine.rpc.in_flight",
            lambda: self._admission.in_flight,
            "Calls in flight",
            unit="{call}",
        )
        metrics.gauge(
            "contextengine.tls.certificate.end",
            lambda: self._certificates.ends_s if self._certificates is not None else 0.0,
            "When the certificate that is shown expires, since 1970; 0: the server has none",
            unit="s",
        )
        self._pipeline = pipeline = Pipeline(
            admission=self._admission,
            authenticator=self._authenticator,
            tracer=tracer,
            metrics=metrics,
            max_message_bytes=options.max_message_bytes,
            in_flight=traffic.bytes,
        )
        self._handlers = pipeline.handlers(servicers)
        self._served = frozenset(servicers)
        self._health = health.aio.HealthServicer()
        self._hooks: list[tuple[str, Hook]] = []
        self._transport: Transport | None = None
        self._drained: asyncio.Task[None] | None = None
        self._revising: asyncio.Task[None] | None = None

    async def start(self) -> int:
        """Listens and answers the port, 0 for a Unix socket. Raises ConfigurationError where it
        cannot."""
        options = self._options
        transport = TRANSPORTS[options.transport](transport_options(options), [self._handlers])
        others = cast(grpc.aio.Server, _GenericOnly(transport))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, others)
        names = (*contract.services(), health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(  # type: ignore[no-untyped-call]
            reflection.aio.ReflectionServicer(names, Symbols()), others
        )
        for service in contract.services():
            await self.set_serving(service, service in self._served)
        port = bind(transport, options.address, self._certificates)
        await transport.start()
        if self._issuers is not None:
            self._issuers.start()
        self._transport = transport
        return 0 if options.address.startswith("unix") else port

    @property
    def draining(self) -> bool:
        """True from the moment on that the server takes no new calls."""
        return self._admission.draining

    async def set_serving(self, service: str, serving: bool) -> None:
        """Sets the health of a service by its full name, or of the server as a whole by the empty
        name."""
        status = health_pb2.HealthCheckResponse
        await self._health.set(service, status.SERVING if serving else status.NOT_SERVING)

    def reload(self, options: ServerOptions) -> None:
        """Takes credentials and certificates of other options into force: for the next call, for
        streams that are open, and for the next connection. Raises ConfigurationError where they
        cannot be right, and changes nothing then."""
        issuers, authenticator = _identity(options, self._issuers)
        if authenticator.required != self._authenticator.required:
            raise ConfigurationError(
                "auth.tokens: to ask for tokens, or no longer, needs a restart"
            )
        if (options.tls is None) != (self._certificates is None):
            raise ConfigurationError("server.tls: to speak TLS, or no longer, needs a restart")
        if self._certificates is not None and options.tls is not None:
            self._certificates.reload(options.tls)
        self._authenticator.replace(authenticator)
        if self._issuers is not None:
            self._issuers.stop()
        self._issuers = issuers
        if issuers is not None:
            issuers.start()
        self._revising = asyncio.create_task(self._pipeline.revise())

    def on_drain(self, name: str, hook: Hook) -> None:
        """Has `hook` run once when the server drains and its calls are done, in the order given,
        for at most 10 s."""
        self._hooks.append((name, hook))

    async def drain(self, grace_s: float, *, close: bool = True) -> None:
        """Ends well: no new calls, those in flight finish within `grace_s`, hooks run, and with
        `close` the port closes. Safe twice.

        A port that closes cancels what gRPC has received and not handed over yet: under load its
        callers hear CANCELLED, which nobody repeats. So a process that ends anyway leaves the port
        open: new calls are answered DRAINING to the last, and when the process is gone, callers
        hear that their connection broke, which they repeat.
        """
        if self._drained is None:
            self._drained = asyncio.create_task(self._drain(grace_s, close))
        await asyncio.shield(self._drained)

    async def _drain(self, grace_s: float, close: bool) -> None:
        self._draining.set()
        await self._health.enter_graceful_shutdown()
        if self._issuers is not None:
            self._issuers.stop()
        stopped = await self._admission.drain(grace_s)
        if stopped:
            log.warning("calls_cut_off", count=stopped, grace_s=grace_s)
        for name, hook in self._hooks:
            try:
                async with asyncio.timeout(HOOK_TIMEOUT_S):
                    await hook()
            except TimeoutError:
                log.error("drain_hook_too_slow", hook=name, limit_s=HOOK_TIMEOUT_S)
            except Exception as error:
                # One that fails must not keep the others from running.
                log.error("drain_hook_failed", hook=name, exc_info=error)
        if close and self._transport is not None:
            await self._transport.stop(CLOSE_GRACE_S)


def _identity(
    options: ServerOptions, before: Issuers | None = None
) -> tuple[Issuers | None, Authenticator]:
    """Who knows callers. Raises ConfigurationError."""
    if options.certificates and (options.tls is None or options.tls.client_authority is None):
        raise ConfigurationError(
            "auth.certificates: needs server.tls.client_ca_file, the authorities that sign them"
        )
    issuers, certified = None, None
    # Late: what verifies signatures takes a tenth of a second to load, and few servers need it.
    if options.issuers:
        from contextengine_server.api.identity.issuers import Issuers

        issuers = Issuers(options.issuers, before)
    if options.certificates:
        from contextengine_server.api.identity.client_certificates import ClientCertificates

        certified = ClientCertificates(options.certificates)
    return issuers, Authenticator(options.tokens, issuers, certified, options.owners)


class _GenericOnly:
    """A transport as generated functions see a server: it takes generic handlers and forgets
    registered ones.

    grpc.aio waits for each registered method by a future of its own and goes through all of them at
    every call; the generated functions register their methods both ways.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def add_generic_rpc_handlers(self, handlers: Any) -> None:
        self._transport.add_generic_rpc_handlers(handlers)

    def add_registered_method_handlers(self, service_name: str, method_handlers: object) -> None:
        return None


def _largest(options: ServerOptions) -> int:
    """The largest message that gRPC takes: a little above our own limit, which answers with what
    the limit is and how much was sent. What is larger it refuses by its first bytes."""
    return options.max_message_bytes + options.max_message_bytes // 4 + 1024 * 1024


def traffic_of(
    options: ServerOptions,
    metrics: Metrics,
    quotas: TenantQuotas | None = None,
    pressed: Callable[[], bool] = bool,
    hurry: Callable[[bool], object] = bool,
) -> Traffic:
    """What comes and goes at a server of these options; the others as `Traffic` says."""
    sizes = ByteLimits(
        options.max_bytes_in_flight, options.max_tenant_bytes_in_flight, _largest(options)
    )
    limits = Limits(
        calls=options.max_concurrent_rpcs,
        long_calls=options.max_long_rpcs,
        streams=options.max_long_lived_rpcs,
        waits=options.max_waiting_reads,
        working=options.max_working_rpcs,
        max_wait_s=options.max_wait_s,
        retry_after_ms=options.overload_retry_ms,
    )
    return Traffic(limits, sizes, metrics, quotas, pressed, hurry)


def transport_options(options: ServerOptions) -> TransportOptions:
    """What of them is a transport's business."""
    return TransportOptions(
        _largest(options),
        options.streams_per_connection,
        options.keepalive_s,
        options.keepalive_timeout_s,
        options.min_client_ping_s,
    )
