"""What commits are named, and what a store asks of one before it writes anything."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from operator import methodcaller
from secrets import token_bytes

from contextengine_server.store.errors import StoreError
from contextengine_server.store.rows import COMMIT_ID, Commit

_NUMBER = 8
COMMIT_IDS: Iterator[bytes] = map(
    token_bytes(COMMIT_ID - _NUMBER).__add__, map(methodcaller("to_bytes", _NUMBER, "big"), count())
)
"""Names for commits, no two the same: the process by chance, its commits by number. Whoever asks
the system for chance gives up the interpreter, and beside busy threads waits for it again."""


def check(change: Commit) -> None:
    """Raises StoreError where a commit is at odds with itself."""
    head = change.head
    if not head.scope.complete:
        raise StoreError(f"{head.scope}: a session needs a tenant, an agent and an id")
    if head.archived:
        raise StoreError(f"{head.scope.session}: its rows are in the archive, and come back first")
    if change.bind_key and not head.session_key:
        raise StoreError(f"{head.scope.session}: bind_key needs a session key in the head")
    if change.parent is not None and not (
        change.parent.scope.complete and change.parent.incarnation
    ):
        raise StoreError(f"{head.scope.session}: a parent needs a scope and an incarnation")
    if change.debt is not None and change.debt.scope != head.scope:
        raise StoreError(
            f"{head.scope.session}: a debt of another session, {change.debt.scope.session}"
        )
