"""Retention by rule: which sessions are old or too many, and erasing them
(docs/deploying.md#retention)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec
import structlog

from contextengine_server.commands.sessions.delete import Delete
from contextengine_server.context.scope import Scope
from contextengine_server.engines.patterns import glob_matches
from contextengine_server.errors import RevisionMismatch, SessionHasDependents
from contextengine_server.session.address import Ref
from contextengine_server.session.sweeper import Sweeper
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import SessionHead
from contextengine_server.store.session_pages import every_session

log = structlog.get_logger("contextengine.retention")


class RetentionRule(msgspec.Struct, frozen=True):
    """How long and how many sessions are kept of whom; None: no limit. Names are globs."""

    tenant: str = "**"
    agent: str = "**"
    session: str = "**"
    max_age_ms: int | None = None
    max_sessions: int | None = None
    """Of each agent."""
    max_bytes: int | None = None
    """Of each agent, as `GetStatus` counts them."""
    keep_pinned: bool = True

    def names(self, scope: Scope) -> bool:
        """True where the rule is for this session."""
        asked = ((self.tenant, scope.tenant), (self.agent, scope.agent))
        return all(glob_matches(*one) for one in (*asked, (self.session, scope.session)))


class Outdated(msgspec.Struct, frozen=True):
    """A session that a rule lets go, and by which of its limits: `age`, `count` or `bytes`."""

    head: SessionHead
    limit: str
    bytes: int


class _Kept(msgspec.Struct):
    """What was kept so far of an agent under a rule."""

    sessions: int = 0
    bytes: int = 0


async def outdated(store: Store, rules: Sequence[RetentionRule], now_ms: int) -> list[Outdated]:
    """The sessions that the rules let go, each before those that it stands on. One that a session
    which stays stands on stays as well."""
    found: dict[Scope, Outdated] = {}
    for tenant in await store.tenants() if rules else ():
        kept: dict[tuple[int, str], _Kept] = {}
        async for head in every_session(store, tenant):
            number = next((at for at, rule in enumerate(rules) if rule.names(head.scope)), None)
            if number is None:
                continue
            before = kept.setdefault((number, head.scope.agent), _Kept())
            one = await _judged(store, rules[number], head, before, now_ms)
            if one is not None:
                found[head.scope] = one
    return await _in_order(store, found)


async def _judged(
    store: Store, rule: RetentionRule, head: SessionHead, kept: _Kept, now_ms: int
) -> Outdated | None:
    """Whether a rule lets a session go, after what it kept of newer ones; else it is kept too."""
    size = await store.size(head.scope)
    limit = ""
    if rule.max_age_ms is not None and now_ms - head.updated_ms > rule.max_age_ms:
        limit = "age"
    elif rule.max_sessions is not None and kept.sessions >= rule.max_sessions:
        limit = "count"
    elif rule.max_bytes is not None and kept.sessions and kept.bytes + size > rule.max_bytes:
        limit = "bytes"
    if not limit or (rule.keep_pinned and await _shows_pinned(store, head)):
        kept.sessions, kept.bytes = kept.sessions + 1, kept.bytes + size
        return None
    return Outdated(head, limit, size)


async def _shows_pinned(store: Store, head: SessionHead) -> bool:
    """Whether a session shows a message that is labelled `pinned`. One in the archive stays there
    for that."""
    if head.archived:
        row = await store.archives.object_of(head)
        return row is not None and row.pinned
    return bool(await store.pinned_atoms(head.scope, head.last_sequence + 1))


async def _in_order(store: Store, found: dict[Scope, Outdated]) -> list[Outdated]:
    """Those that nothing which stays stands on, each behind those that stand on it."""
    standing = {scope: set(await store.dependents(scope)) for scope in found}
    going = set(found)
    while stays := {scope for scope in going if standing[scope] - going}:
        going -= stays
    ordered: list[Outdated] = []
    while ready := [scope for scope in found if scope in going and not standing[scope] & going]:
        ordered += [found[scope] for scope in ready]
        going.difference_update(ready)
    return ordered


Erase = Callable[[SessionHead], Awaitable[bool]]
"""Erases a session as it was seen; False where it was written to since."""


def erasing(delete: Delete) -> Erase:
    """Erases as `Sessions.Delete` does."""

    async def erase(head: SessionHead) -> bool:
        scope = head.scope
        try:
            await delete.run(
                scope.tenant,
                Ref(scope.agent, scope.session),
                expected_revision=head.revision,
                cascade=False,
            )
        except (SessionHasDependents, RevisionMismatch):
            return False
        return True

    return erase


class Prune(msgspec.Struct, frozen=True):
    """Erases the sessions that the rules let go."""

    store: Store
    rules: Sequence[RetentionRule]
    clock_ms: Callable[[], int]
    erase: Erase

    async def run(self, *, dry_run: bool = False) -> list[Outdated]:
        """What was erased; with `dry_run`, what would be. Who is written to meanwhile stays."""
        found = await outdated(self.store, self.rules, self.clock_ms())
        return [one for one in found if dry_run or await self.erase(one.head)]


class Pruner(Sweeper):
    """Prunes while the server runs."""

    topic = "retention"
    everywhere = False
    failure = "sessions were not pruned"

    def __init__(self, prune: Prune, interval_s: float, *, dry_run: bool) -> None:
        super().__init__()
        self._prune, self._interval_s, self._dry_run = prune, interval_s, dry_run

    async def sweep(self) -> list[Outdated]:
        """Prunes once, and says what it did."""
        done = await self._prune.run(dry_run=self._dry_run)
        for one in done:
            log.info(
                "outdated" if self._dry_run else "erased",
                agent=one.head.scope.agent,
                session=one.head.scope.session,
                limit=one.limit,
                bytes=one.bytes,
            )
        return done

    def pause_s(self) -> float:
        """As it is set."""
        return self._interval_s
