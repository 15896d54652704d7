"""The store in one SQLite file, for one process."""

from .store import SqliteStore

__all__ = ["SqliteStore"]
