"""Making records fit: whole records, oldest first, in classes; and a cut that moves rarely.

In this order: bodies of old results become stubs, arguments of old calls do, old turns go whole,
then summaries, oldest first. The last turn stays as it is; only where that is too much by itself do
its results and calls become stubs and its older steps go, never its request or its last step.
Pinned messages never go. What is left out whole is named by an `omitted` record in its place.

A cut that is needed goes down to three quarters of the limit and is kept (`Cut` goes into the
binding) until the limit is reached again, so that what is sent begins the same for many turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from ..model import ChatRole, Item
from .records import ItemRecords, PlacedRecords, Record, line, omitted, placed

RATCHET = 0.75
"""How far down a cut goes, as a share of the limit."""


class Cut(msgspec.Struct, frozen=True):
    """How far each class is cut, by the position of the last entry that it takes in. 0: nothing
    is."""

    results: int = 0
    arguments: int = 0
    turns: int = 0
    summaries: int = 0
    steps_after: int = 0
    """Of the turn that was the last, the entries behind this position …"""
    steps: int = 0
    """… up to this one are gone."""

    @property
    def facts(self) -> dict[str, int]:
        """As the binding keeps it: what is not 0."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value}


_NONE = Cut()


def cut_of(facts: Mapping[str, int]) -> Cut:
    """The cut that a binding keeps."""
    return Cut(**{name: facts.get(name, 0) for name in Cut.__struct_fields__})


class Fitted(msgspec.Struct):
    """Records that fit, or the least that can be."""

    records: list[Record]
    lines: list[str]
    cut: Cut
    first: int
    """The position of the first entry that is shown, where something was cut."""
    stubbed: int
    omitted: int
    chars: int
    fits: bool


def fit(items: Sequence[Item], made: Sequence[ItemRecords], limit: int, earlier: Cut) -> Fitted:
    """The items' records for a limit in characters, line ends included; goes on from the earlier
    cut."""
    if earlier == _NONE and (chars := sum([one.chars for one in made])) <= limit:
        records = [record for one in made for record in one.records]
        return Fitted(
            records, [text for one in made for text in one.lines], earlier, 0, 0, 0, chars, True
        )
    entries = placed(items, made)
    fitted = _apply(entries, earlier)
    if fitted.chars <= limit:
        return fitted
    target, at = int(limit * RATCHET), fitted
    for further in (_old, _summaries, _within):
        if at.chars <= limit:
            break  # it fits: the next kind of cut would take what matters more
        for cut in further(entries, at.cut):
            at = _apply(entries, cut)
            if at.chars <= target:
                break
    at.fits = at.chars <= limit
    return at


def _old(entries: Sequence[PlacedRecords], cut: Cut) -> Iterator[Cut]:
    """Cuts that go further and further into what stands before the last turn, each class in at most
    32 stops: a cut goes well below the limit anyway, and a long history is not gone through once
    for each of its turns."""
    last = _last_turn(entries)
    old = [entry for entry in entries if entry.turn < last and entry.item.summary is None]
    for name in ("results", "arguments"):
        for position in _stops([entry.position for entry in old], getattr(cut, name)):
            cut = replace(cut, **{name: position})
            yield cut
    ends = [
        entry.position
        for at, entry in enumerate(old)
        if at + 1 == len(old) or old[at + 1].turn != entry.turn
    ]
    for position in _stops(ends, cut.turns):
        cut = replace(cut, turns=position)
        yield cut


def _summaries(entries: Sequence[PlacedRecords], cut: Cut) -> Iterator[Cut]:
    """Cuts that take one summary more."""
    for entry in entries:
        if entry.item.summary is not None and entry.position > cut.summaries:
            cut = replace(cut, summaries=entry.position)
            yield cut


def _within(entries: Sequence[PlacedRecords], cut: Cut) -> Iterator[Cut]:
    """Cuts within the last turn, its request and its last step apart."""
    last = _last_turn(entries)
    newest = [entry for entry in entries if entry.turn == last and entry.item.summary is None]
    steps = [at for at, entry in enumerate(newest) if entry.item.role is ChatRole.ASSISTANT]
    if len(steps) < 2:
        return
    positions = [entry.position for entry in newest[: steps[-1]]]
    for name in ("results", "arguments"):
        for position in _stops(positions, getattr(cut, name)):
            cut = replace(cut, **{name: position})
            yield cut
    begin = newest[steps[0]].position - 1
    ends = [newest[at - 1].position for at in steps[1:]]
    for position in _stops(ends, cut.steps if cut.steps_after == begin else 0):
        cut = replace(cut, steps_after=begin, steps=position)
        yield cut


def _last_turn(entries: Sequence[PlacedRecords]) -> int:
    return max((entry.turn for entry in entries), default=0)


def _stops(positions: Sequence[int], behind: int) -> list[int]:
    """At most 32 of the positions behind the one given, in order, the last among them."""
    left = sorted({position for position in positions if position > behind})
    stride = max(1, -(-len(left) // 32))
    stops = left[stride - 1 :: stride]
    return stops if not left or stops[-1:] == left[-1:] else [*stops, left[-1]]


def _gone(entry: PlacedRecords, cut: Cut) -> bool:
    if entry.item.pinned:
        return False
    if entry.item.summary is not None:
        return entry.position <= cut.summaries
    return entry.position <= cut.turns or cut.steps_after < entry.position <= cut.steps


def _apply(entries: Sequence[PlacedRecords], cut: Cut) -> Fitted:
    records: list[Record] = []
    lines: list[str] = []
    gone: list[PlacedRecords] = []
    stubs = left_out = first = 0

    def close() -> None:
        if gone:
            records.append(omitted(gone))
            lines.append(line(records[-1]))
            gone.clear()

    for entry in entries:
        if _gone(entry, cut):
            left_out += 1
            gone.append(entry)
            continue
        close()
        made = entry.made
        first = first or entry.position
        if entry.item.pinned or not (
            (made.bodies and entry.position <= cut.results)
            or (made.arguments and entry.position <= cut.arguments)
        ):
            records += made.records
            lines += made.lines
            continue
        for at, record in enumerate(made.records):
            text = made.lines[at]
            if (at in made.bodies and entry.position <= cut.results) or (
                at in made.arguments and entry.position <= cut.arguments
            ):
                short, text = made.short(at)
                stubs += short is not record
                record = short
            records.append(record)
            lines.append(text)
    close()
    chars = sum(map(len, lines)) + len(lines)
    return Fitted(records, lines, cut, first, stubs, left_out, chars, True)
