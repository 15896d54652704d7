"""How compactions went, and whether another is tried: cooldowns, strikes, stand-ins in a row, and
the probe that ends a block. The numbers are those of Hermes's compressor."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.summarize.guards.attempts import ABORTS, PROBE_MS, Attempts
from contextengine_server.summarize.request import Failure

NOW, LIMIT = 1_700_000_000_000, 1_000
NEW = Attempts()


def failed(attempts: Attempts, kind: Failure, now_ms: int = NOW) -> Attempts:
    return attempts.failed(kind, now_ms, aborts=kind in ABORTS)


def compacted(attempts: Attempts, dropped: int = 0, now_ms: int = NOW) -> Attempts:
    return attempts.compacted(LIMIT, now_ms, dropped)


@pytest.mark.parametrize(
    ("kind", "seconds", "aborts"),
    [
        ("auth", 60, True),
        ("connection", 30, True),
        ("timeout", 60, True),
        ("busy", 60, False),
        ("overload", 60, True),
        ("malformed", 30, False),
        ("blank", 30, True),
        ("truncated", 60, True),
        ("other", 60, False),
    ],
)
def test_each_failure_has_its_cooldown(kind: Failure, seconds: int, aborts: bool) -> None:
    attempts = failed(NEW, kind)
    assert (attempts.cooling(NOW), attempts.aborts, attempts.failure) == (seconds, aborts, kind)
    assert attempts.blocked(NOW) == f"cooldown:{seconds}"
    assert attempts.blocked(NOW + 1_000) == f"cooldown:{seconds - 1}"
    assert attempts.blocked(NOW + seconds * 1_000) == ""


@pytest.mark.parametrize("kind", ["timeout", "busy", "truncated"])
def test_time_outs_and_cut_answers_climb_a_ladder_of_their_own(kind: Failure) -> None:
    attempts, waits = NEW, []
    for _ in range(4):
        attempts = failed(attempts, kind)
        waits.append(attempts.cooling(NOW))
    assert waits == [60, 300, 900, 900]
    assert failed(attempts, "auth").cooling(NOW) == 60
    assert failed(compacted(attempts), kind).cooling(NOW) == 60
    other: Failure = "busy" if kind == "truncated" else "truncated"
    assert failed(attempts, other).cooling(NOW) == 60


def test_two_compactions_without_effect_block_the_next() -> None:
    one = compacted(NEW).billed(LIMIT, 9, NOW)
    assert (one.strikes, one.blocked(NOW)) == (1, "")
    two = compacted(one).billed(LIMIT + 5, 9, NOW)
    assert (two.strikes, two.blocked(NOW)) == (2, "ineffective")
    assert compacted(one).billed(LIMIT - 1, 9, NOW).strikes == 0


def test_only_the_first_bill_after_a_compaction_judges_it() -> None:
    one = compacted(NEW).billed(LIMIT, 9, NOW)
    assert one.billed(LIMIT, 9, NOW) == one
    unbilled = compacted(one).billed(0, 9, NOW)
    assert unbilled.billed(LIMIT, 9, NOW).strikes == 1


def test_two_stand_ins_block_whatever_is_billed_and_a_model_ends_that() -> None:
    one = compacted(failed(NEW, "other"), dropped=7)
    assert (one.fallbacks, one.dropped) == (1, 7)
    assert one.cooling(NOW) == 60
    two = compacted(one, dropped=3).billed(5, 9, NOW + 60_000)
    assert two.blocked(NOW + 60_000) == "ineffective"
    healthy = compacted(two)
    assert (healthy.fallbacks, healthy.dropped, healthy.blocked(NOW)) == (0, 0, "")


def test_a_block_ends_with_a_probe_and_begins_anew_where_that_fails() -> None:
    struck = compacted(compacted(NEW).billed(LIMIT, 9, NOW)).billed(LIMIT, 9, NOW)
    later = NOW + PROBE_MS
    assert struck.blocked(later - 1) == "ineffective"
    assert struck.blocked(later) == ""
    again = compacted(struck, now_ms=later).billed(LIMIT, 9, later)
    assert again.blocked(later) == "ineffective"
    assert again.blocked(later + PROBE_MS) == ""
    assert compacted(struck, now_ms=later).billed(1, 9, later).blocked(later) == ""


def test_nobody_waits_for_a_clock_that_was_set_back() -> None:
    year = 365 * 24 * 3_600_000
    cooled = failed(NEW, "auth")
    assert cooled.blocked(NOW - year) == ""
    struck = compacted(compacted(NEW).billed(LIMIT, 9, NOW)).billed(LIMIT, 9, NOW)
    assert struck.blocked(NOW - year) == ""
    assert struck.blocked(NOW - 1) == ""  # a probe too early costs one call
    assert cooled.blocked(NOW - 1_000) == "cooldown:61"


def test_another_model_has_no_strikes_and_another_route_no_cooldown() -> None:
    struck = compacted(compacted(NEW).billed(LIMIT, 9, NOW)).billed(LIMIT, 9, NOW)
    bad = failed(compacted(struck, dropped=1), "auth")
    same, other = bad.switched(route=False), bad.switched(route=True)
    assert (same.strikes, same.limit, same.fallbacks, same.cooling(NOW)) == (0, 0, 1, 60)
    assert other == Attempts()


def test_an_estimate_waits_for_a_bill_while_hardly_anything_came() -> None:
    fitted = compacted(NEW).billed(LIMIT - 1, 50_000, NOW)
    assert fitted.defers(54_096, LIMIT)
    assert not fitted.defers(54_097, LIMIT)
    assert fitted.defers(60_000, 200_000)
    assert not compacted(fitted).defers(50_000, LIMIT)
    assert not compacted(NEW).billed(LIMIT, 50_000, NOW).defers(50_000, LIMIT)


@given(
    st.lists(
        st.one_of(
            st.sampled_from(["auth", "busy", "truncated", "other"]),
            st.integers(0, 2 * LIMIT),
            st.booleans(),
        ),
        max_size=12,
    )
)
def test_it_is_kept_as_it_is_and_time_alone_ends_every_block(events: list[object]) -> None:
    attempts, now_ms = NEW, NOW
    for event in events:
        now_ms += 1_000
        if isinstance(event, str):
            attempts = failed(attempts, event, now_ms)  # type: ignore[arg-type]
        elif isinstance(event, bool):
            attempts = compacted(attempts, int(event), now_ms)
        elif isinstance(event, int):
            attempts = attempts.billed(event, 9, now_ms)
    again = msgspec.json.decode(msgspec.json.encode(attempts), type=Attempts)
    assert again == attempts
    assert attempts.blocked(now_ms + 900_000) == ""
