"""What names a request."""

from __future__ import annotations

import pytest

from contextengine_server.api.messages import request_id
from contextengine_server.errors import InvalidField


@pytest.mark.parametrize("given", ["", "r1", "ü" * 128])
def test_what_may_name_a_request(given: str) -> None:
    assert request_id(given) == given


@pytest.mark.parametrize("given", ["ü" * 129, "a\0b", "\0"])
def test_what_may_not(given: str) -> None:
    """A NUL is refused here, since not every database keeps one in a text."""
    with pytest.raises(InvalidField, match="request_id"):
        request_id(given)
