"""The `layered` engine: what is old goes by its worth, in four layers."""

from ..registration import Registration
from .engine import LayeredEngine
from .findings import findings
from .options import LayeredOptions

__all__ = ["ENGINE", "LayeredEngine", "LayeredOptions"]

ENGINE = Registration("layered", LayeredOptions, LayeredEngine, findings=findings)
