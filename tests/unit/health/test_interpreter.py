"""How long threads wait for the interpreter."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from contextengine_server.health import interpreter


@pytest.fixture
def as_it_was() -> Iterator[None]:
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("as_it_was")
def test_only_a_process_that_serves_is_told() -> None:
    sys.setswitchinterval(0.005)
    interpreter.hurry(True)
    assert sys.getswitchinterval() == 0.005
    interpreter.serve()
    told = [sys.getswitchinterval()]
    for hurried in (True, False):
        interpreter.hurry(hurried)
        told.append(sys.getswitchinterval())
    assert told == pytest.approx([0.001, 0.0002, 0.001])
