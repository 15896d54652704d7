"""Reported usage teaches what the tokens of the messages cost, whatever else was sent with them.
See docs/semantics.md#models-and-usage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from contextengine_server.context.budget import ModelTokens, ReferenceTokens
from contextengine_server.context.scope import Scope
from contextengine_server.session.assembly.budget import SYSTEM, TOOLS, Outside
from contextengine_server.session.model import Report, Sent, noting, set_model
from contextengine_server.session.state import SessionState
from contextengine_server.store.rows import SessionHead
from contextengine_server.testing.engine.real_sessions import count, real_sessions
from contextengine_server.testing.engine.views import entry_of

CODING = Path(__file__).parents[2] / "data" / "coding_session.pi.jsonl"
HEAD = SessionHead(Scope("t", "a", "s"), "life", 1, 1, model="the-model")


def sent_with(tokens: int, given: int = 0, counted: int = 0, named: int = 0) -> Sent:
    """A prompt of so many tokens, and what is known of the rest: in the model's tokens, in those of
    the reference encoding, and what of it was named."""
    outside = Outside(ModelTokens(given), ReferenceTokens(counted), named)
    return Sent(ReferenceTokens(tokens), outside)


def told(state: SessionState, billed: int, sent: Sent, other: int | None = None) -> SessionState:
    """The state after a bill."""
    return noting(HEAD, state, Report(input_tokens=billed, billed=True, sent=sent, other=other))


sizes = st.lists(st.integers(0, 150_000), min_size=1, max_size=40)
outside = st.integers(0, 200_000)
named = st.sampled_from([0, SYSTEM, TOOLS])


@given(sizes, outside, named, st.integers(0, 30_000), st.integers(0, 30_000))
def test_what_stands_outside_unknown_never_moves_an_exact_factor(
    sizes: list[int], unknown: int, named: int, given_tokens: int, counted: int
) -> None:
    state = SessionState()
    for size in sizes:
        sent = Sent(
            ReferenceTokens(size),
            Outside(ModelTokens(given_tokens), ReferenceTokens(counted), named),
        )
        state = told(state, size + counted + given_tokens + unknown, sent)
        assert state.model.learned == pytest.approx(1.0, abs=0.01)


@given(sizes, st.integers(0, 200_000), st.integers(0, 30_000))
def test_nor_does_what_the_budget_knew(sizes: list[int], given_tokens: int, counted: int) -> None:
    state = SessionState()
    for size in sizes:
        sent = Sent(
            ReferenceTokens(size),
            Outside(ModelTokens(given_tokens), ReferenceTokens(counted), SYSTEM | TOOLS),
        )
        state = told(state, size + counted + given_tokens, sent)
        assert state.model.learned == pytest.approx(1.0, abs=0.01)


@given(sizes, outside)
def test_nor_does_what_the_caller_counted(sizes: list[int], other: int) -> None:
    state = SessionState()
    for size in sizes:
        # What the budget knew does not count twice.
        sent = Sent(
            ReferenceTokens(size), Outside(ModelTokens(other // 2), ReferenceTokens(77), SYSTEM)
        )
        state = told(state, size + other, sent, other=other)
        assert state.model.learned == pytest.approx(1.0, abs=0.01)


@given(st.floats(0.6, 2.5), outside)
def test_a_true_factor_is_learned_from_differences(factor: float, unknown: int) -> None:
    state = SessionState()
    for step in range(40):
        size = 3_000 * step
        state = told(state, round(size * factor) + unknown, sent_with(size))
    assert state.model.learned == pytest.approx(factor, rel=0.02)


def test_a_prompt_that_changes_its_tools_begins_anew() -> None:
    state = SessionState()
    for step in range(30):
        unknown = 2_000 if step < 15 else 90_000
        state = told(state, 1_000 * step + unknown, sent_with(1_000 * step))
        assert state.model.learned == pytest.approx(1.0, abs=0.01)


def test_the_same_assembly_named_again_and_again_teaches_nothing() -> None:
    state = SessionState()
    for step in range(10):
        state = told(state, 20_000 + 500 * step, sent_with(8_000))
    assert state.model.learned == 1.0


def test_unlike_bills_are_not_compared() -> None:
    state = told(
        SessionState(),
        30_000,
        sent_with(5_000, 0, 0, 0),
    )
    state = told(
        state,
        5_000 + 9_000,
        sent_with(14_000, 20_000, 0, SYSTEM),
    )
    assert state.model.learned == 1.0


@pytest.mark.parametrize(
    "another", [replace(sent_with(9_000), another_model=True), sent_with(9_000)]
)
def test_a_bill_of_another_model_teaches_nothing(another: Sent) -> None:
    ran = "" if another.another_model else "other-model"
    bill = Report(input_tokens=20_000, billed=True, sent=another, other=0, ran=ran)
    assert noting(HEAD, SessionState(), bill).model.learned == 1.0
    own = Report(
        input_tokens=20_000,
        billed=True,
        sent=sent_with(9_000),
        other=0,
        ran="the-model",
    )
    assert noting(HEAD, SessionState(), own).model.learned > 1.0


def test_another_model_is_compared_with_bills_of_its_own() -> None:
    state = told(SessionState(), 50_000, sent_with(20_000))
    assert state.model.newest_bill is not None
    _, state = set_model(HEAD, state, "gpt-4o", "", None, None)
    assert (state.model.first_bill, state.model.newest_bill) == (None, None)


def test_the_state_comes_back_as_it_was() -> None:
    state = told(
        SessionState(),
        50_000,
        sent_with(20_000, 5, 6, TOOLS),
    )
    assert SessionState.decode(state.encode()) == state


def _bills() -> list[tuple[int, int]]:
    """Of each reply of the coding session: the messages before it, counted here, and its bill."""
    [coding] = real_sessions(CODING)
    lines = CODING.read_text().splitlines()
    entries = [one for one in map(json.loads, lines) if one["type"] == "message"]
    bills, sent = [], 0
    for entry, row in zip(entries, coding, strict=True):
        usage = entry["message"].get("usage", {})
        billed = sum(usage.get(name, 0) for name in ("input", "cacheRead", "cacheWrite"))
        if billed:
            bills.append((sent, billed))
        sent += entry_of(row, count).tokens
    return bills


@pytest.mark.parametrize("start", [1.0, 1.22])
@pytest.mark.parametrize("known", [True, False])
def test_bills_of_the_coding_session_are_foreseen(start: float, known: bool) -> None:
    bills = _bills()
    (sent, billed), *_ = bills
    outside = billed - round(1.22 * sent)
    state = SessionState()
    state = SessionState(model=type(state.model)(factor=start, learned=start))
    for at, (sent, billed) in enumerate(bills):
        first = state.model.first_bill
        if known:
            foreseen = sent * state.model.learned + outside
        else:
            foreseen = (sent - first.sent) * state.model.learned + first.billed if first else billed
        if at >= 20:
            assert foreseen == pytest.approx(billed, rel=0.05), at
        state = told(state, billed, sent_with(sent), other=outside if known else None)
    assert len(bills) > 400
