"""What a store keeps of children: who spawned them, what their tokens open, and until when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from contextengine_server.context.scope import Scope

if TYPE_CHECKING:
    from contextengine_server.store.interface import Commit

KEPT_MS = 24 * 3600 * 1000
"""How long a spawn is remembered after its end, so that a late repetition of its request starts
nothing anew."""


@dataclass(slots=True, frozen=True)
class Spawn:
    """A child, as it was prepared. Times are milliseconds since 1970 UTC. `agent` and `session`
    name the child."""

    tenant: str
    token: str
    """As it was given out: the same request again is answered the same. It opens rows of this very
    database alone."""
    agent: str
    session: str
    parent_agent: str
    parent_session: str
    parent_revision: int
    """The token opens the parent's rows as of this revision of the parent,"""
    parent_sequence: int
    """up to this sequence."""
    fork: bool
    """True: the child's view begins with the parent's. False: it was empty."""
    depth: int
    created_ms: int
    ttl_ms: int
    expire_ms: int
    request_id: str = ""
    digest: bytes = b""
    """Of the request: another request under the same id is told apart by it."""
    note: str = ""
    """Why it is another mode than asked; empty: it is as asked."""
    inherited_tokens: int = 0
    previous_session: str = ""
    """What the child's key named before; empty: nothing."""
    objective: str = ""
    transcripts: bytes = b"[]"
    """Of parent and child, as the host named them: opaque here."""
    grant_tokens: int = 0
    """How many of the parent's tokens the child may read; 0: none."""
    grant_depth: int = 0
    grant_expire_ms: int = 0
    """0: with the child."""
    used_tokens: int = 0
    started: bool = False
    """True once the token was shown at Bootstrap."""
    ended_ms: int = 0
    """0: it is live."""
    end_reason: str = ""

    @property
    def child(self) -> Scope:
        """The child."""
        return Scope(self.tenant, self.agent, self.session)

    @property
    def parent(self) -> Scope:
        """The parent."""
        return Scope(self.tenant, self.parent_agent, self.parent_session)


@dataclass(slots=True, frozen=True)
class Ended:
    """A spawn that is over, and whether its child is gone with it."""

    spawn: Spawn
    erased: bool


class TooManyChildren(Exception):
    """The parent has as many live children as it may have. Nothing was written."""


class Spawns(Protocol):
    """The spawns of tenants. They go with their parent and with their child when that is deleted.

    A child that is taken back is erased like a deleted session, and its key named as before, where
    it has no messages of its own and nobody stands on it; else it stays as it is, and only the
    token is void.
    """

    async def prepare(self, spawn: Spawn, commit: Commit, most_live: int) -> Spawn:
        """Writes a spawn and the commit that makes its child, both or neither. Where the parent was
        asked with this request id before, writes nothing and answers that spawn.

        Raises TooManyChildren, what `Store.commit` raises, and RevisionConflict where the parent is
        gone."""

    async def find(self, tenant: str, token: str) -> Spawn | None:
        """A spawn by its token; None where there is none."""

    async def asked(self, parent: Scope, request_id: str) -> Spawn | None:
        """The spawn that a request of this id made; None where there is none."""

    async def newest_of(self, child: Scope) -> Spawn | None:
        """How a session was spawned; None where it was not."""

    async def live_children(self, parent: Scope) -> int:
        """How many live children a session has."""

    async def start(self, tenant: str, token: str, now_ms: int) -> bool:
        """The child is there. False where the spawn is over, or its time is."""

    async def spend(self, tenant: str, token: str, tokens: int) -> bool:
        """Counts tokens that were read, all or none of them. False where the grant does not reach,
        or the spawn is over."""

    async def end(
        self, tenant: str, token: str, reason: str, now_ms: int, *, take_back: bool
    ) -> Ended | None:
        """Ends a live spawn; None where there is none."""

    async def expire(self, now_ms: int, limit: int) -> Sequence[Ended]:
        """Of every tenant, ends spawns whose time has passed: takes a child back that never
        started; one that wrote since gets its time anew. Forgets those that ended long ago. At most
        `limit` of either."""

    async def expire_one(self, tenant: str, token: str, now_ms: int) -> Ended | None:
        """The same for one spawn, where it is due; None where it goes on."""
