"""Who calls: bearer tokens and client certificates name a tenant and a role. And where the server
may listen at all.

Configuration holds SHA-256 hashes of tokens, never tokens; what an issuer signed and what an
authority certified is judged in `api.identity`. Without any of these there is one caller, the
operator of tenant `default`, and the server listens on loopback only.

A bearer token that is sent is what counts, also where it is refused; the connection's certificate
names a tenant for those who send none.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from time import time
from typing import Protocol

import msgspec
from msgspec.structs import replace

from contextengine_server.errors import PermissionDenied, Unauthenticated

DEFAULT_TENANT = "default"

MAX_TENANT = 256
"""Characters of a tenant's name, as in the settings."""

NEVER_S = 1 << 53
"""A time that does not come, in seconds since 1970."""

Metadata = Iterable[tuple[str, str | bytes]]
Peer = Mapping[str, Iterable[bytes]]
"""What the transport knows of the other end, as gRPC names it."""


class ConfigurationError(ValueError):
    """The server must not start as it is configured. The text says what to set."""


class AddressInUse(ConfigurationError):
    """Another process listens there, and may be gone soon."""


class CallerRole(StrEnum):
    """What a caller may do: a runtime everything but what changes the service for others, an
    operator everything."""

    RUNTIME = "runtime"
    OPERATOR = "operator"


class Caller(msgspec.Struct, frozen=True):
    """Who calls, by credentials alone."""

    tenant: str
    role: CallerRole
    token: str = ""
    """The name of its token, or in its certificate, for the log; empty: it has none."""
    expires_s: float = float(NEVER_S)
    """Until when that holds, in seconds since 1970."""
    owner: bool = False
    """True for an operator of the server as a whole, and so of every tenant."""

    @property
    def expired(self) -> bool:
        """Whether its credentials hold no more."""
        return time() >= self.expires_s


LOCAL_OPERATOR = Caller(DEFAULT_TENANT, CallerRole.OPERATOR, owner=True)


class TokenGrant(msgspec.Struct, frozen=True):
    """A token, by the SHA-256 of its text in hexadecimal, and whom it names."""

    sha256: str
    tenant: str
    role: str = "runtime"
    name: str = ""
    """Who holds it."""


def hash_token(token: str) -> str:
    """What a TokenGrant holds of a token: the SHA-256 of its UTF-8 text, in hexadecimal."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def named_tenant(value: object) -> str | None:
    """What others say a tenant is called, where it is a name: one text that can be printed."""
    if isinstance(value, str) and 0 < len(value) <= MAX_TENANT and value.isprintable():
        return value
    return None


class SignedTokens(Protocol):
    """Verifies what issuers signed."""

    def caller(self, token: str) -> Caller | None:
        """Whom a token names; None: `caller_later` can tell. Raises Unauthenticated."""

    async def caller_later(self, token: str) -> Caller:
        """Whom a token names, once keys were read. Raises Unauthenticated."""


class Certified(Protocol):
    """Reads client certificates that the transport has verified."""

    def caller(self, peer: Peer) -> Caller:
        """Whom the certificate of a connection names. Raises Unauthenticated."""


class Authenticator:
    """Answers who calls; operators of the tenants `owners` own the server, and without credentials
    everyone does. Raises ConfigurationError for grants that cannot be right."""

    def __init__(
        self,
        grants: Sequence[TokenGrant] = (),
        signed: SignedTokens | None = None,
        certified: Certified | None = None,
        owners: Sequence[str] = (),
    ) -> None:
        self._owners = frozenset(owners)
        self._signed, self._certified = signed, certified
        self._callers: dict[str, Caller] = {}
        for index, grant in enumerate(grants):
            digest = grant.sha256.lower()
            if not re.fullmatch(r"[0-9a-f]{64}", digest):
                raise ConfigurationError(
                    f"token {index}: sha256 must be 64 hexadecimal digits; hash a token with"
                    " `printf %s TOKEN | sha256sum`"
                )
            if not grant.tenant:
                raise ConfigurationError(
                    f"token {index}: tenant is empty; name the tenant that it speaks for"
                )
            if grant.role not in set(CallerRole):
                raise ConfigurationError(
                    f"token {index}: unknown role {grant.role!r}; use {' or '.join(CallerRole)}"
                )
            if digest in self._callers:
                raise ConfigurationError(
                    f"token {index}: the same sha256 was given before; give each token once"
                )
            self._callers[digest] = self._placed(
                Caller(grant.tenant, CallerRole(grant.role), grant.name)
            )

    @property
    def required(self) -> bool:
        """True where credentials are needed."""
        return bool(self._callers or self._signed or self._certified)

    def replace(self, other: Authenticator) -> None:
        """Knows whom another knows, from the next call on."""
        self._callers = other._callers
        self._signed, self._certified = other._signed, other._certified
        self._owners = other._owners

    def caller(self, metadata: Metadata) -> Caller | None:
        """Who the metadata's `authorization: Bearer …` names; None: `identify` can tell, who looks
        at the connection too. Raises Unauthenticated.

        A dictionary of hashes leaks nothing by its timing: who guesses does not choose the hash
        that is compared.
        """
        if not self.required:
            return LOCAL_OPERATOR
        token = _bearer(metadata)
        if token is None:
            if self._certified is not None:
                return None
            raise Unauthenticated(
                "this server needs a token: send the metadata `authorization: Bearer TOKEN`"
            )
        caller = self._callers.get(hash_token(token))
        if caller is not None:
            return caller
        if self._signed is not None and token.count(".") == 2:
            signed = self._signed.caller(token)
            return None if signed is None else self._placed(signed)
        raise Unauthenticated("the bearer token is not known to this server")

    async def identify(self, metadata: Metadata, peer: Peer) -> Caller:
        """Who calls where the metadata alone do not tell. Raises Unauthenticated."""
        caller = self.caller(metadata)
        if caller is not None:
            return caller
        token = _bearer(metadata)
        if token is None:
            assert self._certified is not None
            return self._placed(self._certified.caller(peer))
        assert self._signed is not None
        return self._placed(await self._signed.caller_later(token))

    def _placed(self, caller: Caller) -> Caller:
        """The caller, as owner where it is one."""
        if caller.role is CallerRole.OPERATOR and caller.tenant in self._owners:
            return replace(caller, owner=True)
        return caller

    async def still(self, metadata: Metadata, peer: Peer, caller: Caller) -> bool:
        """Whether the credentials of a stream that is open name the same tenant and role yet."""
        try:
            now = await self.identify(metadata, peer)
        except Unauthenticated:
            return False
        return (now.tenant, now.role) == (caller.tenant, caller.role)


def _bearer(metadata: Metadata) -> str | None:
    """The token of `authorization: Bearer …`; None: nothing is sent. Raises Unauthenticated."""
    for key, value in metadata:
        if key == "authorization" and isinstance(value, str):
            scheme, _, token = value.partition(" ")
            if scheme.lower() != "bearer" or not token:
                raise Unauthenticated("the authorization metadata must read `Bearer TOKEN`")
            return token.strip()
    return None


def authorize(caller: Caller, method: str) -> None:
    """Raises PermissionDenied unless the caller may call a method that is for operators only."""
    if caller.role is not CallerRole.OPERATOR:
        raise PermissionDenied(
            f"{method} needs the role operator; this token has the role {caller.role}",
            metadata={"required_role": CallerRole.OPERATOR.value, "role": caller.role.value},
        )


def authorize_owner(caller: Caller, method: str) -> None:
    """Raises PermissionDenied unless the caller owns the server."""
    if not caller.owner:
        raise PermissionDenied(
            f"{method} needs the server's owner: an operator of a tenant that auth.owners names",
            metadata={"required_role": "owner", "role": caller.role.value},
        )


def is_local(address: str) -> bool:
    """Whether only this machine can reach the address: loopback, or a Unix socket."""
    if address.startswith(("unix:", "unix-abstract:")):
        return True
    host = split_address(address)[0]
    if host == "localhost":
        return True
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return (mapped or ip).is_loopback


def split_address(address: str) -> tuple[str, int]:
    """`host:port` or `[v6]:port` as its two halves. Raises ConfigurationError."""
    host, separator, port = address.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not separator or not port.isascii() or not port.isdigit() or int(port) > 65_535 or not host:
        raise ConfigurationError(
            f"address {address!r}: give HOST:PORT with a port of 0 to 65535, [V6]:PORT, or"
            " unix:PATH"
        )
    if ":" in host and not bracketed:
        raise ConfigurationError(
            f"address {address!r}: put an IPv6 host into brackets, [{host}]:{port}"
        )
    return host.strip("[]"), int(port)


def check_exposure(address: str, tls: bool, tokens: bool, insecure: bool) -> None:
    """Raises ConfigurationError where the address can be reached from elsewhere without both TLS
    and credentials.

    `insecure` allows it all the same: somebody said so in as many words.
    """
    if insecure or is_local(address) or (tls and tokens):
        return
    missing = " and ".join(
        [
            *([] if tls else ["TLS (a certificate and a key file)"]),
            *([] if tokens else ["bearer tokens or client certificates that name tenants"]),
        ]
    )
    raise ConfigurationError(
        f"refusing to listen on {address}: it can be reached from other machines, and {missing}"
        " must be configured for that. Listen on 127.0.0.1 instead, or say --insecure if the"
        " network around it is all yours"
    )
