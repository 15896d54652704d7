"""The fixtures of this room."""

from tests.integration.assemble.asking import session, shared

__all__ = ["session", "shared"]
