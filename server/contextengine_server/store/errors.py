"""Why a store could not do what was asked."""

from __future__ import annotations

from collections.abc import Sequence

from contextengine_server.context.scope import Scope
from contextengine_server.store.rows import StoredReply


class StoreError(Exception):
    """The store could not do what was asked."""


class RevisionConflict(StoreError):
    """The session is at another revision, or in another incarnation, than the commit expected."""

    def __init__(self, scope: Scope, expected: int, actual: int | None) -> None:
        super().__init__(f"{scope.session}: expected revision {expected}, found {actual}")
        self.scope, self.expected, self.actual = scope, expected, actual


class ParentGone(StoreError):
    """What the commit stands on is not there, or lives another life by now. Nothing was written."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(f"{scope.session} is gone, or another session has its name")
        self.scope = scope


class DuplicateHostIds(StoreError):
    """Messages of the commit carry host ids that live rows of the session have. Nothing was
    written."""

    def __init__(self, ids: Sequence[str]) -> None:
        super().__init__(f"{len(ids)} message ids are stored already")
        self.ids = tuple(ids)


class DuplicateRequest(StoreError):
    """The request id was answered before. Nothing was written."""

    def __init__(self, stored: StoredReply) -> None:
        super().__init__(f"request id {stored.request_id!r} was answered before")
        self.stored = stored


class HasDependents(StoreError):
    """Other sessions stand on the one to delete."""

    def __init__(self, sessions: Sequence[str]) -> None:
        super().__init__(f"{len(sessions)} sessions stand on it: {', '.join(sessions[:5])}")
        self.sessions = tuple(sessions)


class StoreUnavailable(StoreError):
    """The store cannot write or read now (disk full, I/O error, closed). Nothing was changed,
    unless it is StoreUncertain."""


class StoreUncertain(StoreUnavailable):
    """The tie to the database was cut while a change was committed, and the database could not be
    asked in time what became of it: it was written as a whole, or not at all. A store raises it
    only where it cannot find out by itself. The next look at the head tells: it names its
    commit."""


class StoreRefused(StoreError):
    """The database must not be opened: damaged, foreign, newer than this program, in use, out of
    reach; the text says what to do."""


class StoreInUse(StoreRefused):
    """Another process has the database open, and it cannot be shared."""


class TooManyChildren(StoreError):
    """The parent has as many live children as it may have. Nothing was written."""
