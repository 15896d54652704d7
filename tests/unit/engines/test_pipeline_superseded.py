"""What stands for a result that the model has asked for again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from contextengine_server.engines.pipeline.evictor import _superseded


def stale(part: int, by: int) -> Any:
    return SimpleNamespace(parts=[SimpleNamespace(part=part, by=by)])


@pytest.mark.timeout(20)
def test_a_message_whose_second_result_stands_for_its_first_ends_the_search() -> None:
    """Two parallel calls that ask for the same, their results in one message, shown in short."""
    view: Any = SimpleNamespace(
        observations=SimpleNamespace(stale={3: stale(0, 7), 7: stale(0, 7)})
    )
    asked: Any = SimpleNamespace(sequence=3, part=0)
    assert _superseded(view, asked, newest=9, offloaded={7}) == 0
    assert _superseded(view, asked, newest=9, offloaded=set()) == 7
