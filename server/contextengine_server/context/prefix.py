"""The prefix cache: what was joined for an epoch, so that an assembly after an append costs in
proportion to what was appended.

Within an epoch the earlier list is a prefix of the later (law 10), and of its steps only the newest
may still change. A prefix holds the frames and hash chain of all but the newest step.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from contextengine_server.context.laws.prefix import SEED, chain
from contextengine_server.context.message import Slot
from contextengine_server.context.plan import (
    Keep,
    Plan,
    Segment,
    Summarized,
    segment_slots,
    shown_at,
)
from contextengine_server.context.view import View

MAX_PREFIXES = 4
"""Epochs of a session that are kept at a time: models or budgets that take turns."""


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
    next_step: int = -1
    """The step that the last range goes on with; -1: nothing is joined yet."""

    def add(self, slot: Slot) -> None:
        """Goes on with one more item."""
        link = chain(self.links[-1], slot.hash)
        self.frames.append(slot.frame)
        self.links.append(link)
        self.sums.append(self.sums[-1] + slot.tokens)
        self.at[link] = len(self.frames)


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
    begun: bool = False
    """True where nothing was joined for this epoch before."""

    @property
    def total(self) -> int:
        """The list's length."""
        return self.count + len(self.frames)

    @property
    def context_hash(self) -> bytes:
        """Names the whole list."""
        return self.links[-1] if self.links else self.prefix.links[self.count]

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

    def tokens_of(self, count: int) -> int:
        """The tokens of the first `count` items."""
        if count <= self.count:
            return self.prefix.sums[count]
        return self.sums[count - self.count - 1]


class PrefixCache:
    """The runs of a session, the least recently used leaves first."""

    __slots__ = ("_prefixes",)

    def __init__(self) -> None:
        self._prefixes: OrderedDict[str, Prefix] = OrderedDict()

    def clear(self) -> None:
        """Forgets everything."""
        self._prefixes.clear()

    @property
    def size(self) -> int:
        """Bytes held besides the frames themselves, about."""
        return sum(250 * len(prefix.frames) for prefix in self._prefixes.values())

    def join(self, epoch: str, plan: Plan, view: View) -> JoinedList:
        """The list of a plan, going on from what was joined for its epoch."""
        prefix = self._prefixes.get(epoch)
        begun = prefix is None
        if prefix is None:
            prefix = self._prefixes[epoch] = Prefix()
            if len(self._prefixes) > MAX_PREFIXES:
                self._prefixes.popitem(last=False)
        else:
            self._prefixes.move_to_end(epoch)
        segments = plan.segments
        newest = view.base + len(view.atoms) - 1
        last = segments[-1] if segments else None
        if last is None or isinstance(last, Summarized) or last.last != newest:
            return _fresh(segments, view, begun)
        following: list[Slot] = []
        for segment in _behind(segments, prefix.next_step):
            if isinstance(segment, Summarized):
                prefix.add(segment.summary.slot)
                continue
            for step in range(max(segment.first, prefix.next_step), segment.last + 1):
                atom = view.atoms[step - view.base] if step >= view.base else view.anchors[step]
                slots = atom.slots if isinstance(segment, Keep) else shown_at(segment, atom)
                if step == newest:
                    following = slots
                else:
                    for slot in slots:
                        prefix.add(slot)
        prefix.next_step = max(prefix.next_step, newest)
        return _follow(prefix, following, begun)


def _behind(segments: Sequence[Segment], step: int) -> Sequence[Segment]:
    """The segments that hold this step or come behind it; all, where nothing is joined yet."""
    if step < 0:
        return segments
    for index in range(len(segments) - 1, -1, -1):
        segment = segments[index]
        if isinstance(segment, Summarized) or segment.last < step:
            return segments[index + 1 :]
    return segments


def _fresh(segments: tuple[Segment, ...], view: View, begun: bool) -> JoinedList:
    """A list that does not end with the newest steps: joined from nothing."""
    return _follow(
        Prefix(), [slot for segment in segments for slot in segment_slots(segment, view)], begun
    )


def _follow(prefix: Prefix, slots: list[Slot], begun: bool) -> JoinedList:
    frames, links, sums = [], [], []
    link, total = prefix.links[-1], prefix.sums[-1]
    for slot in slots:
        link = chain(link, slot.hash)
        total += slot.tokens
        frames.append(slot.frame)
        links.append(link)
        sums.append(total)
    return JoinedList(prefix, len(prefix.frames), frames, links, sums, begun)
