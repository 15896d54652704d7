"""Who calls by a JSON Web Token (RFC 7519): whose tokens are trusted, for what, and which claims
name tenant and role."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import jwt
from cachetools import LRUCache

from contextengine_server.api.identity.keys import Keys, keys_at, keys_in_file
from contextengine_server.api.identity.rules import IssuerRules
from contextengine_server.api.pipeline.auth import (
    NEVER_S,
    Caller,
    CallerRole,
    hash_token,
    named_tenant,
)
from contextengine_server.engines.patterns import glob_matches
from contextengine_server.errors import Unauthenticated

MAX_TOKEN_BYTES = 16 * 1024
"""Of a token; the transport has limits of its own, about as high."""

_REMEMBERED = 4096
"""Tokens whose signatures need not be verified again."""

_MISTAKES: Sequence[tuple[type[jwt.PyJWTError], str]] = (
    (jwt.ExpiredSignatureError, "has expired: get a new one"),
    (jwt.ImmatureSignatureError, "is not valid yet"),
    (jwt.InvalidAudienceError, "is for another audience"),
    (jwt.InvalidIssuerError, "is of another issuer"),
    (jwt.MissingRequiredClaimError, "lacks a claim: exp, iss and aud are required"),
    (jwt.InvalidSignatureError, "has a signature that does not verify"),
    (jwt.InvalidAlgorithmError, "is signed by an algorithm that is not allowed"),
)


class Issuers:
    """Verifies tokens. Raises ConfigurationError for keys that cannot be used. Belongs to one event
    loop; `before` are those whose keys are gone on with where a URL stays the same."""

    def __init__(self, rules: Sequence[IssuerRules], before: Issuers | None = None) -> None:
        held = {} if before is None else {keys.place: keys for _, keys in before._issuers.values()}
        self._issuers: dict[str, tuple[IssuerRules, Keys]] = {
            one.issuer: (
                one,
                keys_in_file(Path(one.keys_file))
                if one.keys_file
                else held.get(one.keys_url) or keys_at(one.keys_url),
            )
            for one in rules
        }
        self._verified: LRUCache[str, tuple[Caller, Keys, int]] = LRUCache(_REMEMBERED)
        self._fresh: list[asyncio.Task[None]] = []

    def __bool__(self) -> bool:
        return bool(self._issuers)

    def start(self) -> None:
        """Reads the keys now and from now on at intervals."""
        for rules, keys in self._issuers.values():
            self._fresh.append(asyncio.create_task(keys.keep_fresh(rules.refresh_s)))

    def stop(self) -> None:
        """Reads no more."""
        for task in self._fresh:
            task.cancel()
        self._fresh.clear()

    def caller(self, token: str) -> Caller | None:
        """Whom a token names; None: its key is not known yet, `caller_later` may find it. Raises
        Unauthenticated."""
        if len(token) > MAX_TOKEN_BYTES:
            raise _refused(f"is longer than {MAX_TOKEN_BYTES} bytes")
        digest = hash_token(token)
        if (verified := self._verified.get(digest)) is not None:
            caller, keys, version = verified
            if version == keys.version and not caller.expired:
                return caller
        rules, keys = self._issuer_of(token)
        key = self._key_of(token, rules, keys)
        if key is None:
            if keys.may_ask:
                return None
            raise _refused("names a key that its issuer does not publish")
        claims = _claims(token, key, rules)
        caller = _caller(claims, rules)
        self._verified[digest] = caller, keys, keys.version
        return caller

    async def caller_later(self, token: str) -> Caller:
        """Whom a token names, once its issuer's keys were read again. Raises Unauthenticated."""
        rules, keys = self._issuer_of(token)
        if self._key_of(token, rules, keys) is None:
            await keys.ask()
        if self._key_of(token, rules, keys) is None:
            raise _refused("names a key that its issuer does not publish")
        caller = self.caller(token)
        assert caller is not None
        return caller

    def _issuer_of(self, token: str) -> tuple[IssuerRules, Keys]:
        """Who says that he issued it, which its signature will prove."""
        claimed: object = None
        with suppress(jwt.PyJWTError, ValueError, RecursionError):
            said = jwt.decode(token, options={"verify_signature": False, "verify_exp": False})
            claimed = said.get("iss")
        found = self._issuers.get(claimed) if isinstance(claimed, str) else None
        if found is None:
            raise _refused("is of no issuer that this server trusts")
        return found

    @staticmethod
    def _key_of(token: str, rules: IssuerRules, keys: Keys) -> jwt.PyJWK | None:
        """Its key: its header chooses among the issuer's and names nothing else."""
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            raise _refused("cannot be read") from error
        algorithm = header.get("alg")
        if algorithm not in rules.algorithms:
            raise _refused("is signed by an algorithm that is not allowed")
        return keys.find(header.get("kid"), algorithm)


def _claims(token: str, key: jwt.PyJWK, rules: IssuerRules) -> Mapping[str, Any]:
    """What a token claims, verified. Raises Unauthenticated."""
    try:
        return jwt.decode(
            token,
            key,
            algorithms=list(rules.algorithms),
            audience=rules.audiences,
            issuer=rules.issuer,
            leeway=rules.leeway_s,
            options={"require": ["exp", "iss", "aud"], "enforce_minimum_key_length": True},
        )
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
        why = next((text for kind, text in _MISTAKES if isinstance(error, kind)), "is not valid")
        raise _refused(why) from error


def _caller(claims: Mapping[str, Any], rules: IssuerRules) -> Caller:
    tenant = named_tenant(claim(claims, rules.tenant_claim))
    if tenant is None:
        raise _refused(f"names no tenant: its claim {rules.tenant_claim} must be one text")
    if not any(glob_matches(glob, tenant) for glob in rules.tenants):
        raise _refused("names a tenant that its issuer may not name")
    said = claim(claims, rules.role_claim)
    roles = said.split() if isinstance(said, str) else said if isinstance(said, list) else []
    operator = any(role in rules.operator_roles for role in roles if isinstance(role, str))
    name = claim(claims, rules.name_claim)
    return Caller(
        tenant,
        CallerRole.OPERATOR if operator else CallerRole.RUNTIME,
        name[:256] if isinstance(name, str) else "",
        min(int(claims["exp"]), NEVER_S) + rules.leeway_s,
    )


def claim(claims: Mapping[str, Any], name: str) -> object:
    """A claim by name or JSON pointer; None: there is none."""
    if not name.startswith("/"):
        return claims.get(name)
    value: object = claims
    for part in name[1:].split("/"):
        part = part.replace("~1", "/").replace("~0", "~")
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _refused(why: str) -> Unauthenticated:
    return Unauthenticated(f"the bearer token {why}")
