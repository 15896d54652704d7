"""The `pipeline` engine: a window of turns, dead results evicted, old ones masked, the middle
summarized."""

from ..registration import Registration
from .engine import PipelineEngine
from .findings import findings
from .options import PipelineOptions

__all__ = ["ENGINE", "PipelineEngine", "PipelineOptions"]

ENGINE = Registration("pipeline", PipelineOptions, PipelineEngine, findings=findings)
