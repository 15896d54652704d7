"""Archiving by rule: which sessions nobody has used for long, and bringing them into the archive
(docs/archive.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import msgspec
import structlog

from contextengine_server.archive.objects import ObjectsUnavailable
from contextengine_server.archive.parcel import ObjectDamaged
from contextengine_server.context.scope import Scope
from contextengine_server.engines.patterns import glob_matches
from contextengine_server.session.sweeper import Sweeper
from contextengine_server.store.archives import ArchivedObject
from contextengine_server.store.errors import StoreError, StoreUnavailable
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import SessionHead

log = structlog.get_logger("contextengine.archive")

_PAGE = 100
"""Heads that are read at once."""

PutAway = Callable[[SessionHead], Awaitable[ArchivedObject | None]]
"""Brings a session into the archive as it was seen; None where it stays."""


class ArchiveRule(msgspec.Struct, frozen=True):
    """After how long whose sessions go. Names are globs."""

    after_ms: int
    tenant: str = "**"
    agent: str = "**"
    session: str = "**"

    def names(self, scope: Scope) -> bool:
        """True where the rule is for this session."""
        asked = ((self.tenant, scope.tenant), (self.agent, scope.agent))
        return all(glob_matches(*one) for one in (*asked, (self.session, scope.session)))


class PutAwaySession(msgspec.Struct, frozen=True):
    """A session that went into the archive; `bytes` of its object, 0 where it only would go."""

    head: SessionHead
    bytes: int


class ArchiveSessions(msgspec.Struct, frozen=True):
    """Brings the sessions into the archive that the rules let go, and erases the objects that are
    needed no more."""

    store: Store
    rules: Sequence[ArchiveRule]
    clock_ms: Callable[[], int]
    put_away: PutAway
    clean: Callable[[], Awaitable[int]]

    async def run(self, *, dry_run: bool = False) -> AsyncIterator[PutAwaySession]:
        """What went, one after the other; with `dry_run`, what would. One that cannot be written as
        it is stays, and keeps no other from it. Raises ObjectsUnavailable."""
        if not dry_run:
            await self.clean()
        async for head in self._due():
            if dry_run:
                yield PutAwaySession(head, 0)
                continue
            try:
                row = await self.put_away(head)
            except StoreUnavailable:
                raise
            except (StoreError, ObjectDamaged) as error:
                log.error("not_archived", session=head.scope.session, detail=str(error))
                continue
            if row is not None:
                yield PutAwaySession(head, row.size)

    async def _due(self) -> AsyncIterator[SessionHead]:
        now_ms = self.clock_ms()
        for tenant in await self.store.tenants() if self.rules else ():
            for rule in self.rules:
                if not glob_matches(rule.tenant, tenant):
                    continue
                after: tuple[int, str, str] | None = None
                while heads := await self.store.archives.idle(
                    tenant, now_ms - rule.after_ms, _PAGE, after=after
                ):
                    for head in heads:
                        if next(one for one in self._naming(head.scope)) is rule:
                            yield head
                    last = heads[-1]
                    after = last.updated_ms, last.scope.agent, last.scope.session

    def _naming(self, scope: Scope) -> Sequence[ArchiveRule | None]:
        """The rules that name a session, and None."""
        return [*(rule for rule in self.rules if rule.names(scope)), None]


class Archivist(Sweeper):
    """Archives while the server runs."""

    topic = "archive"
    everywhere = False
    failure = "sessions were not archived"

    def __init__(self, archive: ArchiveSessions, interval_s: float) -> None:
        super().__init__()
        self._archive, self._interval_s = archive, interval_s

    async def sweep(self) -> int:
        """Archives once, and says what went."""
        count = 0
        try:
            async for gone in self._archive.run():
                count += 1
                scope = gone.head.scope
                log.info("archived", agent=scope.agent, session=scope.session, bytes=gone.bytes)
        except ObjectsUnavailable as error:
            log.error("archive_unavailable", detail=str(error))
        return count

    def pause_s(self) -> float:
        """As it is set."""
        return self._interval_s
