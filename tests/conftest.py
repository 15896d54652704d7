"""Properties look as hard as tests.properties.profiles says, wherever they stand; and the engines
are those of this tree. The transport is the one that is asked for."""

from tests import entry_points, transports
from tests.properties import profiles

__all__ = ["entry_points", "profiles", "transports"]
