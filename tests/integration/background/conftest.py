"""The fixtures of this room."""

from tests.integration.assemble.asking import session, shared

from .sessions import alone

__all__ = ["alone", "session", "shared"]
