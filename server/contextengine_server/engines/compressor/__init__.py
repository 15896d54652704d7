"""The `compressor` engine: the head and the tail stay, what lies between is one summary that every
compaction brings up to date."""

from ..registration import Registration
from .engine import CompressorEngine
from .findings import findings
from .options import CompressorOptions

__all__ = ["ENGINE", "CompressorEngine", "CompressorOptions"]

ENGINE = Registration("compressor", CompressorOptions, CompressorEngine, findings=findings)
