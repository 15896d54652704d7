"""What a refusal of a budget's numbers says: a range, and both its ends are taken."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from contextengine_proto.v1 import budget_pb2 as pb
from contextengine_server.api.requests import budget_spec
from contextengine_server.errors import InvalidField

MAKERS: dict[str, Callable[[int], pb.Budget]] = {
    "message_tokens": lambda number: pb.Budget(message_tokens=number),
    "window": lambda number: pb.Budget(window=pb.WindowBudget(window=number)),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("number", [-1, -(2**63), 2**62])
def test_the_range_that_a_refusal_names_is_taken(name: str, number: int) -> None:
    with pytest.raises(InvalidField) as refused:
        budget_spec(MAKERS[name](number))
    found = re.search(r"give (\d+) to (\d+)", refused.value.text)
    assert found is not None
    for end in found.groups():
        spec = budget_spec(MAKERS[name](int(end)))
        assert (spec.message_tokens or spec.window) == int(end) > 0
