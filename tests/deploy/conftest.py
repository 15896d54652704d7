"""The server and the shells of the acceptance tests."""

from tests.acceptance.conftest import alone, server, shell

__all__ = ["alone", "server", "shell"]
