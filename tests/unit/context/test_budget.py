"""The budget's algebra, its cells and the grid of the cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.context.budget import (
    CELLS_PER_OCTAVE,
    Budget,
    BudgetRules,
    ImpossibleBudget,
    ModelTokens,
    ReferenceTokens,
    cell,
    in_model,
    window_budget,
)

windows = st.integers(8_000, 1_000_000)
parts = st.none() | st.integers(0, 300_000)


def test_a_window_without_parts() -> None:
    budget = window_budget(200_000, source="request")
    assert (budget.output_reserve, budget.safety_margin, budget.rot_buffer) == (
        8_192,
        10_000,
        50_000,
    )
    assert budget.available == 200_000 - 8_192 - 10_000 - 50_000


def test_the_margin_has_a_floor_and_the_reserve_ends_at_what_the_model_can_write() -> None:
    budget = window_budget(32_000, source="request", max_output=4_096)
    assert (budget.output_reserve, budget.safety_margin, budget.rot_buffer) == (4_096, 2_048, 8_000)


def test_every_part_is_subtracted_and_named() -> None:
    budget = window_budget(
        100_000, source="model", assumed=True, system_prompt=1_000, tools=2_000,
        output_reserve=4_000,
        safety_margin=500, rot_buffer=10_000, factor=1.25,
    )  # fmt: skip
    assert (budget.available, budget.window) == (82_500, 100_000)
    assert (budget.source, budget.assumed, budget.factor) == ("model", True, 1.25)
    assert (budget.system_prompt, budget.tools, budget.output_reserve) == (1_000, 2_000, 4_000)
    assert (budget.safety_margin, budget.rot_buffer) == (500, 10_000)
    assert budget.reference == 66_000


def test_rules_are_the_defaults() -> None:
    rules = BudgetRules(output_reserve=1_000, margin_ratio=0.1, margin_floor=10, rot_ratio=0.5)
    budget = window_budget(10_000, source="request", rules=rules)
    assert (budget.output_reserve, budget.safety_margin, budget.rot_buffer, budget.available) == (
        1_000,
        1_000,
        5_000,
        3_000,
    )


@given(
    windows,
    st.integers(0, 200_000),
    st.integers(0, 200_000),
    parts,
    parts,
    parts,
    st.none() | st.integers(1, 128_000),
)
def test_the_parts_and_what_is_left_are_the_window(
    window: int,
    system: int,
    tools: int,
    reserve: int | None,
    margin: int | None,
    rot: int | None,
    most: int | None,
) -> None:
    def ask() -> Budget:
        return window_budget(
            window, source="request", system_prompt=system, tools=tools, output_reserve=reserve,
            max_output=most,
            safety_margin=margin, rot_buffer=rot,
        )  # fmt: skip

    given_parts = system + tools + (reserve or 0) + (margin or 0) + (rot or 0)
    if given_parts >= window:
        with pytest.raises(ImpossibleBudget):
            ask()
        return
    strict = (
        min(8_192, most or 8_192) if reserve is None else reserve,
        max(window * 5 // 100, 2_048) if margin is None else margin,
        window // 4 if rot is None else rot,
    )
    budget = ask()
    found = (budget.output_reserve, budget.safety_margin, budget.rot_buffer)
    assert budget.available == window - system - tools - sum(found)
    assert budget.available * 4 >= window - given_parts
    assert (budget.system_prompt, budget.tools, budget.window) == (system, tools, window)
    if (window - system - tools - sum(strict)) * 4 > window - given_parts + 4:
        # The margin and the rot buffer are rounded together.
        assert found[:2] == strict[:2]
        assert strict[2] <= found[2] <= strict[2] + 1
    # What was given stays as it is; only defaults give way.
    for value, asked, default in zip(found, (reserve, margin, rot), strict, strict=True):
        assert value == asked if asked is not None else 0 <= value <= default + 1


all_windows = st.integers(1_000, 10_000_000) | st.integers(1_000, 100_000)


@given(all_windows, all_windows, parts, parts, parts, st.none() | st.integers(1, 128_000))
def test_a_larger_window_never_leaves_less(
    one: int, other: int, reserve: int | None, margin: int | None, rot: int | None, most: int | None
) -> None:
    def left(window: int) -> int:
        try:
            return window_budget(
                window, source="request", output_reserve=reserve, max_output=most,
                safety_margin=margin, rot_buffer=rot,
            ).available  # fmt: skip
        except ImpossibleBudget:
            return 0

    smaller, larger = sorted((one, other))
    assert left(smaller) <= left(larger)
    assert left(larger) <= left(larger + 1)


@given(st.integers(1_000, 200_000), st.integers(0, 200_000), st.integers(0, 1_000))
def test_a_smaller_system_prompt_never_leaves_less(window: int, system: int, less: int) -> None:
    def left(system: int) -> int:
        try:
            return window_budget(window, source="request", system_prompt=system).available
        except ImpossibleBudget:
            return 0

    assert left(system) <= left(max(0, system - less)) <= left(system) + less


def test_no_window_is_a_cliff() -> None:
    """Where the defaults used to take nearly all, and where they used to give way at once."""
    lefts = [window_budget(w, source="request").available for w in (12_000, 14_000, 16_000)]
    assert lefts == [3_000, 3_500, 4_000]
    assert window_budget(13_654, source="request").available == 3_414
    assert window_budget(32_768, source="request", system_prompt=14_335).available == 4_609
    assert window_budget(32_768, source="request", system_prompt=14_336).available == 4_608


@given(st.integers(1, 1_000_000), st.integers(0, 2_000_000))
def test_a_reserve_that_reaches_the_window_is_refused(window: int, more: int) -> None:
    with pytest.raises(ImpossibleBudget, match=r"output_reserve|nothing is left"):
        window_budget(window, source="request", output_reserve=window + more)


@given(st.integers(1, 8_000))
def test_any_window_leaves_something_where_only_defaults_take(window: int) -> None:
    assert window_budget(window, source="request").available > 0


def test_counts_come_into_the_models_tokens_to_the_nearest() -> None:
    assert [in_model(ReferenceTokens(tokens), 1.2) for tokens in (0, 1, 2, 3)] == [0, 1, 2, 4]
    # Where the type checker took this, it would take any count for any other.
    assert in_model(ModelTokens(3), 2.0) == 6  # type: ignore[arg-type]


@given(st.integers(1, 10_000_000), st.floats(0.2, 5))
def test_the_reference_is_never_more_than_the_factor_allows(available: int, factor: float) -> None:
    reference = Budget(ModelTokens(available), factor=factor).reference
    assert reference * factor <= available * (1 + 1e-9)
    assert (reference + 1) * factor > available * (1 - 1e-9)


@given(st.integers(1, 10_000_000), st.integers(1, 10_000_000))
def test_cells_are_steps_of_an_eighth_of_an_octave(budget: int, other: int) -> None:
    lower, upper = sorted((budget, other))
    assert cell(lower) <= cell(upper)
    assert cell(budget) <= budget
    assert cell(cell(budget)) == cell(budget)
    # An edge is rounded down to a whole token.
    assert budget / (cell(budget) + 1) < 2 ** (1 / CELLS_PER_OCTAVE) + 1e-9


def test_an_octave_has_eight_cells() -> None:
    for octave in (64, 1_024, 65_536):
        edges = {cell(budget) for budget in range(octave, 2 * octave)}
        assert len(edges) == CELLS_PER_OCTAVE
        assert octave in edges
    assert [cell(budget) for budget in (-5, 0, 1, 7, 8, 9)] == [
        0,
        0,
        1,
        7,
        8,
        9 if cell(9) == 9 else 8,
    ]
