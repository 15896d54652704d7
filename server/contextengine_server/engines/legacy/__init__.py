"""The `legacy` engine: pass-through assembly, compaction delegated to the host or built in."""

from .engine import LegacyEngine

__all__ = ["LegacyEngine"]
