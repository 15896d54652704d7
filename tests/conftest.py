"""Properties look as hard as tests.properties.profiles says, wherever they stand."""

from tests.properties import profiles

__all__ = ["profiles"]
