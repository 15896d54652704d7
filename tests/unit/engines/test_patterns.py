"""Sessions by pattern: what a glob matches, and which pattern is the nearer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.engines.assignments import Assigned, TenantAssignments
from contextengine_server.engines.patterns import (
    SessionFacts,
    SessionPattern,
    literal,
    pattern_of,
)

TEXTS = st.text(st.sampled_from("ab:*?\\.\n"), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("glob", "matching", "others"),
    [
        (
            "agent:*:cron:**",
            ["agent:a:cron:x", "agent:a:cron:x:y"],
            ["agent:a:b:cron:x", "agent:a"],
        ),
        ("bot-?", ["bot-1"], ["bot-", "bot-12", "bot-:"]),
        ("**", ["a:b", "x"], [""]),
        ("a.c", ["a.c"], ["abc"]),
        (r"a\*", ["a*"], ["ab", "a\\*"]),
        ("gpt-5*", ["gpt-5", "gpt-5-mini"], ["openai/gpt-5"]),
    ],
)
def test_what_a_glob_matches(glob: str, matching: list[str], others: list[str]) -> None:
    pattern = SessionPattern(key=glob)
    assert all(pattern.matches(SessionFacts("a", "s", key)) for key in matching)
    assert not any(pattern.matches(SessionFacts("a", "s", key)) for key in others)


@given(TEXTS, TEXTS)
def test_a_literal_matches_its_text_alone(text: str, other: str) -> None:
    pattern = SessionPattern(session=literal(text))
    assert pattern.matches(SessionFacts("a", text))
    assert pattern.matches(SessionFacts("a", other)) == (text == other)


@given(st.builds(SessionPattern, TEXTS, TEXTS, TEXTS, TEXTS, st.integers(0), st.integers(0)))
def test_a_row_names_its_pattern(pattern: SessionPattern) -> None:
    assert pattern_of(pattern.row) == pattern


@pytest.mark.parametrize(
    ("window", "matches"), [(None, False), (9, False), (10, True), (20, True), (21, False)]
)
def test_a_window_is_within_its_limits(window: int | None, matches: bool) -> None:
    facts = SessionFacts("a", "s", window=window)
    assert SessionPattern(min_window=10, max_window=20).matches(facts) == matches
    assert not SessionPattern(model="**", min_window=1).matches(facts)


def test_from_far_to_near() -> None:
    patterns = [
        SessionPattern(key="agent:main:*"),
        SessionPattern(key="agent:**"),
        SessionPattern(key="agent:**", model="gpt*"),
        SessionPattern(agent="m**"),
    ]
    places = [("", ""), ("main", ""), ("main", "s")] + [("", one.row) for one in patterns]
    found = TenantAssignments({place: Assigned(f"{place}", {}, {}) for place in places})
    facts = SessionFacts("main", "s", "agent:main:x", "gpt-5")
    near = [(level, row.engine_id) for level, row in found.levels(facts)]
    rows = [f"{('', one.row)}" for one in patterns]
    assert near == [
        ("tenant", "('', '')"),
        ("pattern", rows[3]),
        ("agent", "('main', '')"),
        ("pattern", rows[1]),
        ("pattern", rows[0]),
        ("pattern", rows[2]),
        ("session", "('main', 's')"),
    ]
    assert [level for level, _ in found.levels(SessionFacts("other"))] == ["tenant"]
