"""The prefix cache goes on from what was joined for an epoch, and gives what joining from nothing
gives."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contextengine_server.context.layout import everything
from contextengine_server.context.plan import Keep, Plan, segment_slots
from contextengine_server.context.prefix import (
    MAX_PREFIXES,
    JoinedList,
    PrefixCache,
    Unjoined,
    chained,
)
from contextengine_server.context.work import Work, at_once
from contextengine_server.testing.engine.trial import Trial, trial_of
from tests.unit.engines.test_dag_compaction import said

STEPS = 24
ROWS = said(*[("user", 40), ("assistant", 60)] * (STEPS // 2))


def whole(one: Trial) -> Plan:
    return Plan(everything(one.view))


def expected(one: Trial, plan: Plan) -> tuple[list[bytes], list[bytes], list[int]]:
    """The frames, the names of every beginning, and the tokens of each, by the definition."""
    slots = [slot for segment in plan.segments for slot in segment_slots(segment, one.view)]
    sums = [sum(slot.tokens for slot in slots[:count]) for count in range(len(slots) + 1)]
    return [slot.frame for slot in slots], chained(slot.hash for slot in slots), sums


def check(joined: JoinedList, one: Trial, plan: Plan) -> None:
    frames, links, sums = expected(one, plan)
    assert joined.total == len(frames)
    assert joined.context_hash == links[-1]
    for count in range(len(frames) + 1):
        assert joined.after(count) == frames[count:]
        assert joined.tokens_of(count) == sums[count]
        assert joined.length_of(links[count]) == count
    assert joined.length_of(b"of another list") is None
    check_largest(joined, one, plan)


def check_largest(joined: JoinedList, one: Trial, plan: Plan) -> None:
    """Ten at most, each where it stands and of the step that it is of."""
    items = [
        (slot, step)
        for segment in plan.segments
        if isinstance(segment, Keep)
        for step in range(segment.first, segment.last + 1)
        for slot in one.view.atom(step).slots
    ]
    assert len(items) == joined.total
    order = sorted(range(len(items)), key=lambda at: (-items[at][0].tokens, at))[:10]
    assert [placed.index for placed in joined.largest] == order
    for placed in joined.largest:
        assert (placed.slot, placed.step) == items[placed.index]


def test_every_step_goes_on_from_the_last() -> None:
    one, cache = trial_of(ROWS[:1]), PrefixCache()
    for count in range(1, STEPS):
        joined = cache.join("epoch", whole(one), one.view)
        assert joined.begun is (count == 1)
        check(joined, one, whole(one))
        one.add(ROWS[count : count + 1])
    assert cache.size == 250 * (STEPS - 2), "all but the newest step are kept"


def test_of_two_lists_the_older_does_not_hold_the_newer() -> None:
    one, cache = trial_of(ROWS[:6]), PrefixCache()
    before = cache.join("epoch", whole(one), one.view)
    one.add(ROWS[6:10])
    after = cache.join("epoch", whole(one), one.view)
    assert after.length_of(before.context_hash) == before.total
    assert before.length_of(after.context_hash) is None


def test_a_list_that_does_not_end_with_the_newest_step_is_joined_from_nothing() -> None:
    one, cache = trial_of(ROWS[:8]), PrefixCache()
    plan = Plan((Keep(0, 5, "kept"),))
    check(cache.join("epoch", plan, one.view), one, plan)
    assert cache.size == 0


def test_the_epochs_that_were_used_last_are_kept() -> None:
    one, cache = trial_of(ROWS[:8]), PrefixCache()
    for number in range(MAX_PREFIXES):
        assert cache.join(f"e{number}", whole(one), one.view).begun
    assert not cache.join("e0", whole(one), one.view).begun
    assert cache.join("another", whole(one), one.view).begun
    assert not cache.join("e0", whole(one), one.view).begun
    assert cache.join("e1", whole(one), one.view).begun, "the one that was used longest ago is gone"
    cache.clear()
    assert cache.size == 0
    assert cache.join("e0", whole(one), one.view).begun


SIZES = st.lists(st.integers(0, 40), min_size=2, max_size=60)


@given(SIZES, st.integers(1, 30))
@example([*range(100, 160)], 1)
def test_its_largest_items_are_known_however_it_came_to_be(sizes: list[int], batch: int) -> None:
    rows = said(*[(("user", "assistant")[at % 2], size) for at, size in enumerate(sizes)])
    one, cache, earlier = trial_of(rows[:1]), PrefixCache(), list[tuple[JoinedList, list[int]]]()
    for first in range(1, len(rows), batch):
        joined = cache.join("epoch", whole(one), one.view)
        check_largest(joined, one, whole(one))
        earlier.append((joined, [placed.index for placed in joined.largest]))
        one.add(rows[first : first + batch])
    check_largest(cache.join("epoch", whole(one), one.view), one, whole(one))
    for joined, largest in earlier:
        assert [placed.index for placed in joined.largest] == largest, "a list stays as it is"


LONG = said(*[("user", 4), ("assistant", 6)] * 500)


def unjoined(cache: PrefixCache, one: Trial, plan: Plan) -> Work[None]:
    with pytest.raises(Unjoined):
        cache.join("epoch", plan, one.view, most=100)
    return cache.joining("epoch", plan.segments, one.view)


def test_a_long_list_is_joined_some_at_a_time_and_is_the_same() -> None:
    one, cache = trial_of(LONG), PrefixCache()
    stops = sum(1 for _ in unjoined(cache, one, whole(one)))
    assert stops >= 3
    joined = cache.join("epoch", whole(one), one.view, most=300)
    assert joined.begun, "nobody was told of this epoch yet"
    check(joined, one, whole(one))
    assert not cache.join("epoch", whole(one), one.view, most=300).begun


def test_what_is_joined_stays_where_the_view_goes_on_meanwhile() -> None:
    one, cache = trial_of(LONG[:-10]), PrefixCache()
    work = unjoined(cache, one, whole(one))
    next(work)
    next(work)
    view = one.view
    one.add(LONG[-10:])
    view.revision = one.view.revision = view.revision + 1
    assert not list(work), "it ends with the first look at another view"
    at_once(unjoined(cache, one, whole(one)))
    check(cache.join("epoch", whole(one), one.view), one, whole(one))


def test_two_who_join_the_same_do_not_join_it_twice() -> None:
    one, cache = trial_of(LONG), PrefixCache()
    works = [unjoined(cache, one, whole(one)) for _ in range(2)]
    next(works[0])
    next(works[1])
    at_once(works[0])
    at_once(works[1])
    check(cache.join("epoch", whole(one), one.view), one, whole(one))


def test_what_was_forgotten_meanwhile_is_not_gone_on_with() -> None:
    one, cache = trial_of(LONG), PrefixCache()
    work = unjoined(cache, one, whole(one))
    next(work)
    cache.clear()
    assert not list(work)
    check(cache.join("epoch", whole(one), one.view), one, whole(one))


def test_forms_and_pieces_are_joined_some_at_a_time_as_well() -> None:
    one, cache = trial_of(LONG), PrefixCache()
    newest = len(one.view.atoms) - 1
    pieces = [Keep(at, min(at + 6, newest), "kept") for at in range(0, newest + 1, 7)]
    plan = Plan(tuple(pieces))
    at_once(unjoined(cache, one, plan))
    check(cache.join("epoch", plan, one.view, most=300), one, plan)
