"""Commits, and a writer that is held while they come."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import contextmanager

from contextengine_server.context.scope import Scope
from contextengine_server.store.rows import Commit, MessageRow, SessionHead
from contextengine_server.store.sqlite import SqliteStore
from contextengine_server.store.sqlite.writer import Writer


def commit(session: str, revision: int = 1, size: int = 100, host_id: str = "") -> Commit:
    """The commit that brings a session to a revision with one message."""
    head = SessionHead(Scope("acme", "main", session), "i", revision, revision)
    row = MessageRow(revision, 1, 1, b"h" * 32, b"x" * size, revision, host_id=host_id)
    return Commit(head, revision - 1, messages=[row])


def writer_of(store: SqliteStore) -> Writer:
    assert store._open is not None
    return store._open.writer


@contextmanager
def held(store: SqliteStore):
    """The writer is busy, so that what comes meanwhile is one group: a commit is queued by the call
    itself, before it is awaited."""
    begun, going = threading.Event(), threading.Event()

    def holds(db: sqlite3.Connection) -> None:
        begun.set()
        going.wait(60)

    writer_of(store).submit(holds, lambda result: None)
    assert begun.wait(60)
    try:
        yield
    finally:
        going.set()
