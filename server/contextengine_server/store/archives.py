"""What a store knows of the archive: which object holds a session's rows while they are elsewhere.

The head of an archived session stays where it was, with a name of its own, so that whoever changes
the session or holds it in memory sees that it moved; revision and incarnation are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Protocol

import msgspec
from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.commits import COMMIT_IDS
from contextengine_server.store.rows import LINE, MessageRow, SessionHead, SummaryRow


class Stage(IntEnum):
    """Where an object is on its way."""

    RESERVED = 0
    """It may be there; nothing relies on it."""
    HELD = 1
    """It holds a session, or did."""
    DOOMED = 2
    """It is to be erased, and nothing relies on it ever again."""
    FREED = 3
    """Its session came back; it stays for a while, so that a backup of before finds it."""


class ArchivedObject(msgspec.Struct, frozen=True):
    """An object of the archive, which is never changed once it is written."""

    scope: Scope
    """Whose rows it holds."""
    name: str
    """Of no other object, ever."""
    incarnation: str
    """The life of the session."""
    digest: bytes
    """SHA-256 of its bytes."""
    size: int
    """Its bytes."""
    messages: int
    """How many rows it holds, retired ones included."""
    summaries: int
    pinned: bool
    """Whether the session shows a message that is labelled `pinned`."""
    created_ms: int
    stage: int = Stage.RESERVED
    freed_ms: int = 0
    """When its session came back to the store, milliseconds since 1970 UTC; 0: it did not."""


class ArchiveTotals(msgspec.Struct, frozen=True):
    """What the archive holds."""

    sessions: int = 0
    bytes: int = 0
    """Of their objects."""
    doomed: int = 0
    """Objects that are to be erased."""


class Archives(Protocol):
    """Which sessions are in the archive. Whoever moves one writes the object in between."""

    async def idle(
        self,
        tenant: str,
        before_ms: int,
        limit: int,
        *,
        after: tuple[int, str, str] | None = None,
    ) -> list[SessionHead]:
        """Heads of the tenant's sessions that may go: nobody wrote to them and none of them came
        back since a time, they have messages of their own, and owe no work but such as is held.
        Those written longest ago come first; `after` is (updated_ms, agent, session) of the last
        one seen."""

    async def reserve(self, row: ArchivedObject) -> None:
        """Makes an object known before it is written."""

    async def move(self, before: SessionHead, row: ArchivedObject) -> SessionHead:
        """Takes all messages and summaries of a session, and what search made of them, out of the
        store, where it still is at this head and the object is reserved; answers the head then.
        Raises RevisionConflict where it is not, and StoreError where the object holds another
        number of rows."""

    async def put_back(
        self,
        before: SessionHead,
        messages: Sequence[MessageRow],
        summaries: Sequence[SummaryRow],
        now_ms: int,
    ) -> SessionHead:
        """Puts the rows of an archived session back, where it still is at this head; answers the
        head then. Raises RevisionConflict."""

    async def object_of(self, head: SessionHead) -> ArchivedObject | None:
        """The object that an archived session is in; None where there is none of that name."""

    async def release(self, tenant: str, *, stale_ms: int, kept_ms: int) -> list[ArchivedObject]:
        """Dooms what is needed no more: objects reserved before `stale_ms` that no session went
        into, and those whose session came back before `kept_ms`. Answers all that are doomed, of a
        tenant or of all (empty); those of a session that is deleted are from that moment on."""

    async def erased(self, rows: Sequence[ArchivedObject]) -> None:
        """Forgets doomed objects, which are not there any more."""

    async def totals(self) -> ArchiveTotals:
        """What the archive holds, over all tenants."""


def moved(head: SessionHead, archived: str) -> SessionHead:
    """The head of a session that goes into an object, or comes back (empty): of the same revision,
    and with a name of its own."""
    return replace(
        head,
        archived=archived,
        commit_id=next(COMMIT_IDS),
        ancestors=(head.ancestors + head.commit_id)[-LINE:],
    )
