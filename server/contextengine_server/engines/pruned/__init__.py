"""Session pruning: old results of tools are shown in short once a provider's cache has ended,
whatever engine serves (docs/semantics.md#session-pruning)."""

from .engine import PrunedEngine
from .rules import PruningRules

__all__ = ["PrunedEngine", "PruningRules"]
