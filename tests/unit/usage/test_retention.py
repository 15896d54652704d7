"""How long a prefix should be kept: promoted when a session has proved itself, taken back when it
does not grow, and begun anew when the cache is gone."""

from __future__ import annotations

import pytest

from contextengine_server.usage.retention import LONG_MS, SHORT_MS, CacheHistory

NOW = 1_700_000_000_000


def after(
    turns: int, *, read: int = 100, first_write: int = 0, known: CacheHistory | None = None
) -> CacheHistory:
    """So many turns of one call each, a minute apart."""
    history = known or CacheHistory()
    start = history.turns
    for turn in range(start, start + turns):
        write = first_write if turn == 0 else 0
        history = history.reported(turn, read, write, NOW + turn * 60_000)
    return history


def test_two_turns_with_reads_are_short_and_three_long() -> None:
    assert [after(turns).long for turns in range(5)] == [False, False, False, True, True]


def test_without_reads_nothing_is_proved() -> None:
    assert not after(3, read=0).long
    assert not after(50, read=0).long


def test_a_first_turn_that_wrote_much_proves_it_with_the_second() -> None:
    assert after(2, first_write=20_001).long
    assert not after(2, first_write=20_000).long
    assert not after(1, first_write=50_000).long
    assert not after(2, first_write=50_000, read=0).long


def test_calls_of_one_turn_are_one_turn() -> None:
    history = CacheHistory()
    for call in range(10):
        history = history.reported(1, 100, 0, NOW + call)
    assert (history.turns, history.long) == (1, False)


def test_five_turns_without_growth_make_it_short_and_one_beyond_lifts_it() -> None:
    proven = after(3, read=1_000)
    # The turn of the promotion is one of them, and a turn counts when it is over.
    flat = [after(turns, read=1_100, known=proven).long for turns in range(7)]
    assert flat == [True, True, True, True, True, False, False]
    short = after(6, read=1_100, known=proven)
    assert not short.long
    assert not after(1, read=1_100, known=short).long
    assert after(1, read=1_101, known=short).long
    grown = after(3, read=1_101, known=proven)
    assert after(2, read=1_000, known=grown).long, "they are counted in a row"


@pytest.mark.parametrize(("history", "kept_ms"), [(after(1), SHORT_MS), (after(3), LONG_MS)])
def test_exactly_the_time_to_live_is_kept_and_a_millisecond_more_is_gone(
    history: CacheHistory, kept_ms: int
) -> None:
    last = history.last_ms
    assert not history.expired(last + kept_ms)
    assert history.expired(last + kept_ms + 1)
    assert history.reported(99, 5, 6, last + kept_ms).turns == history.turns + 1
    anew = history.reported(99, 5, 6, last + kept_ms + 1)
    assert (anew.turns, anew.reads, anew.first_write, anew.long) == (1, 5, 6, False)


def test_nothing_is_gone_where_nothing_was() -> None:
    assert not CacheHistory().expired(NOW)
