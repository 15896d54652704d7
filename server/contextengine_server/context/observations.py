"""What is taken down of messages as they come: what tools answered and models said, in order.

Results that a later one says anew were read again.

A read is known by its target (a file, a command, an address) and by how much of it was read. It
stands for every earlier read of the same target and the same extent, and a read of the whole stands
for those of parts. All of it is taken down as messages arrive; whether an engine shows less of some
of them is its affair (`engines.masks`, `engines.pipeline`).

A signature over reasoning is one provider's and one model's, and it does not keep for ever. Replay
drift is what tells: another model, provider or API dialect replied, or too long passed before the
user went on (after Comis's packages/agent/src/context-engine/signature-replay-scrubber.ts). A value
that is missing on either side tells nothing.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any, Generic, TypeVar

import msgspec

from .atom import Atom
from .message import (
    Entry,
    MadeBy,
    ReadKey,
    Replacement,
    Replacements,
    Shaper,
    Slot,
    Stripped,
)

_STEP, _CREATED = attrgetter("step"), attrgetter("created")
CHANGES = ("provider_change", "model_change", "api_change")
"""What the drift is, by the place in `MadeBy`."""


How = TypeVar("How")
"""In which form a message is shown."""


class Newest(Generic[How]):
    """Shows a message in other forms, of which the newest is kept."""

    __slots__ = ("_kept", "_show")

    def __init__(self, show: Callable[[How], Slot]) -> None:
        self._show = show
        self._kept: tuple[How, Slot] | None = None

    def __call__(self, how: How) -> Slot:
        if self._kept is None or self._kept[0] != how:
            self._kept = how, self._show(how)
        return self._kept[1]


class Observation(msgspec.Struct, frozen=True, eq=False):
    """A result that stands behind its call."""

    step: int
    sequence: int
    """The message that carries it."""
    part: int
    tool: str
    tokens: int
    """Those of the message, with the first result of it."""
    created: int
    """The revision that stored it."""
    key: ReadKey | None
    """What its call reads, where that is known."""
    failed: bool
    """It is an error."""
    pictured: bool
    """It holds a picture."""
    chars: int
    """The characters of its texts."""
    show: Callable[[Replacements], Slot]
    """Shows the message with a marker in place of these parts."""
    text: bytes = b""
    """Names its text, where that is long enough to be told by another with the same."""


class Pictured(msgspec.Struct, frozen=True, eq=False):
    """A message with pictures in it, or in its results."""

    step: int
    entry: Entry
    show: Callable[[Replacements], Slot]
    """Shows the message with a marker in place of these parts."""


class Stale(msgspec.Struct, frozen=True, gc=False):
    """A result that another stands for since."""

    part: int
    by: int
    """The sequence of that one."""
    since: int
    """The revision that stored it."""


@dataclass(slots=True)
class StaleMessage:
    """A message with stale results."""

    step: int
    show: Callable[[Replacements], Slot]
    parts: list[Stale] = field(default_factory=list)
    """By when they became so."""
    _shown: dict[Replacements, Slot] = field(default_factory=dict)
    """Plans of moments look at several forms in turn: all are kept."""

    def at(self, revision: int) -> Replacements:
        """Those of its results that were stale before this revision."""
        if len(self.parts) == 1:  # nearly every message: worth being quick, plans ask for each
            [only] = self.parts
            return (Replacement(only.part, by=only.by),) if only.since < revision else ()
        stale = sorted((each.part, each.by) for each in self.parts if each.since < revision)
        return tuple(Replacement(part, by=by) for part, by in stale)

    def shown(self, replaced: Replacements) -> Slot:
        """The message without these parts, made once."""
        if replaced not in self._shown:
            self._shown[replaced] = self.show(replaced)
        return self._shown[replaced]


@dataclass(slots=True)
class Observations:
    """The results of the messages in memory."""

    all: list[Observation] = field(default_factory=list)
    """In order."""
    sums: list[int] = field(default_factory=list)
    """The tokens of each and all in memory before it."""
    newest: dict[bytes, dict[bytes, Observation]] = field(default_factory=dict)
    """The newest read of each extent, by target; none that a later one of the whole stands for."""
    stale: dict[int, StaleMessage] = field(default_factory=dict)
    """By sequence."""
    sequences: list[int] = field(default_factory=list)
    """Those of `stale`, rising."""
    pictures: list[Pictured] = field(default_factory=list)
    """The messages with pictures, in order."""
    decided: dict[Hashable, tuple[int, tuple[int, int]]] = field(default_factory=dict)
    """What session pruning decided about them (`engines.pruned`), by all that decides it."""
    masked: dict[Hashable, Any] = field(default_factory=dict)
    """Which of them are shown as markers (`engines.masks`), by all that decides it."""
    _shown: dict[int, Newest[Replacements]] = field(default_factory=dict)
    _in_short: dict[int, Newest[Replacements]] = field(default_factory=dict)

    def take(self, more: Iterable[Observation]) -> None:
        """More results, in order."""
        for one in more:
            self.all.append(one)
            self.sums.append(one.tokens + (self.sums[-1] if self.sums else 0))
            if one.key is not None and not one.failed:
                self._read(one, one.key)

    def _read(self, now: Observation, key: ReadKey) -> None:
        extents = self.newest.setdefault(key.target, {})
        for extent in [key.extent] if key.extent else [*extents]:
            before = extents.pop(extent, None)
            if before is not None:
                self._outdate(before, now)
        extents[key.extent] = now

    def _outdate(self, before: Observation, now: Observation) -> None:
        known = self.stale.get(before.sequence)
        if known is None:
            known = self.stale[before.sequence] = StaleMessage(before.step, before.show)
            insort(self.sequences, before.sequence)
        known.parts.append(Stale(before.part, now.sequence, now.created))

    def shown(self, sequence: int, show: Callable[[Replacements], Slot], how: Replacements) -> Slot:
        """A message with markers in place of some results; the newest form is kept."""
        return _form(self._shown, sequence, show)(how)

    def in_short(
        self, sequence: int, show: Callable[[Replacements], Slot], how: Replacements
    ) -> Slot:
        """The same, kept apart: another form than an engine's own."""
        return _form(self._in_short, sequence, show)(how)

    def before(self, step: int) -> int:
        """How many results stand before a step."""
        return bisect_left(self.all, step, key=_STEP)

    def before_revision(self, revision: int) -> int:
        """How many had come before a revision."""
        return bisect_left(self.all, revision, key=_CREATED)

    def between(self, first: int, end: int) -> Sequence[Observation]:
        """Those of the steps from `first` to before `end`."""
        return self.all[self.before(first) : self.before(end)]

    def copy(self) -> Observations:
        """A copy that goes on by itself."""
        return Observations(
            list(self.all),
            list(self.sums),
            {target: dict(extents) for target, extents in self.newest.items()},
            {
                sequence: StaleMessage(known.step, known.show, list(known.parts))
                for sequence, known in self.stale.items()
            },
            list(self.sequences),
            list(self.pictures),
        )

    def stale_steps(self) -> Iterator[int]:
        """The steps with stale results, some of them more than once."""
        return (message.step for message in self.stale.values())


def _form(
    kept: dict[int, Newest[Replacements]], sequence: int, show: Callable[[Replacements], Slot]
) -> Newest[Replacements]:
    if sequence not in kept:
        kept[sequence] = Newest(show)
    return kept[sequence]


def observed(
    atom: Atom, entry: Entry, places: Sequence[int], shaper: Shaper
) -> Iterator[Observation]:
    """The results of a message: they answer these calls of the atom, in order."""
    show, traits, tokens = partial(shaper.replaced, entry), entry.traits, entry.tokens
    results = zip(traits.results, traits.chars, traits.texts, places, strict=True)
    for (part, _), chars, text, place in results:
        call = atom.calls[place]
        asked = call.entry.traits
        yield Observation(
            atom.step,
            entry.sequence,
            part,
            asked.tools[call.index],
            tokens,
            entry.created,
            asked.reads[call.index] if asked.reads else None,
            part in traits.failed,
            part in traits.pictured,
            chars,
            show,
            text,
        )
        tokens = 0


class Reply(msgspec.Struct, frozen=True, eq=False):
    """A message of a model."""

    step: int
    entry: Entry
    show: Callable[[Stripped], Slot] | None = None
    """Shows it without some of its reasoning; None: it has none."""


def replied(step: int, entry: Entry, shaper: Shaper) -> Reply:
    """A message of a model."""
    show = Newest(partial(shaper.stripped, entry)) if entry.traits.thinking else None
    return Reply(step, entry, show)


@dataclass(slots=True)
class ReplyHistory:
    """The replies in memory."""

    steps: list[int] = field(default_factory=list)
    """Their steps, in order."""
    thoughts: list[Reply] = field(default_factory=list)
    """Those that hold reasoning, signatures or tags of reasoning."""
    switched: tuple[int, str] = (0, "")
    """The first step from which on the newest model replied, and what told it from the one before;
    0: no other is known."""
    made_by: MadeBy = ("", "", "")
    """Who made the newest reply, as far as that or one before it says."""

    def take(self, more: Iterable[Reply]) -> None:
        """More messages, in order."""
        for one in more:
            self._reply(one)

    def _reply(self, one: Reply) -> None:
        entry = one.entry
        self.steps.append(one.step)
        if one.show is not None:
            self.thoughts.append(one)
        made_by = entry.traits.made_by
        if made_by == self.made_by or not any(made_by):
            return
        pairs = zip(self.made_by, made_by, CHANGES, strict=True)
        change = next((name for old, new, name in pairs if old and new and old != new), "")
        if change:
            self.switched = one.step, change
        provider, model, api = (new or old for old, new in zip(self.made_by, made_by, strict=True))
        self.made_by = provider, model, api

    def copy(self) -> ReplyHistory:
        """A copy that goes on by itself."""
        return ReplyHistory(list(self.steps), list(self.thoughts), self.switched, self.made_by)
