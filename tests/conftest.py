"""Properties look as hard as tests.properties.profiles says, wherever they stand; and the engines
are those of this tree."""

from tests import entry_points
from tests.properties import profiles

__all__ = ["entry_points", "profiles"]
