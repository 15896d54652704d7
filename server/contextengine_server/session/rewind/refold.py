"""A view with its end taken off, folded again: what is left of it, and what of that is other than
before."""

from __future__ import annotations

from collections.abc import Set

import msgspec

from contextengine_server.context.fold import apply, extend
from contextengine_server.context.view import View
from contextengine_server.context.work import Work, batches
from contextengine_server.session.rows import facts_by_sequence
from contextengine_server.slices import let_go
from contextengine_server.store.rows import Facts
from contextengine_server.wire.slots import WireShaper


class Refolded(msgspec.Struct, frozen=True):
    """What is left of a view."""

    view: View
    """Without summaries."""
    facts: list[Facts]
    """Facts of messages that are left and have others now."""
    shifts: list[tuple[int, int]]
    """How far what is left moved, as in `Extension.shifts`: what was taken off may have stood among
    it."""
    lost: Set[int]
    """The steps left that lost a message: an answer, which may have come late."""


def refold(view: View, after: int, shaper: WireShaper) -> Work[Refolded]:
    """A whole view with nothing behind a sequence."""
    again = View(scope=view.scope, incarnation=view.incarnation, reset_mark=view.reset_mark)
    # What came while a summary covered its call is a note, whether that summary stays or goes.
    again.stretches = list(view.stretches)
    entries = yield from view.gathered()
    for some in batches([entry for entry in entries if entry.sequence <= after]):
        apply(again, extend(again, some, shaper))
        yield
    lost: set[int] = set()
    for atoms in batches(view.atoms[: again.steps]):
        lost.update(
            atom.step for atom in atoms if atom.entries and atom.entries[-1].sequence > after
        )
        yield
    before = yield from facts_by_sequence(view)
    return (yield from compared(again, before, lost))


def compared(left: View, before: dict[int, Facts], lost: Set[int]) -> Work[Refolded]:
    """What is left beside what was known of its messages, which is let go of. `lost`: see
    `Refolded.lost`."""
    now = yield from facts_by_sequence(left)
    other: list[Facts] = []
    for some in batches(now.items()):
        other += [facts for sequence, facts in some if before.get(sequence) != facts]
        yield
    shifts: list[tuple[int, int]] = []
    moved = 0
    for atoms in batches(left.atoms):
        for atom in atoms:
            known = before.get(atom.first)
            if known is None or known.start is None:
                continue
            if (by := atom.start - known.start) != moved:
                shifts.append((atom.first - 1, by - moved))
                moved = by
        yield
    let_go(before, now)
    return Refolded(left, other, shifts, lost)
