"""The servers that the tests of commands have."""

from tests.unit.commands.conftest import other, rows, serve, server

__all__ = ["other", "rows", "serve", "server"]
