"""The prefix cache goes on from what was joined for an epoch, and gives what joining from nothing
gives."""

from __future__ import annotations

from contextengine_server.context.layout import everything
from contextengine_server.context.plan import Keep, Plan, segment_slots
from contextengine_server.context.prefix import MAX_PREFIXES, JoinedList, PrefixCache, chained
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
