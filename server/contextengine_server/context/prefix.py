"""The prefix cache: what was joined for an epoch, so that an assembly after an append costs in
proportion to what was appended.

Within an epoch the earlier list is a prefix of the later (law 10), and of its steps only the newest
may still change. A prefix holds the frames and hash chain of all but the newest step.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import nlargest
from itertools import accumulate, takewhile
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from contextengine_server.context.message import HASH_BYTES, Slot
from contextengine_server.context.plan import (
    Beside,
    Keep,
    Listed,
    Plan,
    Reshaped,
    Summarized,
    shown_at,
)
from contextengine_server.context.view import View
from contextengine_server.context.work import Work

MAX_PREFIXES = 4
"""Epochs of a session that are kept at a time: models or budgets that take turns."""

JOINED_AT_ONCE = 2_000
"""Items that go into a prefix in one turn of an event loop, where it may be had in more: about 1 µs
each."""


LARGEST = 10
"""Of the largest items of a list so many are known."""
NO_STEP = -1
"""Where an item stands for no step alone: a summary, or what is laid between."""


class Unjoined(Exception):
    """A list has more items that no prefix holds than may be joined at once: first
    `PrefixCache.joining` is to have one hold them."""


class PlacedSlot(msgspec.Struct, frozen=True, eq=False):
    """An item of a list."""

    index: int
    step: int
    """The step that it is of, or NO_STEP."""
    slot: Slot


SEED = b"contextengine"
_FRAME, _HASH, _TOKENS = attrgetter("frame"), attrgetter("hash"), attrgetter("tokens")


def _tokens_of(placed: PlacedSlot) -> int:
    return placed.slot.tokens


def _largest(
    known: Sequence[PlacedSlot], slots: Sequence[Slot], steps: Sequence[int], at: int
) -> tuple[PlacedSlot, ...]:
    """The largest of those that are known and of these, which stand from `at` on."""
    of_these = nlargest(LARGEST, range(len(slots)), lambda place: slots[place].tokens)
    new = [PlacedSlot(at + place, steps[place], slots[place]) for place in of_these]
    return tuple(nlargest(LARGEST, (*known, *new), _tokens_of))


def chained(hashes: Iterable[bytes], before: bytes = SEED) -> list[bytes]:
    """The hash of every beginning of a list: the n-th names its first n items; the first, for none,
    is `before`, which names what the list goes on from."""
    links = [before]
    for item_hash in hashes:
        links.append(blake2b(links[-1] + item_hash, digest_size=HASH_BYTES).digest())
    return links


@dataclass(slots=True)
class Prefix:
    """The beginning of the lists of one epoch."""

    frames: list[bytes] = field(default_factory=list)
    links: list[bytes] = field(default_factory=lambda: [SEED])
    """links[n] names the first n items."""
    sums: list[int] = field(default_factory=lambda: [0])
    """sums[n]: the tokens of the first n items."""
    at: dict[bytes, int] = field(default_factory=lambda: {SEED: 0})
    """Each link's n."""
    largest: tuple[PlacedSlot, ...] = ()
    """Its largest items, the largest first; of those alike, the first."""
    next_step: int = -1
    """The step that the last range goes on with; -1: nothing is joined yet."""
    joined: bool = False
    """True once it began a list."""

    @property
    def contents(self) -> tuple[list[bytes], list[bytes], list[int], dict[bytes, int]]:
        """All that it holds much of, for whoever lets go of it."""
        return self.frames, self.links, self.sums, self.at

    def add(self, segments: Sequence[Listed], view: View, before: int, most: int = 0) -> list[Slot]:
        """Goes on with what these segments show before a step, which none of them goes beyond. What
        they show of that step itself. Raises Unjoined, with nothing added, where they have more
        than `most` steps or so; 0: as many as there are."""
        settled: list[Slot] = []
        steps: list[int] = []
        following: list[Slot] = []
        for segment in segments:
            if isinstance(segment, (Summarized, Beside)):
                settled.append(
                    segment.slot if isinstance(segment, Beside) else segment.summary.slot
                )
                steps.append(NO_STEP)
                continue
            first = max(segment.first, self.next_step)
            if 0 < most < len(settled) + segment.last - first:
                raise Unjoined
            for step in range(first, segment.last + 1):
                atom = view.atoms[step - view.base] if step >= view.base else view.anchors[step]
                slots = atom.slots if isinstance(segment, Keep) else shown_at(segment, atom)
                if step == before:
                    following = slots
                else:
                    settled += slots
                    steps += [step] * len(slots)
        if settled:
            least = self.largest[-1].slot.tokens if len(self.largest) == LARGEST else -1
            if max(map(_TOKENS, settled)) > least:
                self.largest = _largest(self.largest, settled, steps, len(self.frames))
            links = chained(map(_HASH, settled), self.links[-1])[1:]
            for index, link in enumerate(links, len(self.links)):
                self.at[link] = index
            self.links += links
            self.sums += [*accumulate(map(_TOKENS, settled), initial=self.sums[-1])][1:]
            self.frames += map(_FRAME, settled)
        self.next_step = max(self.next_step, before)
        return following

    def followed(self, slots: Sequence[Slot], begun: bool) -> JoinedList:
        """The list that has these items, of the step that it goes on with, behind all of the
        prefix."""
        links = chained(map(_HASH, slots), self.links[-1])
        sums = [*accumulate(map(_TOKENS, slots), initial=self.sums[-1])]
        count, frames = len(self.frames), [*map(_FRAME, slots)]
        return JoinedList(
            self,
            count,
            frames,
            links[1:],
            sums[1:],
            count + len(frames),
            links[-1],
            self.largest,
            slots,
            self.next_step,
            begun,
        )


@dataclass(slots=True)
class JoinedList:
    """A whole list: a prefix, and what follows it."""

    prefix: Prefix
    count: int
    """How many items of the prefix belong to the list."""
    frames: list[bytes]
    """What follows them."""
    links: list[bytes]
    """The links behind each of `frames`."""
    sums: list[int]
    total: int
    """The list's length."""
    context_hash: bytes
    """Names the whole list."""
    large: tuple[PlacedSlot, ...]
    """The largest of those that belong to the prefix."""
    following: Sequence[Slot]
    """What follows them, as it was before it was encoded."""
    step: int
    """The step of all that follows."""
    begun: bool = False
    """True where nothing was joined for this epoch before."""

    def length_of(self, known: bytes) -> int | None:
        """How many items the list named by `known` has, where this list begins with it."""
        at = self.prefix.at.get(known)
        if at is not None and at <= self.count:
            return at
        for index, link in enumerate(self.links):
            if link == known:
                return self.count + index + 1
        return None

    def after(self, count: int) -> list[bytes]:
        """The frames behind the first `count` items."""
        if count >= self.count:
            return self.frames[count - self.count :]
        return [*self.prefix.frames[count : self.count], *self.frames]

    def pieces_after(self, count: int) -> Work[list[bytes]]:
        """The same, some frames in each piece: of a long list each is touched once."""
        pieces: list[bytes] = []
        for at in range(count, self.count, _TOGETHER):
            pieces.append(b"".join(self.prefix.frames[at : min(at + _TOGETHER, self.count)]))
            yield
        pieces += self.frames[max(0, count - self.count) :]
        return pieces

    @property
    def largest(self) -> list[PlacedSlot]:
        """Its largest items, LARGEST at most, the largest first; of those alike, the first."""
        following = (
            PlacedSlot(at, self.step, one) for at, one in enumerate(self.following, self.count)
        )
        return nlargest(LARGEST, (*self.large, *following), _tokens_of)

    def tokens_of(self, count: int) -> int:
        """The tokens of the first `count` items."""
        if count <= self.count:
            return self.prefix.sums[count]
        return self.sums[count - self.count - 1]


class PrefixCache:
    """The prefixes of a session by epoch; the least recently used leaves first. In a cache of
    cachetools, `size` would count as a use of each."""

    __slots__ = ("_let_go", "_prefixes")

    def __init__(self, let_go: Callable[..., object] = lambda *_: None) -> None:
        """`let_go`: is told the lists and dictionaries of a prefix that leaves, which are long."""
        self._let_go = let_go
        self._prefixes: OrderedDict[str, Prefix] = OrderedDict()

    def clear(self) -> None:
        """Forgets everything."""
        for prefix in self._prefixes.values():
            self._let_go(*prefix.contents)
        self._prefixes.clear()

    @property
    def size(self) -> int:
        """Bytes held besides the frames themselves, about."""
        return sum(250 * len(prefix.frames) for prefix in self._prefixes.values())

    def join(
        self,
        epoch: str,
        plan: Plan,
        view: View,
        listed: Sequence[Listed] = (),
        most: int = 0,
    ) -> JoinedList:
        """The list of a plan, going on from what was joined for its epoch. `listed`: its segments
        with what is laid between them; none: nothing is. Raises Unjoined where more than `most`
        items would go into the prefix; 0: as many as there are."""
        prefix = self._prefixes.get(epoch)
        if prefix is None:
            prefix = self._prefixes[epoch] = Prefix()
            if len(self._prefixes) > MAX_PREFIXES:
                _, gone = self._prefixes.popitem(last=False)
                self._let_go(*gone.contents)
        else:
            self._prefixes.move_to_end(epoch)
        begun, segments = not prefix.joined, listed or plan.segments
        newest = view.base + len(view.atoms) - 1
        last = segments[-1] if segments else None
        if last is None or isinstance(last, (Summarized, Beside)) or last.last != newest:
            # A list that does not end with the newest steps is joined from nothing.
            prefix.joined, alone = True, Prefix()
            return alone.followed(alone.add(segments, view, newest + 1), begun)
        following = prefix.add(_behind(segments, prefix.next_step), view, newest, most)
        prefix.joined = True
        return prefix.followed(following, begun)

    def joining(self, epoch: str, segments: Sequence[Listed], view: View) -> Work[None]:
        """Has the prefix of an epoch for which `join` raised Unjoined hold what these segments
        show, all of a list, but for the newest step. Ends before where the view or the prefix is
        not as it left it."""
        prefix = self._prefixes.get(epoch, Prefix())
        revision, newest = view.revision, view.base + len(view.atoms) - 1
        for piece, last in _pieces(_behind(segments, prefix.next_step), prefix.next_step):
            at = min(last + 1, newest)
            prefix.add(piece, view, at)
            yield
            same = self._prefixes.get(epoch) is prefix and prefix.next_step == at
            if not same or view.revision != revision:
                return


_TOGETHER = 256
"""Steps that go into a prefix between two stops, and frames that are taken out of one."""


def _pieces(rest: Sequence[Listed], begin: int) -> Iterator[tuple[list[Listed], int]]:
    """These segments from a step on in pieces, each with the step that it ends with. A prefix goes
    on with a step: where it stops, only ranges of steps may follow."""
    piece: list[Listed] = []
    steps = 0
    ranges = sum(1 for _ in takewhile(lambda one: isinstance(one, (Keep, Reshaped)), rest[::-1]))
    piece += rest[: len(rest) - ranges]
    for segment in rest[len(rest) - ranges :]:
        assert isinstance(segment, (Keep, Reshaped))
        for first in range(max(segment.first, begin), segment.last + 1, _TOGETHER):
            last = min(first + _TOGETHER - 1, segment.last)
            piece.append(replace(segment, first=first, last=last))
            steps += last - first + 1
            if steps >= _TOGETHER:
                yield piece, last
                piece, steps = [], 0
    if steps:
        yield piece, last


def _behind(segments: Sequence[Listed], step: int) -> Sequence[Listed]:
    """The segments that hold this step or come behind it; all, where nothing is joined yet."""
    if step < 0:
        return segments
    for index in range(len(segments) - 1, -1, -1):
        segment = segments[index]
        if isinstance(segment, Beside):
            if segment.step > step:
                continue
        elif not isinstance(segment, Summarized) and segment.last >= step:
            continue
        return segments[index + 1 :]
    return segments
