"""Reading everything that is stored, a little at a time, and holding it against its hashes: so that
damage is seen before somebody asks for what is damaged, while a backup still has it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

import msgspec
import structlog

from contextengine_server.session.sweeper import Sweeper
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import MessageRow, SessionHead
from contextengine_server.telemetry.events import Events
from contextengine_server.telemetry.metrics import Metrics
from contextengine_server.wire.damage import intact, readable

from .checks import ERROR, OK, Check

_AT_ONCE = 256
"""Messages that are read at once, at most."""
_SESSIONS = 256
_BETWEEN_S = 60.0
"""The pause before the first row, and between two rounds."""
_NAMED = 5
_KEPT_EVERY_S = 60.0
"""How often it is written down where the scrub is."""
_OWN = ""
"""The server's own, where stores keep states by tenant."""

log = structlog.get_logger("contextengine.scrub")


class RowsSeen(msgspec.Struct):
    """What was looked at, and what was found."""

    messages: int = 0
    summaries: int = 0
    damaged: int = 0
    """Messages and summaries that are not what their hashes name."""
    missing: int = 0
    """Sequences without a message."""
    rounds: int = 0
    """How often everything was read."""
    named: list[str] = []
    """Where the first of them are."""

    def check(self, name: str) -> Check:
        """What was seen, as a check of this name."""
        seen = f"{self.messages} messages and {self.summaries} summaries were read"
        if not self.damaged and not self.missing:
            return Check(name, OK, f"{seen}, all are what their hashes name")
        found = (
            f"{seen}: {self.damaged} are not what their hashes name, {self.missing} are not there:"
            f" {', '.join(self.named)}"
        )
        advice = (
            "`contextengine doctor --repair --backup FILE` brings back what a backup has, while no"
            " server has the store open."
        )
        return Check(name, ERROR, found, advice)


class _Place(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a round is, as it is stored."""

    tenant: str
    after: tuple[int, str, str] | None
    """The session that was read last, by its place in the list of its tenant."""
    session: tuple[str, str] | None = None
    """Agent and id of the one that is being read."""
    next: int = 0


class Scrub(Sweeper):
    """Reads all sessions, page by page, round by round; it goes on where it was after a failure of
    the store, and after a restart where it was a minute before. `rate`: messages a second, more
    than 0."""

    topic = "scrub"
    everywhere = False
    failure = "stored rows were not looked at"

    def __init__(
        self, store: Store, rate: int, events: Events | None = None, metrics: Metrics | None = None
    ) -> None:
        super().__init__()
        self.seen = RowsSeen(named=[])
        self._store, self._rate, self._events = store, rate, events
        self._tenants: list[str] | None = None
        """Those whose sessions are still to be read in this round; None: it has not begun."""
        self._after: tuple[int, str, str] | None = None
        self._done: tuple[int, str, str] | None = None
        """The session that was read last, of the first of these tenants."""
        self._heads: list[SessionHead] = []
        self._next = 0
        """The sequence that comes next of the first of these; 0: its first."""
        self._read = 0
        self._kept_s = -math.inf
        """When it was last written down where this is; before that, nothing was read of it."""
        if metrics is not None:
            self._register(metrics)

    def _register(self, metrics: Metrics) -> None:
        metrics.gauge(
            "contextengine.scrub.checked",
            lambda: self.seen.messages + self.seen.summaries,
            "Stored rows that were held against their hashes since the start",
            unit="{row}",
        )
        metrics.gauge(
            "contextengine.scrub.found",
            lambda: self.seen.damaged + self.seen.missing,
            "Of these, those that are damaged, and those that are not there",
            unit="{row}",
        )

    def found(self) -> Check:
        """What the doctor says of it."""
        return self.seen.check("scrub")

    async def sweep(self) -> None:
        """Reads the next page."""
        now_s = asyncio.get_running_loop().time()
        if self._kept_s == -math.inf:
            await self._find_place(await self._store.guards.state(_OWN))
            self._kept_s = now_s
        goes_on = await self.step()
        if not goes_on or now_s - self._kept_s >= _KEPT_EVERY_S:
            place = self._place() if goes_on else b""
            await self._store.guards.change(_OWN, lambda _: (place, None))
            self._kept_s = now_s

    def pause_s(self) -> float:
        """As long as the page before is to take, a second at least; a minute between rounds."""
        return max(1.0, self._read / self._rate) if self._heads else _BETWEEN_S

    async def step(self) -> bool:
        """Reads the next page; False where a round is over."""
        self._read = 0
        if not self._heads and not await self._more():
            self._tenants, self._after, self._done = None, None, None
            self.seen.rounds += 1
            return False
        head = self._heads[0]
        if head.archived:  # a hash of the whole is looked at when it comes back
            self._done = head.updated_ms, head.scope.agent, head.scope.session
            self._heads, self._next = self._heads[1:], 0
            return True
        first = self._next or (head.parent_sequence + 1 if head.parent_session else 1)
        last = min(first + max(1, min(_AT_ONCE, self._rate)) - 1, head.last_sequence)
        rows = await self._store.messages(head.scope, first, last, retired=True)
        over = last >= head.last_sequence
        summaries = await self._store.summaries(head.scope, retired=True) if over else []
        now = await self._store.head(head.scope)
        there = now is not None and now.incarnation == head.incarnation
        if there:
            damaged = await asyncio.to_thread(_damaged, rows)
            known = {row.sequence for row in rows}
            missing = [at for at in range(first, last + 1) if at not in known]
            unfit = [row.id for row in summaries if not intact(row)]
            self.seen.messages += len(rows)
            self.seen.summaries += len(summaries)
            self._note(head, damaged, missing, unfit)
        self._read, self._next = len(rows) + len(summaries), last + 1
        if over or not there:
            self._done = head.updated_ms, head.scope.agent, head.scope.session
            self._heads, self._next = self._heads[1:], 0
        return True

    async def _more(self) -> bool:
        """The next sessions; False where all were read. One that is written to meanwhile may be
        passed over until the next round."""
        if self._tenants is None:
            self._tenants = sorted(await self._store.tenants())
        while self._tenants:
            heads = await self._store.list_sessions(
                self._tenants[0], limit=_SESSIONS, after=self._after
            )
            if heads:
                newest = heads[-1]
                self._after = newest.updated_ms, newest.scope.agent, newest.scope.session
                self._heads = list(heads)
                return True
            self._tenants, self._after, self._done = self._tenants[1:], None, None
        return False

    def _place(self) -> bytes:
        tenants, heads = self._tenants or (), self._heads
        if not tenants:
            return b""
        session = (heads[0].scope.agent, heads[0].scope.session) if heads else None
        return msgspec.json.encode(_Place(tenants[0], self._done, session, self._next))

    async def _find_place(self, kept: bytes) -> None:
        """Goes on with a round that was begun before."""
        try:
            place = msgspec.json.decode(kept, type=_Place) if kept else None
        except msgspec.DecodeError:
            place = None  # of another version
        if place is None:
            return
        self._tenants = [one for one in sorted(await self._store.tenants()) if one >= place.tenant]
        if self._tenants[:1] == [place.tenant]:
            self._after = self._done = place.after
            if await self._more():
                scope = self._heads[0].scope
                self._next = place.next if (scope.agent, scope.session) == place.session else 0

    def _note(
        self, head: SessionHead, damaged: list[int], missing: list[int], unfit: list[str]
    ) -> None:
        if not (damaged or missing or unfit):
            return
        self.seen.damaged += len(damaged) + len(unfit)
        self.seen.missing += len(missing)
        scope, sequences = head.scope, sorted([*damaged, *missing])
        what = [*(f"message {at}" for at in sequences), *(f"summary {one}" for one in unfit)]
        where = f"session {scope.session} of agent {scope.agent} of tenant {scope.tenant}"
        room = _NAMED - len(self.seen.named)
        self.seen.named += [f"{one} of {where}" for one in what[: max(0, room)]]
        log.error("corrupt_row", session=scope.session, sequences=sequences[:_NAMED])
        if self._events is not None:
            first = sequences[0] if sequences else 0
            counts = {"rows": len(what), "first": first, "summaries": len(unfit)}
            self._events.emit("session:corrupt_row", *scope, revision=head.revision, counts=counts)


async def looked_through(store: Store) -> RowsSeen:
    """Everything that is stored, read once as fast as can be."""
    scrub = Scrub(store, _AT_ONCE)
    while await scrub.step():
        pass
    return scrub.seen


def _damaged(rows: Sequence[MessageRow]) -> list[int]:
    return [row.sequence for row in rows if readable(row) is None]
