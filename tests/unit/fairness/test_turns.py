"""Whose turn it is: by weight, without gaps, and nobody waits for a crowd."""

from __future__ import annotations

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.fairness.turns import FairQueue, Turns

KEYS = ("a", "b", "c", "d")
WEIGHTS = st.fixed_dictionaries({key: st.sampled_from((0.25, 0.5, 1.0, 2.0, 4.0)) for key in KEYS})
COSTS = st.sampled_from((1.0, 1.0, 3.0, 10.0))


@given(WEIGHTS, st.lists(COSTS, min_size=1, max_size=5), st.integers(1, 200))
def test_who_always_waits_gets_what_his_weight_is_worth(weights, costs, served):
    """Over any stretch, what two keys got over their weights differs by one piece of each."""
    queue = FairQueue[int](weights.__getitem__)
    price: dict[int, tuple[str, float]] = {}
    for number in range(served * len(KEYS)):
        for key in KEYS:
            item = len(price)
            price[item] = key, costs[(number + len(key)) % len(costs)]
            queue.push(key, item, price[item][1])
    got = dict.fromkeys(KEYS, 0.0)
    for _ in range(served):
        served_now = queue.pop()
        assert served_now is not None
        key, cost = price[served_now]
        got[key] += cost / weights[key]
        for one in KEYS:
            for other in KEYS:
                apart = max(costs) / weights[one] + max(costs) / weights[other]
                assert abs(got[one] - got[other]) <= apart + 1e-6


@given(st.lists(st.one_of(st.sampled_from(KEYS), st.none()), max_size=200), WEIGHTS)
def test_nothing_is_lost_nothing_comes_twice_and_a_line_keeps_its_order(steps, weights):
    queue, numbers = FairQueue[int](weights.__getitem__), count()
    lines: dict[str, list[int]] = {key: [] for key in KEYS}
    for step in steps:
        if step is not None:
            number = next(numbers)
            queue.push(step, number)
            lines[step].append(number)
        else:
            item = queue.pop()
            if item is None:
                assert not any(lines.values())
            else:
                (line,) = (line for line in lines.values() if line[:1] == [item])
                line.pop(0)
        assert len(queue) == sum(map(len, lines.values()))
        assert {key: queue.waiting(key) for key in KEYS} == {
            key: len(line) for key, line in lines.items()
        }


@given(st.integers(1, 500), st.integers(0, 400))
def test_who_comes_to_a_crowd_of_others_waits_for_one_of_each(crowd, served_before):
    queue = FairQueue[str]()
    for number in range(crowd):
        for key in ("noisy", "loud"):
            queue.push(key, f"{key}{number}")
    for _ in range(min(served_before, 2 * crowd - 2)):
        queue.pop()
    queue.push("quiet", "mine")
    assert "mine" in [queue.pop() for _ in range(3)]


@given(st.integers(1, 300))
def test_what_was_not_used_is_not_owed(busy):
    """Who was away for long does not then shut the others out until he has caught up."""
    queue = FairQueue[str]()
    for number in range(busy + 20):
        queue.push("steady", f"steady{number}")
    for _ in range(busy):
        queue.pop()
    for number in range(20):
        queue.push("back", f"back{number}")
    heads = [queue.pop() for _ in range(10)]
    assert sum(item is not None and item.startswith("steady") for item in heads) >= 4


def test_who_may_not_come_now_is_passed_over_and_comes_first_later():
    queue = FairQueue[str]()
    queue.push("held", "held")
    for number in range(5):
        queue.push("free", f"free{number}")
    assert [queue.pop(lambda key: key == "free") for _ in range(2)] == ["free0", "free1"]
    assert queue.pop(lambda key: False) is None
    assert queue.pop() == "held"


def test_who_went_away_is_not_served_and_the_newest_is_known():
    queue = FairQueue[str]()
    for item in ("first", "second", "third"):
        queue.push("a", item)
    assert queue.newest("a") == "third"
    assert queue.remove("a", "third")
    assert not queue.remove("a", "third")
    assert not queue.remove("b", "first")
    assert [queue.pop(), queue.pop(), queue.pop()] == ["first", "second", None]
    assert queue.newest("a") is None


def test_keys_that_are_through_are_forgotten():
    """However many tenants there ever were, those that wait are remembered."""
    turns = Turns()
    for number in range(100_000):
        turns.served(f"tenant{number}")
        turns.first([f"tenant{number}", f"tenant{number + 1}"])
    assert len(turns._times) <= 4_096


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("push"), st.sampled_from(KEYS), COSTS),
            st.tuples(st.just("pop"), st.sets(st.sampled_from(KEYS)), st.none()),
            st.tuples(st.just("remove"), st.sampled_from(KEYS), st.none()),
        ),
        max_size=150,
    ),
    WEIGHTS,
)
def test_whose_turn_it_is_is_found_as_by_looking_at_everyone(steps, weights):
    """Of those that may come it is the one furthest behind, and of several who waits longest."""
    queue, turns = FairQueue[int](weights.__getitem__), Turns(weights.__getitem__)
    lines: dict[str, list[tuple[int, float]]] = {}
    numbers = count()
    for what, which, cost in steps:
        if what == "push":
            number = next(numbers)
            queue.push(which, number, cost)
            lines.setdefault(which, []).append((number, cost))
            continue
        if what == "remove":
            gone = lines.get(which, [])[-1:]
            assert queue.remove(which, gone[0][0] if gone else -1) == bool(gone)
            if gone:
                lines[which].pop()
                key = which
        else:
            may = [key for key in lines if key in which]
            expected = None
            if may:
                key = turns.first(may)
                expected, cost = lines[key].pop(0)
                turns.served(key, cost)
            assert queue.pop(which.__contains__) == expected
        for key in [key for key, line in lines.items() if not line]:
            del lines[key]
            if not lines:
                turns.forget()


def test_what_comes_next_in_a_line_says_what_it_costs() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.push("a", "first", 3.0)
    queue.push("a", "second", 2.0)
    assert (queue.cost("a"), queue.cost("b")) == (3.0, 0.0)
    queue.pop()
    assert queue.cost("a") == 2.0
