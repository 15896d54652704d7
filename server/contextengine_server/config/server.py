"""The settings of the gRPC server."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import ByteSize, Field, field_validator, model_validator

from contextengine_server.config.addresses import is_host_and_port, is_loopback
from contextengine_server.config.group import Group
from contextengine_server.config.quotas import TenantQuotaSettings
from contextengine_server.config.schema import Duration, Size, Whole
from contextengine_server.fairness.quota import MOST

MIB = 1 << 20
SECOND = timedelta(seconds=1)


class KeepaliveSettings(Group):
    """HTTP/2 keepalive of connections."""

    time: Duration = Field(
        timedelta(seconds=60),
        ge=SECOND,
        description="Ping a connection after this long without traffic.",
    )
    timeout: Duration = Field(
        timedelta(seconds=20),
        ge=SECOND,
        description="Close it when the ping is not answered within this time.",
    )
    min_client_interval: Duration = Field(
        timedelta(seconds=10),
        ge=timedelta(),
        description=(
            "A client that pings more often than this is disconnected. Not by the transport"
            " `native`, which answers each ping and does nothing else for it."
        ),
    )


class TlsSettings(Group):
    """Certificates. With none of them the server speaks plaintext."""

    cert_file: str = Field("", description="The server's certificate chain, PEM.")
    key_file: str = Field("", description="Its private key, PEM.")
    client_ca_file: str = Field(
        "",
        description=(
            "When set, a client must show a certificate signed by one of these authorities, PEM."
        ),
    )

    @property
    def enabled(self) -> bool:
        """True where connections are encrypted."""
        return bool(self.cert_file)

    @model_validator(mode="after")
    def _complete(self) -> TlsSettings:
        if bool(self.cert_file) != bool(self.key_file):
            raise ValueError("cert_file and key_file belong together: set both or neither")
        if self.client_ca_file and not self.cert_file:
            raise ValueError("client_ca_file needs cert_file and key_file as well")
        return self


class ServerSettings(Group):
    """The gRPC server."""

    address: str = Field(
        "127.0.0.1:50051",
        min_length=1,
        description=(
            "Where to listen: host:port, [ipv6]:port or unix:path. Port 0 takes any free one."
        ),
    )
    transport: Literal["grpcio", "native"] = Field(
        "grpcio",
        description=(
            "What carries calls between the network and the service. `native` is the package"
            " contextengine-native, HTTP/2 in Rust on a thread of its own: less processor time a"
            " call, and installed apart (`make native`)."
        ),
    )
    max_message_bytes: Size = Field(
        ByteSize(64 * MIB),
        ge=65_536,
        le=2**31 - 1,
        description="The largest request or reply on the wire.",
    )
    memory_limit: Literal["auto"] | Size = Field(
        "auto",
        description=(
            "The memory from which on the server sheds, before the kernel ends it: caches shrink,"
            " then requests above 64 KiB are answered RESOURCE_EXHAUSTED with RetryInfo, and health"
            " says NOT_SERVING. `auto`: three quarters of what the control group or the machine"
            " has; the rest is for workers. 0: there is no limit."
        ),
    )
    max_bytes_in_flight: Literal["auto"] | Size = Field(
        "auto",
        description=(
            "Bytes of requests and replies above 64 KiB in memory at once, and of what an Import"
            " has sent and is not stored yet; beyond it RESOURCE_EXHAUSTED with RetryInfo. Half of"
            " them may be being read at once. A request takes several times its size while it is"
            " worked on. `auto`: an eighth of `memory_limit`, at most 1 GiB. Never less than twice"
            " `max_message_bytes`."
        ),
    )
    max_tenant_bytes_in_flight: Literal["auto"] | Size = Field(
        "auto",
        description=(
            "Those of one tenant. `auto`: half of the server's, all of them where tokens name no"
            " tenants; never less than twice `max_message_bytes`."
        ),
    )
    max_concurrent_rpcs: Whole = Field(
        1000,
        ge=1,
        le=MOST,
        description=(
            "Calls at once, those that wait for their turn included; more are answered"
            " RESOURCE_EXHAUSTED with RetryInfo. Where one tenant has the most of them, the newest"
            " of its waiting calls makes room for a tenant that has fewer."
        ),
    )
    max_working_rpcs: Whole = Field(
        32,
        ge=1,
        le=MOST,
        description=(
            "Of those, how many of one tenant are worked on at once, and a quarter more of all"
            " tenants. While calls of several tenants come, each has a sixteenth of it, times"
            " its weight. The others wait, and tenants come by turns."
        ),
    )
    max_wait: Duration = Field(
        timedelta(seconds=5),
        ge=timedelta(milliseconds=1),
        le=timedelta(hours=1),
        description=(
            "How long a call waits for its turn before it is answered RESOURCE_EXHAUSTED with"
            " RetryInfo. One whose deadline leaves too little time is answered so at its turn."
        ),
    )
    max_long_rpcs: Whole = Field(
        1000,
        ge=1,
        le=MOST,
        description=(
            "Calls of Compact, Import and Export at once, which take as long as a model or their"
            " client takes. Counted apart."
        ),
    )
    max_long_lived_rpcs: Whole = Field(
        1024, ge=1, le=MOST, description="Streams of Watch and Attach at once. Counted apart."
    )
    max_waiting_reads: Whole = Field(
        1024,
        ge=1,
        le=MOST,
        description="Reads at once that wait for `at_least_revision`. Counted apart.",
    )
    max_streams_per_connection: Whole = Field(
        0,
        ge=0,
        le=MOST,
        description=(
            "Calls and streams at once on one connection; its client keeps what is beyond to"
            " itself until one ends, as HTTP/2 has it. 0: `max_concurrent_rpcs` and"
            " `max_long_lived_rpcs` together. More for a gateway that carries the calls of many"
            " tenants on one connection."
        ),
    )
    quotas: tuple[TenantQuotaSettings, ...] = Field(
        (),
        description=(
            "What tenants may hold at once, and what they weigh. The first that names a tenant is"
            " its own."
        ),
    )
    drain_grace: Duration = Field(
        timedelta(seconds=10),
        ge=timedelta(),
        le=timedelta(hours=1),
        description="On SIGTERM, how long calls in flight may take to finish.",
    )
    insecure: bool = Field(
        False,
        description=(
            "Allow an address that is not loopback without TLS and tokens. Only behind something"
            " that checks."
        ),
    )
    keepalive: KeepaliveSettings = KeepaliveSettings()
    tls: TlsSettings = TlsSettings()

    @field_validator("address")
    @classmethod
    def _has_a_port(cls, address: str) -> str:
        if address.startswith("unix:"):
            if len(address) == len("unix:"):
                raise ValueError("must name the socket's path behind unix:")
            return address
        if not is_host_and_port(address):
            raise ValueError(
                "must be host:port, [ipv6]:port or unix:path, the port from 0 to 65535"
            )
        return address

    @model_validator(mode="after")
    def _room_for_a_message(self) -> ServerSettings:
        least = 2 * self.max_message_bytes
        for name in ("max_bytes_in_flight", "max_tenant_bytes_in_flight"):
            if (wanted := getattr(self, name)) != "auto" and wanted < least:
                raise ValueError(
                    f"{name} is {int(wanted)}, and a call holds a request and a reply: give at"
                    f" least {least}, twice max_message_bytes, or lower that"
                )
        return self

    @property
    def is_loopback(self) -> bool:
        """True where only this machine can connect."""
        if self.address.startswith("unix:"):
            return True
        return is_loopback(self.address)
