"""When Python looks for circles."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from contextengine_server.health.collector import OLD_TURNS, TURNS, YOUNG, resting, spare


@pytest.fixture
def usual() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


def test_a_start_is_not_looked_at_on_the_way(usual: None) -> None:
    with resting():
        assert not gc.isenabled()
        spare()
        assert gc.isenabled()
        assert gc.get_threshold() == (YOUNG, TURNS, OLD_TURNS)
    assert gc.isenabled()


def test_a_start_that_fails_leaves_the_collector_as_it_was() -> None:
    with pytest.raises(RuntimeError, match="refused"), resting():
        raise RuntimeError("refused")
    assert gc.isenabled()
