"""What a store does with children that sessions spawned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from contextengine_server.context.scope import Scope
from contextengine_server.store.rows import Commit, EndedSpawn, Spawn


class SpawnRecords(Protocol):
    """Which children there are."""

    async def prepare(self, spawn: Spawn, commit: Commit, most_live: int) -> Spawn:
        """Writes a spawn and the commit that makes its child, both or neither. Where the parent was
        asked with this request id before, writes nothing and answers that spawn.

        Raises TooManyChildren, what `Commits.commit` raises, and RevisionConflict where the parent
        is gone."""

    async def find(self, tenant: str, token: str) -> Spawn | None:
        """A spawn by its token; None where there is none."""

    async def asked(self, parent: Scope, request_id: str) -> Spawn | None:
        """The spawn that a request of this id made; None where there is none."""

    async def newest_of(self, child: Scope) -> Spawn | None:
        """How a session was spawned; None where it was not."""

    async def live_children(self, parent: Scope) -> int:
        """How many live children a session has."""


class SpawnLives(Protocol):
    """How long children live, and what their tokens are worth.

    A child that is taken back is erased like a deleted session, and its key named as before, where
    it has no messages of its own and nobody stands on it; else it stays as it is, and only the
    token is void.
    """

    async def start(self, tenant: str, token: str, now_ms: int) -> bool:
        """The child is there. False where the spawn is over, or its time is."""

    async def spend(self, tenant: str, token: str, tokens: int) -> bool:
        """Counts tokens that were read, all or none of them. False where the grant does not reach,
        or the spawn is over."""

    async def end(
        self, tenant: str, token: str, reason: str, now_ms: int, *, take_back: bool
    ) -> EndedSpawn | None:
        """Ends a live spawn; None where there is none."""

    async def expire(self, now_ms: int, limit: int) -> Sequence[EndedSpawn]:
        """Of every tenant, ends spawns whose time has passed: takes a child back that never
        started; one that wrote since gets its time anew. Forgets those that ended long ago
        (`rows.KEPT_MS`). At most `limit` of either."""

    async def expire_one(self, tenant: str, token: str, now_ms: int) -> EndedSpawn | None:
        """The same for one spawn, where it is due; None where it goes on."""


class Spawns(SpawnRecords, SpawnLives, Protocol):
    """The spawns of tenants. They go with their parent and with their child when that is
    deleted."""
