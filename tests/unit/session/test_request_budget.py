"""The budget of a request: which window binds, its parts, what is refused."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contextengine_server.context.budget import Budget, BudgetRules, ModelTokens, ReferenceTokens
from contextengine_server.errors import BudgetImpossible, FieldViolation, InvalidField
from contextengine_server.session.assembly.budget import (
    BudgetDefaults,
    BudgetModel,
    BudgetSpec,
    available_of,
    budget_of,
    counted_spec,
    target,
)
from contextengine_server.session.encoding import Encoding
from contextengine_server.session.session import Session
from contextengine_server.session.state import ModelFacts, SessionState
from contextengine_server.store.rows import SessionHead
from contextengine_server.tokens import TokenCounter
from tests.unit.commands.house import scope

NOTHING_KEPT = BudgetRules(output_reserve=0, margin_ratio=0.0, margin_floor=0, rot_ratio=0.0)
DEFAULTS = BudgetDefaults(window=50_000, rules=NOTHING_KEPT)
AIM = BudgetModel("m", "p", 1.0, None, 0)
PARTS = (
    "message_tokens",
    "window",
    "system_prompt",
    "tools",
    "output_reserve",
    "safety_margin",
    "rot_buffer",
)


def aim(session: Session, model: str, provider: str) -> BudgetModel:
    return target(session.head, session.state, model, provider)


def session(model: str = "", provider: str = "", facts: ModelFacts | None = None) -> Session:
    """A session that runs on this model."""
    made = Session(scope(), Encoding(TokenCounter("o200k_base")))
    made.head = SessionHead(scope(), "life", 1, 0, model=model, provider=provider)
    made.state = replace(SessionState(), model=facts or ModelFacts())
    return made


# Which window binds.


@pytest.mark.parametrize(
    ("spec", "aim", "defaults", "window", "source", "assumed"),
    [
        (None, AIM, DEFAULTS, 50_000, "default", True),
        (None, replace(AIM, window=40_000), DEFAULTS, 40_000, "model", False),
        (30_000, replace(AIM, window=40_000), DEFAULTS, 30_000, "request", False),
        (60_000, replace(AIM, window=40_000), DEFAULTS, 60_000, "request", False),
        (30_000, AIM, replace(DEFAULTS, window_cap=20_000), 20_000, "cap", False),
        (None, AIM, replace(DEFAULTS, window_cap=20_000), 20_000, "cap", True),
        (30_000, AIM, replace(DEFAULTS, window_cap=30_000), 30_000, "request", False),
        (30_000, AIM, replace(DEFAULTS, window_cap=40_000), 30_000, "request", False),
        (30_000, replace(AIM, served=25_000), DEFAULTS, 25_000, "served", False),
        (30_000, replace(AIM, served=30_000), DEFAULTS, 30_000, "request", False),
        (30_000, replace(AIM, served=35_000), DEFAULTS, 30_000, "request", False),
        (1, AIM, DEFAULTS, 1, "request", False),
    ],
)
def test_the_smallest_window_binds_and_says_where_it_is_from(
    spec: int | None,
    aim: BudgetModel,
    defaults: BudgetDefaults,
    window: int,
    source: str,
    assumed: bool,
) -> None:
    budget = budget_of(BudgetSpec(window=spec), aim, defaults)
    assert (budget.window, budget.source, budget.assumed) == (window, source, assumed)
    assert budget.available == window


def test_of_cap_and_served_window_the_smaller_binds() -> None:
    capped = replace(DEFAULTS, window_cap=20_000)
    served = replace(AIM, served=10_000)
    assert budget_of(BudgetSpec(), served, capped).source == "served"
    assert budget_of(BudgetSpec(), replace(AIM, served=20_000), capped).source == "cap"


def test_a_window_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidField, match=r"^budget\.window\.window: is 0: a window has at least"):
        budget_of(BudgetSpec(window=0), AIM, DEFAULTS)


# Parts.


def test_every_part_is_taken_from_the_window() -> None:
    spec = BudgetSpec(
        window=10_000,
        system_prompt=1,
        tools=20,
        output_reserve=300,
        safety_margin=4_000,
        rot_buffer=500,
    )
    assert budget_of(spec, AIM, DEFAULTS) == Budget(
        available=ModelTokens(10_000 - 4_821),
        window=ModelTokens(10_000),
        source="request",
        system_prompt=ModelTokens(1),
        tools=ModelTokens(20),
        output_reserve=ModelTokens(300),
        safety_margin=ModelTokens(4_000),
        rot_buffer=ModelTokens(500),
    )


def test_what_was_counted_is_brought_into_the_models_tokens() -> None:
    spec = BudgetSpec(
        window=10_000,
        system_prompt=10,
        system_counted=ReferenceTokens(100),
        tools=20,
        tools_counted=ReferenceTokens(200),
    )
    budget = budget_of(spec, replace(AIM, factor=1.5), DEFAULTS)
    assert (budget.system_prompt, budget.tools) == (160, 320)
    assert budget.available == 10_000 - 480
    assert budget.factor == 1.5


def test_what_is_not_given_is_kept_free_by_the_rules() -> None:
    rules = BudgetRules(output_reserve=1_000, margin_ratio=0.1, margin_floor=10, rot_ratio=0.2)
    budget = budget_of(BudgetSpec(window=10_000), AIM, BudgetDefaults(rules=rules))
    parts = (budget.output_reserve, budget.safety_margin, budget.rot_buffer)
    assert parts == (1_000, 1_000, 2_000)
    small = budget_of(
        BudgetSpec(window=10_000), replace(AIM, max_output=400), BudgetDefaults(rules=rules)
    )
    assert small.output_reserve == 400


def test_a_final_budget_is_what_is_available() -> None:
    budget = budget_of(BudgetSpec(message_tokens=900, window=7), replace(AIM, factor=1.5), DEFAULTS)
    assert budget == Budget(ModelTokens(900), factor=1.5)
    assert budget.reference == 600


@pytest.mark.parametrize("part", PARTS)
def test_no_part_is_negative(part: str) -> None:
    with pytest.raises(InvalidField) as refused:
        budget_of(replace(BudgetSpec(), **{part: -1}), AIM, DEFAULTS, "turn.budget")
    assert refused.value.violations == (
        FieldViolation(f"turn.budget.{part}", "is -1: tokens cannot be negative"),
    )


@pytest.mark.parametrize("part", PARTS[2:])
def test_a_part_of_nothing_takes_nothing(part: str) -> None:
    assert budget_of(replace(BudgetSpec(), **{part: 0}), AIM, DEFAULTS).available == 50_000


def test_a_budget_of_nothing_is_refused() -> None:
    with pytest.raises(BudgetImpossible, match=r"^turn\.budget\.message_tokens: is 0") as refused:
        budget_of(BudgetSpec(message_tokens=0), AIM, DEFAULTS, "turn.budget")
    assert refused.value.violations == (
        FieldViolation("turn.budget.message_tokens", "must be positive"),
    )


def test_parts_that_fill_the_window_are_refused() -> None:
    with pytest.raises(
        BudgetImpossible, match=r"^turn\.budget\.window: .*larger window"
    ) as refused:
        budget_of(BudgetSpec(window=100, tools=100), AIM, DEFAULTS, "turn.budget")
    (violation,) = refused.value.violations
    assert violation.field == "turn.budget.window"
    assert "tools 100" in violation.description


# The model.


def test_what_usage_taught_holds_for_the_sessions_own_model() -> None:
    facts = ModelFacts(window=9_000, max_output=700, factor=1.25, learned=2.0, served_window=8_000)
    own = BudgetModel("mine", "ours", 1.25, 700, 9_000, 8_000)
    assert aim(session("mine", "ours", facts), "", "") == own
    assert aim(session("mine", "ours", facts), "mine", "") == own
    assert aim(session("mine", "ours", facts), "mine", "other") == replace(own, provider="other")


def test_of_another_model_only_what_is_known_of_it_holds() -> None:
    facts = ModelFacts(window=9_000, max_output=700, factor=1.25, served_window=8_000)
    own = session("mine", "ours", facts)
    assert aim(own, "unheard-of", "") == BudgetModel("unheard-of", "", 1.0, None, 0)
    known = aim(own, "claude-sonnet-4-5", "")
    assert (known.model, known.provider) == ("claude-sonnet-4-5", "anthropic")
    assert known.window == 200_000
    assert known.max_output
    assert known.factor > 1.0
    assert known.served == 0
    assert aim(own, "claude-sonnet-4-5", "mine").provider == "mine"


def test_of_the_own_model_what_nobody_said_is_what_is_known_of_it() -> None:
    known = aim(session("claude-sonnet-4-5"), "", "")
    assert known.provider == "anthropic"
    assert known.max_output
    assert aim(session("claude-sonnet-4-5", "mine"), "", "").provider == "mine"


def test_a_session_that_does_not_exist_yet_has_no_model() -> None:
    new = session()
    new.head = None
    assert aim(new, "", "") == BudgetModel("", "", 1.0, None, 0)
    assert aim(new, "", "p").provider == "p"


# What is left.


def test_what_is_left_is_in_the_reference_encoding() -> None:
    facts = ModelFacts(window=9_000, factor=1.5)
    assert available_of(session("mine", "", facts), DEFAULTS) == 6_000
    given = BudgetSpec(message_tokens=300)
    assert available_of(session("mine", "", facts), DEFAULTS, given) == 200


def test_something_is_always_left() -> None:
    tiny = BudgetSpec(message_tokens=1)
    assert available_of(session("mine", "", ModelFacts(factor=4.0)), DEFAULTS, tiny) == 1


# Counting.


async def test_texts_are_counted_where_they_were_given() -> None:
    encoding = Encoding(TokenCounter("o200k_base"))
    system, tools = ("be brief", "and kind"), ('{"name":"exec"}',)
    counted = await counted_spec(
        BudgetSpec(system_texts=system, tool_texts=tools, system_prompt=3), encoding
    )
    assert counted.system_counted == sum(map(encoding.count, system))
    assert counted.tools_counted == sum(map(encoding.count, tools))
    assert counted.system_prompt == 3
    only = await counted_spec(BudgetSpec(tool_texts=tools), encoding)
    assert (only.system_counted, only.tools_counted) == (0, counted.tools_counted)
    plain = BudgetSpec(window=5, system_counted=ReferenceTokens(7))
    assert await counted_spec(plain, encoding) is plain
