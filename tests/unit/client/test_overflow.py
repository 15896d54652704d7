"""What providers say of a prompt that is too long, and with how much it is tried again."""

from __future__ import annotations

import pytest

from contextengine.overflow import is_refusal, said, smaller
from contextengine.types import AssembleResponse, Budget, BudgetReport, WindowBudget

REFUSALS = [
    "This model's maximum context length is 128000 tokens. However, you asked for 130000",
    "Error code: 400 - {'error': {'code': 'context_length_exceeded'}}",
    "prompt is too long: 208310 tokens > 200000 maximum",
    "The input token count (1052880) exceeds the maximum number of tokens allowed (1048576)",
    "the request exceeds the available context size, try increasing it",
    "Your input exceeds the context window of this model",
    "Input is too long for requested model.",
]
OTHERS = ["rate limit reached: too many tokens per minute", "max_tokens is too large", "overloaded"]


@pytest.mark.parametrize("text", REFUSALS)
def test_a_refusal_for_length_is_known(text: str) -> None:
    assert is_refusal(text)
    assert is_refusal(ValueError(text))


@pytest.mark.parametrize("text", OTHERS)
def test_other_refusals_are_not(text: str) -> None:
    assert not is_refusal(ValueError(text))


def test_an_error_is_looked_at_with_what_it_was_raised_from() -> None:
    error = RuntimeError("the model failed")
    error.__cause__ = ValueError(REFUSALS[0])
    assert is_refusal(error)
    assert said(error).splitlines()[1].startswith("ValueError: This model's")


def _refused(window: int, messages: int) -> AssembleResponse:
    report = BudgetReport(window=window, messages=messages)
    return AssembleResponse(estimated_tokens=6_000, budget=report)


def test_of_a_window_what_stands_outside_is_kept() -> None:
    asked = Budget(window=WindowBudget(window=18_000, output_reserve=500))
    less = smaller(asked, _refused(window=16_000, messages=11_000))
    assert (less.window.window, less.window.output_reserve) == (16_000 - 8_000, 500)
    assert asked.window.window == 18_000


def test_a_window_that_leaves_less_than_half_already_stays() -> None:
    assert smaller(None, _refused(window=16_000, messages=2_000)).window.window == 16_000


def test_a_budget_of_messages_alone_is_half_of_what_was_shown() -> None:
    asked = Budget(message_tokens=9_000, other_tokens=70)
    less = smaller(asked, _refused(window=0, messages=9_000))
    assert (less.message_tokens, less.other_tokens) == (3_000, 70)
