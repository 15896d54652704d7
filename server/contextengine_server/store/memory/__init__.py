"""The store in memory: for tests, for trying things out, and for what need not last."""

from .store import MemoryStore
from .tables import Tables

__all__ = ["MemoryStore", "Tables"]
