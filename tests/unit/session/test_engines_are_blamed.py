"""What is an engine's failure, and what is the caller's."""

from __future__ import annotations

import pytest

from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.engines.failure import EngineBroken, blamed
from contextengine_server.errors import RowNotFound

DAG = DagEngine(DagOptions())


def test_what_is_wrong_with_the_request_is_no_failure_of_an_engine() -> None:
    wrong = RowNotFound("current_message_id: is not stored")
    with pytest.raises(RowNotFound) as told:
        blamed(DAG.id, wrong)
    assert told.value is wrong


def test_what_an_engine_throws_is_told_by_its_type() -> None:
    thrown = KeyError("what somebody wrote")
    broken = blamed(DAG.id, thrown)
    assert (broken.engine_id, str(broken), broken.law) == ("dag", "KeyError", 0)
    assert broken.__cause__ is thrown


def test_a_law_that_broke_stays_named() -> None:
    broken = EngineBroken("mine", "law 5: 7 tokens too many", 5)
    assert blamed(DAG.id, broken) is broken
