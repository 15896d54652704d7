"""The `dag` engine: lossless store, summaries in place of old history, budgeted assembly."""

from .engine import DagEngine

__all__ = ["DagEngine"]
