"""The settings of the gRPC server, and of who may call it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ByteSize, Field, field_validator, model_validator

from contextengine_server.config.addresses import is_host_and_port, is_loopback
from contextengine_server.config.group import Group
from contextengine_server.config.schema import Duration, Secret, Size, Whole

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
        description="A client that pings more often than this is disconnected.",
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
    max_message_bytes: Size = Field(
        ByteSize(64 * MIB),
        ge=65_536,
        le=2**31 - 1,
        description="The largest request or reply on the wire.",
    )
    max_concurrent_rpcs: Whole = Field(
        1000,
        ge=1,
        le=1_000_000,
        description="Calls at once; more are answered RESOURCE_EXHAUSTED with RetryInfo.",
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

    @property
    def is_loopback(self) -> bool:
        """True where only this machine can connect."""
        if self.address.startswith("unix:"):
            return True
        return is_loopback(self.address)


def _sha256(value: Any) -> Any:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9a-fA-F]{64}", value):
        raise ValueError(
            "must be the SHA-256 of the token as 64 hexadecimal digits, never the token itself"
        )
    return value.lower()


class TokenSettings(Group):
    """A bearer token, stored as its hash: `printf %s "$TOKEN" | sha256sum`."""

    sha256: Annotated[str, Secret(), BeforeValidator(_sha256)] = Field(
        description=(
            "SHA-256 of the token, 64 hexadecimal digits. The token itself is stored nowhere."
        )
    )
    tenant: str = Field(
        min_length=1, max_length=256, description="The tenant that the caller acts for."
    )
    role: Literal["runtime", "operator"] = Field(
        "runtime", description="A runtime serves sessions; an operator may also assign engines."
    )
    name: str = Field("", max_length=256, description="Who holds it, for logs and doctor.")


class AuthSettings(Group):
    """Who may call. Without tokens every caller is tenant `default`, and only loopback is
    served."""

    tokens: tuple[TokenSettings, ...] = Field(
        (), description="The bearer tokens that are accepted."
    )

    @model_validator(mode="after")
    def _distinct(self) -> AuthSettings:
        first: dict[str, int] = {}
        for index, token in enumerate(self.tokens):
            if (other := first.setdefault(token.sha256, index)) != index:
                raise ValueError(
                    f"tokens[{other}] and tokens[{index}] are the same token; a token has one"
                    " tenant and role"
                )
        return self
