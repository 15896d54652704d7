"""The `dag` engine: lossless store, summaries in place of old history, budgeted assembly."""

from ..registration import Registration
from .engine import DagEngine
from .findings import findings
from .options import DagOptions

__all__ = ["ENGINE", "DagEngine", "DagOptions"]

ENGINE = Registration("dag", DagOptions, DagEngine, findings=findings)
