"""Properties look as hard as tests.properties.profiles says."""

from tests.properties import profiles

__all__ = ["profiles"]
