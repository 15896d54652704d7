"""Between the rooms and an engine: whatever goes wrong there is the engine's failure."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.plan import Plan
from contextengine_server.context.scope import Scope
from contextengine_server.context.view import View
from contextengine_server.engines.contract import CompactionGoal, CompactionStep
from contextengine_server.engines.failure import EngineBroken
from contextengine_server.engines.guard import GuardedEngine
from contextengine_server.engines.legacy import LegacyEngine, LegacyOptions
from contextengine_server.testing.engine.random_sessions import text
from contextengine_server.testing.engine.views import entries_of, folded
from contextengine_server.testing.oracle.pairs import ViewRow

VIEW = View(Scope("tenant", "agent", "session"))
CALLS: dict[str, tuple[Any, ...]] = {
    "reach": (1_000,),
    "addition": ([],),
    "plan": (VIEW, 1_000, 0),
    "due": (VIEW, 1_000, None),
    "compaction": (VIEW, CompactionGoal(1_000)),
}


def guarded(method: str, answer: Any) -> GuardedEngine:
    """An engine one of whose methods answers, or raises, this."""

    def answers(self: object, *arguments: Any) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    made = type("Made", (LegacyEngine,), {method: answers})
    return GuardedEngine(made(LegacyOptions()))


@pytest.mark.parametrize("method", CALLS)
def test_what_an_engine_throws_is_its_failure(method: str) -> None:
    thrown = KeyError("what somebody wrote")
    with pytest.raises(EngineBroken) as caught:
        getattr(guarded(method, thrown), method)(*CALLS[method])
    assert (caught.value.engine_id, caught.value.how, caught.value.law) == ("legacy", "KeyError", 0)
    assert caught.value.__cause__ is thrown
    assert "somebody" not in str(caught.value)


@pytest.mark.parametrize("thrown", [SystemExit, GeneratorExit])
def test_one_that_would_end_the_process_has_failed(thrown: type[BaseException]) -> None:
    with pytest.raises(EngineBroken, match=thrown.__name__):
        guarded("due", thrown()).due(*CALLS["due"])


@pytest.mark.parametrize("method", CALLS)
def test_an_answer_of_another_kind_is_none(method: str) -> None:
    with pytest.raises(EngineBroken, match="answered a tuple"):
        getattr(guarded(method, ()), method)(*CALLS[method])


def test_a_step_must_be_there() -> None:
    with pytest.raises(EngineBroken, match="answered steps 0 to 3 of 0"):
        guarded("compaction", CompactionStep(0, 3, 100)).compaction(*CALLS["compaction"])


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"first": "0"}, "Expected `int`, got `str` - at `$.first`"),
        ({"last": 0.5}, "Expected `int`, got `float` - at `$.last`"),
        ({"target_tokens": 0}, "leaves a summary 0 tokens"),
        ({"depth": -1}, "Expected `int` >= 0 - at `$.depth`"),
        ({"previous": object()}, "Encoding objects of type object is unsupported"),
        ({"replaces": ("s1", "s2")}, "replaces 2 summaries that the view has not got"),
    ],
)
def test_a_step_must_be_one(changed: dict[str, Any], why: str) -> None:
    """What is wrong with it would break the commit of the summary, as a defect of the server."""
    view = folded(
        entries_of([ViewRow(1, pb.Message(role=pb.ROLE_USER, parts=[text(9, "hello")]), 1)])
    )
    step = replace(CompactionStep(0, 0, 100), **changed)
    with pytest.raises(EngineBroken) as caught:
        guarded("compaction", step).compaction(view, CompactionGoal(1_000))
    assert why in str(caught.value)


def test_what_is_right_passes() -> None:
    plain = LegacyEngine(LegacyOptions())
    guard = GuardedEngine(plain)
    for method, arguments in CALLS.items():
        assert getattr(guard, method)(*arguments) == getattr(plain, method)(*arguments)
    assert guard.plan(VIEW, ReferenceTokens(10)) == Plan(())
    assert guard.options is plain.options


async def test_what_disposing_throws_is_its_failure() -> None:
    class Clinging(LegacyEngine):
        async def dispose(self) -> None:
            raise RuntimeError("no")

    with pytest.raises(EngineBroken, match="RuntimeError"):
        await GuardedEngine(Clinging(LegacyOptions())).dispose()
