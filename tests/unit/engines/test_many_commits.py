"""What `dag` looks at of a long view, pass for pass of a compaction that takes many."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from contextengine_server.context import lawful
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.eviction import CommitSnapshot, EvictionHistory
from contextengine_server.context.lawful import fitting
from contextengine_server.context.observations import StaleMessage
from contextengine_server.context.view import View
from contextengine_server.engines.bounds import saved_after, short_forms
from contextengine_server.engines.contract import CompactionGoal, CompactionStep
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.engines.masks import Masks, coming_masks, masks_of
from contextengine_server.testing.engine.trial import trial_of

from .test_dag_compaction import said
from .test_masks import BUDGET, TAIL, Session

SMALL, CHUNK = ReferenceTokens(6_000), 2_000
LATER = 10_000
"""Revisions, more than commits take."""


def counted(patch: pytest.MonkeyPatch, owner: object, name: str) -> list[int]:
    """How often this is called from now on, as the last number of a list."""
    calls, real = [0], getattr(owner, name)

    def count(*asked: Any) -> Any:
        calls[-1] += 1
        return real(*asked)

    patch.setattr(owner, name, count)
    return calls


def read_over(times: int) -> Session:
    """Some files, read over and over: nearly every answer is stale."""
    made = Session()
    made.say("a few words " * 60)
    for number in range(times):
        made.read("abcdefg"[number % 7], words=60)
    return made


def grown() -> Iterator[Session]:
    """A session that goes on between its compactions, as it is before and after each."""
    one = read_over(30)
    for first in range(0, 24, 4):
        yield one
        one.compact(first, first + 1 if first % 8 else first + 3)
        yield one
        one.read("a", words=80)
        one.read("b", "c", words=80)
    one.read("large", words=20_000)
    yield one
    one.say("and now?")
    yield one


def test_what_is_saved_of_a_step_alone_is_what_is_saved_of_it_among_all() -> None:
    for one in grown():
        view = one.view
        after = saved_after(view, BUDGET, TAIL)
        for revision in (0, 1, 3_000, *(s.created for s in view.summaries), 100_000_000):
            whole = short_forms(view, BUDGET, TAIL, revision).saved
            found = {step: after(revision).get(step) for step in range(view.base, view.steps)}
            assert {step: saved for step, saved in found.items() if saved is not None} == whole
            for first, last in ((view.base, view.steps), (view.steps // 3, view.steps // 2)):
                asked = after(revision).within(first, last)
                assert asked == sorted(asked, reverse=True)
                assert {step for step in whole if first <= step <= last} <= set(asked)
                assert all(first <= step <= last for step in asked)
            assert dict(after(revision)) == whole
            assert sum(after(revision).values()) == sum(whole.values())


def test_what_fits_is_the_same_however_it_is_worked_out() -> None:
    for one in grown():
        view = one.view

        def each(revision: int, *, view: View) -> dict[int, int]:
            return short_forms(view, BUDGET, TAIL, revision).saved

        now = short_forms(view, BUDGET, TAIL).saved
        for room in range(500, 30_000, 250):
            found = [
                fitting(view, room, TAIL, now, then)
                for then in (partial(each, view=view), saved_after(view, BUDGET, TAIL))
            ]
            assert [(list(f.ranges), list(f.summaries), f.rule, f.over) for f in found[:1]] == [
                (list(f.ranges), list(f.summaries), f.rule, f.over) for f in found[1:]
            ]


def test_a_step_looks_at_no_answer_again_that_was_stale_at_the_last_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, engine = read_over(120), DagEngine(DagOptions())
    one.compact(0, 20)
    budget = ReferenceTokens(one.view.view_tokens() - 2_000)
    looks = counted(monkeypatch, StaleMessage, "at")
    engine.plan(one.view, budget)
    engine.due(one.view, budget, None)
    assert looks.pop() > 50  # or there is nothing that could be saved
    looks.append(0)
    for number in range(20):
        one.read("abcdefg"[number % 7], words=60)
        engine.plan(one.view, budget)
        engine.due(one.view, budget, None)
    assert looks == [0]


def looks(times: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many stale answers each pass of a compaction looks at."""
    one, engine = read_over(times), DagEngine(DagOptions(leaf_chunk_tokens=CHUNK))
    goal = CompactionGoal(SMALL, force=True, floor=60)
    with monkeypatch.context() as patch:
        passes = counted(patch, StaleMessage, "at")
        while isinstance(step := engine.compaction(one.view, goal), CompactionStep):
            one.compact(step.first, step.last)
            passes.append(0)
    return passes


def test_a_pass_looks_at_no_more_for_the_passes_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    short, long = looks(400, monkeypatch), looks(1_600, monkeypatch)
    assert len(long) > 3 * len(short) > 9
    # Each pass goes through what no summary covers yet, and through it as often as the first does.
    assert max(long) <= 1.2 * long[0]
    assert long[len(long) // 2] <= 0.75 * long[0]
    # So four times the session takes four times as much a pass, of four times as many passes.
    assert sum(long) <= 5 * 4 * sum(short)


def steps_looked_at(times: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many steps a plan looks at, of a session that is so many times as long, in a room that is
    so many times as large."""
    engine, room = DagEngine(DagOptions(leaf_chunk_tokens=CHUNK)), ReferenceTokens(4_000 * times)
    rows = said(*[("user", 40), ("assistant", 200)] * (44 * times))
    one = trial_of(rows[: 80 * times])
    while one.compaction(engine, room):
        pass
    assert len(one.view.evictions.front) > 2 * times
    one.add([replace(row, created=row.created + LATER) for row in rows[80 * times :]])
    with monkeypatch.context() as patch:
        steps = counted(patch, View, "atom")
        assert engine.plan(one.view, room).cut
    return steps[0]


def test_a_plan_looks_at_no_more_steps_in_a_larger_room_after_more_commits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert steps_looked_at(16, monkeypatch) <= 1.5 * steps_looked_at(2, monkeypatch)


def commits_worked_out(turns: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Of how many commits a plan works out what they evicted, in a session that had so many turns,
    each commit somewhat too late."""
    engine, room = DagEngine(DagOptions()), ReferenceTokens(4_000)
    rows = said(*[("user", 40), ("assistant", 300)] * turns)
    one = trial_of(rows[:40])
    for at in range(40, len(rows) - 8, 8):
        one.add([replace(row, created=row.created * LATER) for row in rows[at : at + 8]])
        while one.compaction(engine, room):
            pass
    assert len(one.view.evictions.front) > turns // 8
    with monkeypatch.context() as patch:
        commits = counted(patch, lawful, "_reached_in_full")
        assert engine.plan(one.view, room).cut
    return commits[0]


def test_a_plan_works_out_no_more_commits_however_many_there_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = commits_worked_out(80, monkeypatch)
    assert 0 < commits_worked_out(320, monkeypatch) <= few + 2


def _life(
    chance: random.Random, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[View, list[CommitSnapshot]]]:
    """A session that goes on and is compacted now and then, with every commit that there was."""
    commits: list[CommitSnapshot] = []
    add = EvictionHistory.add

    def added(held: EvictionHistory, before: CommitSnapshot, created: int, masked: int = 0) -> None:
        commits.append(replace(before, masked=masked))
        add(held, before, created, masked)

    monkeypatch.setattr(EvictionHistory, "add", added)
    leaf = chance.choice((1_000, 20_000))
    one, engine = Session(), DagEngine(DagOptions(leaf_chunk_tokens=leaf))
    room = ReferenceTokens(chance.choice((3_000, 6_000, 12_000)))
    for _ in range(40):
        if chance.random() < 0.3:
            one.say("what of this " * chance.choice((3, 20, 200)))
        one.read(f"x{chance.randrange(8)}", words=chance.choice((20, 70, 150, 600)))
        goal = CompactionGoal(room, floor=90, force=chance.random() < 0.3)
        for _ in range(chance.choice((0, 0, 0, 1, 30))):
            step = engine.compaction(one.view, goal)
            if not isinstance(step, CompactionStep):
                break
            one.compact(step.first, step.last)
        yield one.view, commits


@given(st.randoms(use_true_random=False))
def test_what_had_been_evicted_is_what_each_commit_says_by_itself(chance: random.Random) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for view, commits in _life(chance, patch):
            for room in (1_500, 2_500, 4_000, 8_000, 11_700):
                then = saved_after(view, BUDGET, TAIL)
                each = [
                    lawful._reached_before(view, room, [one], then)
                    for one in commits
                    if one.view > room
                ]
                known = view.evictions.evicting(room)
                assert lawful._reached_before(view, room, known, then) == max(each, default=0)


@given(st.randoms(use_true_random=False))
def test_what_is_kept_of_masks_is_what_is_worked_out_anew(chance: random.Random) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for view, _ in _life(chance, patch):
            newest = view.atoms[-1].entries[-1].created
            asked = [(chance.randrange(1, 4), chance.randrange(newest + 200)) for _ in range(12)]
            kept = _masks(view, asked)
            known, view.observations.masked = view.observations.masked, {}
            assert kept == _masks(view, asked[::-1])[::-1]
            view.observations.masked = known


def _masks(view: View, asked: Sequence[tuple[int, int]]) -> list[tuple[Masks, Masks, Masks]]:
    """What is masked by now and would be, and what was once, for these tails and revisions."""
    return [
        (masks_of(view, tail), coming_masks(view, tail), masks_of(view, tail, revision))
        for tail, revision in asked
    ]
