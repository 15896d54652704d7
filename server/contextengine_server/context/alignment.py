"""Which messages of one list are those of another: a harness's own list, and what is stored of it.

Both lists keep the order, so what is recognised rises in both. Of several ways the one that
explains most of the list wins, then the earliest. Alike messages are common ("Done."), so a run
that its neighbours contradict is none, unless it is longer than what it leaves unexplained. A
result that differs, or came late, is recognised by the call that it answers.

Linear where the lists begin alike; else in proportion to the pairs of alike messages, of which no
more than a few for each message are looked at.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate

import msgspec

PAIRS_EACH = 16
"""Of a message with many that are alike, at most so many pairs for each message of both lists are
looked at: those nearest to where it would stand if nothing had changed."""

MANY = 8
"""So many alike messages that are more than half of a list are no chance: edits all over it may
speak against each of its runs, and it is the same list all the same."""

Call = tuple[int, int]
"""A tool call: the place of its message in the list, and its number within it."""


class Token(msgspec.Struct, frozen=True):
    """What a message is recognised by."""

    key: bytes
    """Equal for messages that are alike by what harnesses leave alone; empty: like no other."""
    id: str = ""
    """Its own id, which decides where both have one."""
    media: bytes = b""
    """Names its images and files, where it has any: two of them differ, one may be gone."""
    answers: tuple[Call, ...] = ()
    """The calls in its list that it answers."""
    apart: bool = False
    """Other messages stand between it and the call that it answers: it says nothing of order."""
    aside: bool = False
    """It may be absent, or there, without a word about what stands beside it."""

    @property
    def only_answers(self) -> bool:
        """True for results and nothing else, whose calls are in the list."""
        return self.aside and bool(self.answers)


class Alignment(msgspec.Struct, frozen=True):
    """What became of every message of a list. Places are indexes."""

    matched: dict[int, int]
    """The stored message that each recognised one is, rising."""
    answered: dict[int, int]
    """Results that are recognised by their calls: the stored ones, in any order."""
    late: tuple[int, ...]
    """Results for stored calls that have none."""
    others: tuple[int, ...]
    """What is not stored and stands before something that is."""
    start: int
    """The first message behind the last recognised one: all from here on are new."""


def align(live: Sequence[Token], stored: Sequence[Token]) -> Alignment | None:
    """Where each message of `live` stands among the stored ones; None where the two have nothing in
    common. Two empty lists, or one, have nothing to contradict."""
    pairs = _with_their_calls(live, stored, list(_pairs(live, stored)))
    matched = dict(_supported(live, stored, pairs))
    if not matched and len(pairs) >= MANY and 2 * len(pairs) > len(live):
        matched = dict(pairs)
    if live and stored and not matched:
        return None
    answers = {call: place for place, token in enumerate(stored) for call in token.answers}
    answered: dict[int, int] = {}
    unanswered: list[int] = []
    for index, token in enumerate(live):
        if index in matched or not token.only_answers:
            continue
        calls = [(matched.get(at, -1), number) for at, number in token.answers]
        known = [answers[call] for call in calls if call in answers]
        if len(known) == len(calls):
            answered[index] = known[0]
        elif not known and all(at >= 0 for at, _ in calls):
            unanswered.append(index)
    start = max(max(matched, default=-1), max(answered, default=-1)) + 1
    late = tuple(index for index in unanswered if index < start)
    told = {*matched, *answered, *late}
    others = tuple(index for index in range(start) if index not in told)
    return Alignment(matched, answered, late, others, start)


def alike(one: Token, other: Token) -> bool:
    """True where two messages are one and the same, as far as can be told from themselves."""
    if one.id and other.id:
        return one.id == other.id
    media = not one.media or not other.media or one.media == other.media
    return media and bool(one.key) and one.key == other.key


def _pairs(live: Sequence[Token], stored: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """As many pairs of alike messages as can be had in order, the earliest of such choices."""
    begin = 0
    while (
        begin < min(len(live), len(stored))
        and alike(live[begin], stored[begin])
        and not stored[begin].apart
    ):
        yield begin, begin
        begin += 1
    if begin < min(len(live), len(stored)):
        yield from _longest(begin, _candidates(live, stored, begin))


def _candidates(live: Sequence[Token], stored: Sequence[Token], begin: int) -> list[list[int]]:
    """For each message of the list from `begin` on, the stored ones that it may be, rising."""
    by_id: dict[str, int] = {}
    by_key: dict[bytes, list[int]] = defaultdict(list)
    nameless: dict[bytes, list[int]] = defaultdict(list)
    for place in range(begin, len(stored)):
        token = stored[place]
        if token.apart:
            continue
        if token.id:
            by_id.setdefault(token.id, place)
        else:
            nameless[token.key].append(place)
        by_key[token.key].append(place)
    found: list[list[int]] = []
    for index in range(begin, len(live)):
        token = live[index]
        if token.apart:
            found.append([])
            continue
        if token.id in by_id:
            found.append([by_id[token.id]])
            continue
        near = (nameless if token.id else by_key).get(token.key, [])
        if len(near) > PAIRS_EACH:
            middle = bisect_left(near, index)
            first = max(0, min(middle - PAIRS_EACH // 2, len(near) - PAIRS_EACH))
            near = near[first : first + PAIRS_EACH]
        found.append([place for place in near if alike(token, stored[place])])
    return found


def _longest(begin: int, candidates: list[list[int]]) -> Iterator[tuple[int, int]]:
    """The longest rising choice of candidates. Worked out from the end, so that of several as long
    the earliest can be told: a level holds the pairs that begin a choice of its length."""
    levels: list[list[tuple[int, int]]] = []
    starts: list[int] = []
    """By level, the largest place that begins such a choice, negated: rising."""
    for index in range(begin + len(candidates) - 1, begin - 1, -1):
        for place in candidates[index - begin]:
            level = bisect_left(starts, -place)
            if level == len(starts):
                starts.append(-place)
                levels.append([])
            starts[level] = -place
            levels[level].append((index, place))
    at, reached = begin - 1, -1
    for level_pairs in reversed(levels):
        at, reached = min(
            (index, place) for index, place in level_pairs if index > at and place > reached
        )
        yield at, reached


def _supported(
    live: Sequence[Token], stored: Sequence[Token], pairs: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The pairs without the runs that their neighbours contradict: what both lists have beside the
    run is not the same, and the run is no longer than what it leaves unexplained. A run that goes
    takes from its neighbours and gives them nothing, so the order in which they go is all one."""
    heard = _weights(live), _weights(stored)
    runs = _runs(pairs, heard)
    doubtful = list(range(len(runs)))
    before = [at - 1 for at in doubtful]
    behind = [at + 1 for at in doubtful]
    gone: set[int] = set()
    ends = (len(live), len(stored))
    while doubtful:
        at = doubtful.pop()
        if at in gone or any(live[index].id and stored[place].id for index, place in runs[at]):
            continue
        left = runs[before[at]][-1] if before[at] >= 0 else (-1, -1)
        right = runs[behind[at]][0] if behind[at] < len(runs) else ends
        run = runs[at]
        unexplained = _contradicting(heard, left, run[0]) + _contradicting(heard, run[-1], right)
        # That both lists begin with it speaks for it as one more message would.
        if len(run) + (run[0] == (0, 0)) > unexplained:
            continue
        gone.add(at)
        if before[at] >= 0:
            behind[before[at]] = behind[at]
            doubtful.append(before[at])
        if behind[at] < len(runs):
            before[behind[at]] = before[at]
            doubtful.append(behind[at])
    return [pair for at, run in enumerate(runs) if at not in gone for pair in run]


def _with_their_calls(
    live: Sequence[Token], stored: Sequence[Token], pairs: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The pairs, where a result that was recognised brings its own call along: of several calls
    that are alike, an earlier one may have been taken for it."""
    of_live, of_stored = dict(pairs), {place: index for index, place in pairs}
    for index, place in pairs:
        for (called, _), (asked, _) in zip(
            live[index].answers, stored[place].answers, strict=False
        ):
            taken = of_stored.get(asked)
            between = range(0 if taken is None else taken + 1, called + 1)
            if taken is not None and taken < called and not any(at in of_live for at in between):
                del of_live[taken]
                of_live[called], of_stored[asked] = asked, called
    return sorted(of_live.items())


Weights = tuple[list[int], list[int]]
"""For both lists, how many messages before each place say something of what stands beside them."""


def _weights(tokens: Sequence[Token]) -> list[int]:
    return list(accumulate((not token.aside for token in tokens), initial=0))


def _runs(pairs: list[tuple[int, int]], heard: Weights) -> list[list[tuple[int, int]]]:
    """The pairs, parted wherever something stands between two of them in either list."""
    runs: list[list[tuple[int, int]]] = []
    for pair in pairs:
        if runs and not any(_between(heard, runs[-1][-1], pair)):
            runs[-1].append(pair)
        else:
            runs.append([pair])
    return runs


def _between(heard: Weights, one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """How much stands between two pairs in the one list and in the other."""
    return (
        heard[0][other[0]] - heard[0][one[0] + 1],
        heard[1][other[1]] - heard[1][one[1] + 1],
    )


def _contradicting(heard: Weights, one: tuple[int, int], other: tuple[int, int]) -> int:
    """How much of the list stands between two pairs where what is stored has something else."""
    listed, kept = _between(heard, one, other)
    return listed if kept else 0
