"""Dates in a query: how they are read, and that they order what matches about as well."""

from __future__ import annotations

from datetime import datetime

import pytest

from contextengine_server.context.scope import Scope
from contextengine_server.recall.score.dates import DATED, Date, dated, dates_in
from contextengine_server.store.search import DocumentKind, Match, SearchSpan

SPAN = SearchSpan(Scope("t", "a", "s"), DocumentKind.MESSAGE, 1, 60, 1)


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("what was said on 2023-05-08?", [Date(2023, 5, 8)]),
        ("the plan of 2023-05", [Date(2023, 5)]),
        ("on 8 May 2023", [Date(2023, 5, 8)]),
        ("on the 8th of May", [Date(0, 5, 8)]),
        ("on May 8, 2023", [Date(2023, 5, 8)]),
        ("in May", [Date(0, 5)]),
        ("in Sept. 2022 or in 2021", [Date(2022, 9), Date(2021)]),
        ("in sep 2022", [Date(2022, 9)]),
        ("since June", [Date(0, 6)]),
        ("December and January", [Date(0, 12), Date(0, 1)]),
        ("may I march on", []),
        ("decide on a version 2023-", []),
        ("error 2019 at line 12:30", []),
    ],
)
def test_the_dates_of_a_query(text: str, dates: list[Date]) -> None:
    assert dates_in(text) == dates


def at(place: int, day: str = "") -> Match:
    """A match on a day, a minute before it ends."""
    time = int(datetime.fromisoformat(f"{day}T23:59:00+00:00").timestamp() * 1000) if day else None
    return Match(SPAN, place, 0, "text", time_ms=time)


def test_what_was_said_then_counts_a_little_more() -> None:
    scored = [(0.5, at(1, "2023-05-08")), (0.5, at(2, "2023-05-09")), (0.5, at(3))]
    assert dated(scored, []) == scored
    assert [score for score, _ in dated(scored, [Date(2023, 5, 8)])] == pytest.approx(
        [0.5 * (1 + DATED), 0.5, 0.5]
    )
    assert [score for score, _ in dated(scored, [Date(0, 5)])] == pytest.approx(
        [0.5 * (1 + DATED), 0.5 * (1 + DATED), 0.5]
    )


def test_a_time_out_of_the_calendar_is_no_date() -> None:
    assert not Date(0, 5).holds(10**18)


def test_a_date_does_not_outweigh_words() -> None:
    scored = [(0.5, at(1, "2023-05-08")), (0.6, at(2, "2022-01-01"))]
    best = max(dated(scored, [Date(2023, 5, 8)]), key=lambda one: one[0])
    assert best[1].place == 2
