"""The fixtures of this room."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integration.assemble.asking import shared
from tests.integration.harness import House

from .family import Family

__all__ = ["shared"]


@pytest.fixture
def family(shared: House, request: pytest.FixtureRequest) -> Family:
    """A parent and its children, of the test's own, in the module's service."""
    return Family(shared, request.node.name)


@pytest.fixture
def family_in(request: pytest.FixtureRequest) -> Callable[[House], Family]:
    """The same in another service."""
    return lambda house: Family(house, request.node.name)
