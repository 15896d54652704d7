"""Aligning two lists: what is recognised, what is new, what is neither, and how long it takes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contextengine_server.context.alignment import MANY, Alignment, Token, align, alike

UNALIGNED = None


def tokens(said: str) -> list[Token]:
    """A message a word. `=x` has the id x and says what stands before it."""
    made = []
    for word in said.split():
        key, _, name = word.partition("=")
        made.append(Token(key.encode(), name))
    return made


def aligned(live: str, stored: str) -> Alignment:
    found = align(tokens(live), tokens(stored))
    assert found is not None
    return found


def test_what_follows_is_new() -> None:
    found = aligned("a b c d", "a b")
    assert (found.matched, found.start, found.others) == ({0: 0, 1: 1}, 2, ())


def test_absence_says_nothing() -> None:
    found = aligned("a d e", "a b c d")
    assert (found.matched, found.start, found.others) == ({0: 0, 1: 3}, 2, ())


def test_what_stands_between_is_another() -> None:
    found = aligned("a b x c d", "a b c")
    assert (found.matched, found.others, found.start) == ({0: 0, 1: 1, 3: 2}, (2,), 4)


def test_of_alike_messages_the_earliest_counts() -> None:
    """A new turn that ends as the one before did."""
    found = aligned("u1 call done u2 call2 done", "u1 call done")
    assert (found.matched, found.start, found.others) == ({0: 0, 1: 1, 2: 2}, 3, ())


def test_the_longest_run_counts() -> None:
    found = aligned("hi yes hi yes hi yes", "hi yes hi yes")
    assert (len(found.matched), found.start) == (4, 4)


def test_one_alike_message_that_its_neighbours_contradict_is_none() -> None:
    assert align(tokens("x done y"), tokens("a done")) is UNALIGNED
    assert align(tokens("x y z done"), tokens("a b done c")) is UNALIGNED


def test_that_both_lists_begin_with_it_speaks_for_a_message() -> None:
    assert aligned("a x", "a y").matched == {0: 0}
    assert align(tokens("z a"), tokens("w a")) is UNALIGNED


def test_nothing_in_common_is_no_alignment() -> None:
    assert align(tokens("x y"), tokens("a b")) is UNALIGNED


@pytest.mark.parametrize(("live", "stored"), [("", ""), ("", "a b"), ("a b", "")])
def test_with_nothing_there_is_nothing_to_contradict(live: str, stored: str) -> None:
    found = aligned(live, stored)
    assert (found.matched, found.start, found.others) == ({}, 0, ())


def test_ids_decide_where_both_have_one() -> None:
    found = aligned("same=2 same=3", "same=1 same=2")
    assert (found.matched, found.start) == ({0: 1}, 1)
    assert aligned("other=1 new=9", "a=1 b=2").matched == {0: 0}
    assert aligned("a b c", "a=1 b=2").matched == {0: 0, 1: 1}


def test_media_that_a_harness_dropped_are_no_other_message() -> None:
    picture, other, without = Token(b"k", "", b"1"), Token(b"k", "", b"2"), Token(b"k")
    assert alike(picture, without)
    assert not alike(picture, other)
    assert not alike(Token(b""), Token(b""))


def test_a_late_result_is_one_where_its_call_has_none() -> None:
    stored = [Token(b"call"), Token(b"u2")]
    live = [Token(b"call"), Token(b"r", answers=((0, 0),), aside=True), Token(b"u2"), Token(b"n")]
    found = align(live, stored)
    assert found is not None
    assert (found.late, found.others, found.start) == ((1,), (), 3)
    # Once it is stored, behind all else, it is known by its call.
    again = align(live, [*stored, Token(b"r", answers=((0, 0),), aside=True, apart=True)])
    assert again is not None
    assert (again.answered, again.late, again.others, again.start) == ({1: 2}, (), (), 3)


def test_a_result_brings_its_call_along() -> None:
    """The same call twice, of which only the second is stored."""
    stored = [Token(b"c"), Token(b"r2", answers=((0, 0),), aside=True)]
    live = [
        Token(b"c"), Token(b"r1", answers=((0, 0),), aside=True),
        Token(b"c"), Token(b"r2", answers=((2, 0),), aside=True),
    ]  # fmt: skip
    found = align(live, stored)
    assert found is not None
    assert (found.matched, found.answered, found.others) == ({2: 0, 3: 1}, {}, (0, 1))


def edited(random: Random, stored: list[Token], edits: int) -> tuple[list[Token], list[int]]:
    """A list that was made of the stored one: some left out, others put in, more at the end; with
    where each message of it comes from, -1 for none."""
    kept: list[tuple[Token, int]] = [(token, at) for at, token in enumerate(stored)]
    for number in range(edits):
        at = random.randrange(len(kept) + 1)
        if random.random() < 0.5 and kept:
            del kept[min(at, len(kept) - 1)]
        else:
            kept.insert(at, (Token(b"put in %d" % number), -1))
    kept += [(Token(b"new %d" % number), -1) for number in range(random.randrange(4))]
    return [token for token, _ in kept], [at for _, at in kept]


@example(0, 16, 6, False)
@example(8, 85, 8, False)
@example(75369, 44, 6, False)
@given(st.integers(0, 2**32), st.integers(1, 120), st.integers(0, 8), st.booleans())
def test_what_was_edited_is_told_from_what_was_not(
    seed: int, size: int, edits: int, names: bool
) -> None:
    """With messages that are all unlike each other there is one truth: all of it is told where they
    have ids, or where no run of them is as short as what was put in; else all but such runs."""
    random = Random(seed)
    stored = [Token(b"m%d" % at, str(at) if names else "") for at in range(size)]
    live, truth = edited(random, stored, edits)
    found = align(live, stored)
    kept = {index: at for index, at in enumerate(truth) if at >= 0}
    if found is None:
        # Too little is left to speak against what is not the same.
        assert len(kept) < MANY or 2 * len(kept) <= len(live)
        return
    assert found.matched.items() <= kept.items()
    put_in = len(live) - len(kept)
    if names or all(len(run) > put_in for run in untold(kept, {})):
        assert found.matched == kept
    for run in untold(kept, found.matched):
        before = max((at for at in found.matched if at < run[0]), default=-1)
        behind = min((at for at in found.matched if at > run[-1]), default=len(live))
        assert len(run) <= behind - before - 1 - len(run), (
            "it is longer than what speaks against it"
        )
    hold(found, live, stored)


def untold(kept: dict[int, int], matched: dict[int, int]) -> list[list[int]]:
    """The runs of messages that are the stored ones and were not matched."""
    runs: list[list[int]] = []
    for at in sorted(kept.keys() - matched.keys()):
        if runs and runs[-1][-1] == at - 1 and kept[at - 1] == kept[at] - 1:
            runs[-1].append(at)
        else:
            runs.append([at])
    return runs


words = st.lists(st.sampled_from("abcd"), max_size=14)


@given(words, words)
def test_every_message_becomes_one_thing(live: list[str], stored: list[str]) -> None:
    """With messages that are alike over and over, and lists that have nothing to do with each
    other."""
    one, other = [Token(w.encode()) for w in live], [Token(w.encode()) for w in stored]
    found = align(one, other)
    if found is not None:
        hold(found, one, other)
    if live[: len(stored)] == stored:
        # What goes on from what is stored is recognised, whatever repeats.
        assert found is not None
        assert found.matched == {at: at for at in range(len(stored))}
        assert (found.start, found.others) == (len(stored), ())


def hold(found: Alignment, live: Sequence[Token], stored: Sequence[Token]) -> None:
    """Every message of the list is recognised, new, late, or another, and no two are the same."""
    assert list(found.matched) == sorted(found.matched)
    assert list(found.matched.values()) == sorted(set(found.matched.values()))
    assert all(alike(live[index], stored[place]) for index, place in found.matched.items())
    parts = [
        *found.matched, *found.answered, *found.late, *found.others, *range(found.start, len(live))
    ]  # fmt: skip
    assert sorted(parts) == list(range(len(live)))


@given(words, words)
def test_as_many_are_found_as_there_are(live: list[str], stored: list[str]) -> None:
    """Against the table of longest common subsequences, where nothing contradicts."""
    table = [[0] * (len(stored) + 1) for _ in range(len(live) + 1)]
    for i, one in enumerate(live):
        for j, other in enumerate(stored):
            table[i + 1][j + 1] = (
                table[i][j] + 1 if one == other else max(table[i][j + 1], table[i + 1][j])
            )
    # Messages that say nothing of their neighbours are never contradicted.
    found = align(
        [Token(w.encode(), aside=True) for w in live],
        [Token(w.encode(), aside=True) for w in stored],
    )
    assert len(found.matched if found is not None else {}) == table[-1][-1]


@pytest.mark.parametrize("kinds", [20_000, 50, 1])
@pytest.mark.parametrize("edits", [0, 40])
def test_a_long_list_takes_no_time(kinds: int, edits: int) -> None:
    """20,000 messages, all unlike or all alike, edited or not: quadratic would be minutes."""
    random = Random(kinds)
    stored = [Token(b"m%d" % random.randrange(kinds)) for _ in range(20_000)]
    live, _ = edited(random, stored, edits)
    began = time.process_time()
    found = align(live, stored)
    assert time.process_time() - began < 5
    assert found is not None
    assert len(found.matched) > 19_900
