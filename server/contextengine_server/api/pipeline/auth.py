"""Who calls: bearer tokens name a tenant and a role. And where the server may listen at all.

Configuration holds SHA-256 hashes of tokens, never tokens. Without any, there is one caller, the
operator of tenant `default`, and the server listens on loopback only.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from contextengine_server.errors import PermissionDenied, Unauthenticated

DEFAULT_TENANT = "default"


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
    """The name of its token, for the log; empty: it has none."""


LOCAL_OPERATOR = Caller(DEFAULT_TENANT, CallerRole.OPERATOR)


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


class Authenticator:
    """Answers who calls. Raises ConfigurationError for grants that cannot be right."""

    def __init__(self, grants: Sequence[TokenGrant] = ()) -> None:
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
            self._callers[digest] = Caller(grant.tenant, CallerRole(grant.role), grant.name)

    @property
    def required(self) -> bool:
        """True where a token is needed."""
        return bool(self._callers)

    def replace(self, other: Authenticator) -> None:
        """Knows whom another knows, from the next call on."""
        self._callers = other._callers

    def knows(self, metadata: Iterable[tuple[str, str | bytes]]) -> bool:
        """Whether `caller` answers one."""
        try:
            self.caller(metadata)
        except Unauthenticated:
            return False
        return True

    def caller(self, metadata: Iterable[tuple[str, str | bytes]]) -> Caller:
        """Who the metadata's `authorization: Bearer …` names. Raises Unauthenticated.

        A dictionary of hashes leaks nothing by its timing: who guesses does not choose the hash
        that is compared.
        """
        if not self._callers:
            return LOCAL_OPERATOR
        for key, value in metadata:
            if key == "authorization" and isinstance(value, str):
                scheme, _, token = value.partition(" ")
                if scheme.lower() != "bearer" or not token:
                    raise Unauthenticated("the authorization metadata must read `Bearer TOKEN`")
                caller = self._callers.get(hash_token(token.strip()))
                if caller is None:
                    raise Unauthenticated("the bearer token is not known to this server")
                return caller
        raise Unauthenticated(
            "this server needs a token: send the metadata `authorization: Bearer TOKEN`"
        )


def authorize(caller: Caller, method: str) -> None:
    """Raises PermissionDenied unless the caller may call a method that is for operators only."""
    if caller.role is not CallerRole.OPERATOR:
        raise PermissionDenied(
            f"{method} needs the role operator; this token has the role {caller.role}",
            metadata={"required_role": CallerRole.OPERATOR.value, "role": caller.role.value},
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
    and tokens.

    `insecure` allows it all the same: somebody said so in as many words.
    """
    if insecure or is_local(address) or (tls and tokens):
        return
    missing = " and ".join(
        [
            *([] if tls else ["TLS (a certificate and a key file)"]),
            *([] if tokens else ["bearer tokens"]),
        ]
    )
    raise ConfigurationError(
        f"refusing to listen on {address}: it can be reached from other machines, and {missing}"
        " must be configured for that. Listen on 127.0.0.1 instead, or say --insecure if the"
        " network around it is all yours"
    )
