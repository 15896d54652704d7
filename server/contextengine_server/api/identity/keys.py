"""The public keys of an issuer: a JSON Web Key Set (RFC 7517) in a file or behind a URL, read again
while the server runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from time import monotonic

import jwt
import msgspec

from contextengine_server.api.pipeline.auth import ConfigurationError
from contextengine_server.telemetry.logs import get_logger

KINDS: Mapping[str, tuple[str, str]] = {
    **{f"{family}{bits}": ("RSA", "") for family in ("RS", "PS") for bits in (256, 384, 512)},
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}
"""The algorithms that can be allowed, each with the type and curve of its keys. All are of two
keys: who can verify a token cannot make one, so neither `none` nor HS256 is among them."""

MAX_BYTES = 1 << 20
"""Of a set; real ones have some kilobytes."""

PAUSE_S = 10.0
"""Between two readings that callers cause by naming keys that nobody knows."""

TIMEOUT_S = 5.0
"""How long an endpoint may take to answer."""

MAX_WAITING = 256
"""Calls that wait for one reading; more are refused without it."""

_PUBLIC = ("kty", "crv", "n", "e", "x", "y")
_LEAST_PAUSE_S = 1.0

log = get_logger("contextengine.auth")

KeySet = Mapping[str, Mapping[str, jwt.PyJWK]]
"""Keys by id, then by the algorithm that they verify. The id of a key without one is empty."""


class UnusableKeys(Exception):
    """A set could not be read. The text says why."""


def parsed(text: bytes) -> KeySet:
    """The keys of a set that verify signatures; others, and those too short, are passed over.
    Raises UnusableKeys where none is left."""
    try:
        members = msgspec.json.decode(text)["keys"]
        found: dict[str, dict[str, jwt.PyJWK]] = {}
        for member in members:
            if member.get("use", "sig") == "sig":
                found.setdefault(str(member.get("kid", "")), {}).update(_verifying(member))
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise UnusableKeys("is not a JSON Web Key Set") from error
    keys = {kid: by_algorithm for kid, by_algorithm in found.items() if by_algorithm}
    if not keys:
        raise UnusableKeys("holds no public key that verifies signatures")
    return keys


def _verifying(member: dict[str, str]) -> dict[str, jwt.PyJWK]:
    """What a key verifies, by algorithm. Of a private key only the public half is looked at."""
    public = {name: member[name] for name in _PUBLIC if name in member}
    made: dict[str, jwt.PyJWK] = {}
    for algorithm, (kind, curve) in KINDS.items():
        if public.get("kty") != kind or (curve and public.get("crv") != curve):
            continue
        if member.get("alg", algorithm) != algorithm:
            continue
        try:
            key = jwt.PyJWK(public, algorithm)
        except jwt.PyJWTError:
            continue
        if key.Algorithm.check_key_length(key.key) is None:
            made[algorithm] = key
    return made


class Keys:
    """The keys of one place, as they were read last: a place that cannot be read keeps them.
    Belongs to one event loop."""

    def __init__(
        self,
        place: str,
        read: Callable[[], Awaitable[bytes]],
        now: Callable[[], float] = monotonic,
    ) -> None:
        self.place = place
        self.known: KeySet = {}
        self.version = 0
        """Rises with each reading that found other keys."""
        self._read, self._now = read, now
        self._text = b""
        self._asked = -PAUSE_S
        self._waiting = 0
        self._reading: asyncio.Task[None] | None = None

    def take(self, text: bytes) -> None:
        """Has the keys of this text from now on. Raises UnusableKeys, and keeps those it has."""
        if text != self._text:
            self.known, self._text = parsed(text), text
            self.version += 1

    def find(self, kid: str | None, algorithm: str) -> jwt.PyJWK | None:
        """The key of an id for an algorithm. A token that names none has the only one there is."""
        if kid is not None:
            return self.known.get(kid, {}).get(algorithm)
        found = [keys[algorithm] for keys in self.known.values() if algorithm in keys]
        return found[0] if len(found) == 1 else None

    @property
    def may_ask(self) -> bool:
        """Whether a caller with an unknown key is worth reading for, or waiting for who reads."""
        if self._waiting >= MAX_WAITING:
            return False
        return self._reading is not None or self._now() - self._asked >= PAUSE_S

    async def ask(self) -> None:
        """Reads again for a caller, or waits for who does, where that `may_ask`."""
        if not self.may_ask:
            return
        self._waiting += 1
        try:
            await self.refresh()
        finally:
            self._waiting -= 1

    async def refresh(self) -> None:
        """Reads again, or waits for who does. A failure is logged, and changes nothing."""
        if self._reading is None:
            self._asked = self._now()
            self._reading = asyncio.create_task(self._read_again())
        await asyncio.shield(self._reading)

    async def _read_again(self) -> None:
        before = self.version
        try:
            self.take(await self._read())
        except Exception as error:  # whatever it is, those known are gone on with
            why = str(error) if isinstance(error, UnusableKeys) else type(error).__name__
            log.error("keys_not_read", place=self.place, why=why, kept=len(self.known))
        else:
            if self.version != before:
                log.info("keys_read", place=self.place, keys=len(self.known))
        finally:
            self._reading = None

    async def keep_fresh(self, interval_s: float) -> None:
        """Reads at once and then at intervals, until cancelled."""
        while True:
            await self.refresh()
            await asyncio.sleep(max(interval_s, _LEAST_PAUSE_S))


def keys_in_file(path: Path) -> Keys:
    """The keys of a file. Raises ConfigurationError where it has none."""

    async def read() -> bytes:
        return await asyncio.to_thread(path.read_bytes)

    keys = Keys(str(path), read)
    try:
        keys.take(path.read_bytes())
    except (OSError, UnusableKeys) as error:
        why = f"cannot be read: {error.strerror}" if isinstance(error, OSError) else error
        raise ConfigurationError(f"auth.jwt: keys_file {path} {why}") from error
    return keys


def keys_at(url: str) -> Keys:
    """The keys behind a URL; none until they were read."""

    async def read() -> bytes:
        return await fetched(url)

    return Keys(url, read)


async def fetched(url: str) -> bytes:
    """What is behind a URL. Follows no redirection: the settings name whom to trust. Raises
    UnusableKeys."""
    import httpx2  # late: most servers read no keys

    try:
        async with (
            asyncio.timeout(TIMEOUT_S),
            httpx2.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False) as client,
            client.stream("GET", url, headers={"accept": "application/json"}) as reply,
        ):
            if reply.status_code != 200:
                raise UnusableKeys(f"answered {reply.status_code}, and not 200")
            text = bytearray()
            async for part in reply.aiter_bytes():
                text += part
                if len(text) > MAX_BYTES:
                    raise UnusableKeys(f"answered more than {MAX_BYTES} bytes")
    except TimeoutError as error:
        raise UnusableKeys(f"did not answer within {TIMEOUT_S:g} s") from error
    except httpx2.HTTPError as error:
        raise UnusableKeys(f"cannot be read: {type(error).__name__}") from error
    return bytes(text)
