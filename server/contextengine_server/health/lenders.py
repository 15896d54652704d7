"""Which harnesses are attached to which of the servers over one store, so that a server can reckon
with those of others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec
import structlog

from contextengine_server.context.scope import Scope
from contextengine_server.runtime.broker import Harnesses
from contextengine_server.runtime.elsewhere import Lending
from contextengine_server.session.sweeper import Sweeper
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.protocols import Leases

BEAT_S = 3.0
"""How often each server says who is attached to it, and looks who is to the others, besides at each
change."""
LEAST_S = 0.1
"""The time between two looks at least: harnesses that come and go are told of together."""
LEASE_S = 12.0
"""Of a server that said nothing for so long nobody is attached to it any more."""
KIND = "lenders"
MAX_TENANT_BYTES = 16_384
"""What one tenant's harnesses on one server may take to be told of; those beyond it are known to
their own server alone."""

log = structlog.get_logger("contextengine.lenders")


class Announcement(msgspec.Struct, frozen=True, array_like=True):
    """What a server says of itself: it is the owner of the lease under which it says it."""

    server: str
    number: int
    """Of what the server said since its start: what it says last holds."""
    lendings: list[Lending]


_decode = msgspec.json.Decoder(Announcement).decode


class Lenders(Sweeper):
    """Holds a lease whose owner is what the harnesses of this server take, and reads those of the
    others."""

    topic = "lenders"
    failure = "the harnesses that are attached were not told of"

    def __init__(self, leases: Leases, name: str, harnesses: Harnesses) -> None:
        super().__init__()
        self._leases, self._name, self._harnesses = leases, name, harnesses
        self._said = Announcement(name, 0, [])

    async def sweep(self) -> None:
        """Says who is attached here, and learns who is elsewhere. Raises StoreUnavailable."""
        self._harnesses.changed.clear()
        await self._say(list(_told(self._harnesses.lending())))
        await self._learn()

    def look(self) -> None:
        """Looks soon: another server said something."""
        self._harnesses.changed.set()

    def pause_s(self) -> float:
        """The time between two beats."""
        return BEAT_S

    async def pause(self) -> None:
        """Until the next beat, or something has changed."""
        await asyncio.sleep(LEAST_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(self.pause_s()):
                await self._harnesses.changed.wait()

    async def stop(self) -> None:
        """Nobody is attached here any more."""
        await super().stop()
        with suppress(StoreUnavailable):
            await self._say([])

    async def _say(self, lendings: list[Lending]) -> None:
        before = self._said
        if lendings != before.lendings:
            self._said = Announcement(self._name, before.number + 1, lendings)
        if lendings:
            lease_ms = round(LEASE_S * 1_000)
            await self._leases.take(_scope(self._said), KIND, _text(self._said), lease_ms)
        if self._said is not before:
            # After the other was taken: at no time does it look as if nobody were there.
            if before.lendings:
                await self._leases.give_back(_scope(before), KIND, _text(before))
            self._harnesses.elsewhere.lenders_changed()

    async def _learn(self) -> None:
        newest: dict[str, Announcement] = {}
        for text in await self._leases.owners(KIND):
            try:
                said = _decode(text)
            except msgspec.DecodeError:
                continue  # a server of another version says it in another way
            known = newest.get(said.server)
            if said.server != self._name and (known is None or known.number < said.number):
                newest[said.server] = said
        self._harnesses.elsewhere.learn(
            lending for said in newest.values() for lending in said.lendings
        )


def _scope(said: Announcement) -> Scope:
    return Scope("", said.server, str(said.number))


def _text(said: Announcement) -> str:
    return msgspec.json.encode(said).decode()


def _told(lendings: Sequence[Lending]) -> Iterator[Lending]:
    """Those that there is room to tell of."""
    left: dict[str, int] = {}
    for one in lendings:
        size = len(msgspec.json.encode(one))
        room = left.get(one.tenant, MAX_TENANT_BYTES)
        if size <= room:
            left[one.tenant] = room - size
            yield one
        else:
            log.warning("a harness is known to this server alone", agent=one.agent)
