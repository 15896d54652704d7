"""Aligning a harness's own list with the stored view (docs/semantics.md#live-lists).

By ids where both have them, else by the longest run of equal contents that ends at the last stored
message. Where texts repeat and runs are as long, by the first that nothing contradicts. What
follows is new. The list is a view and not the truth: what it leaves out is not deleted. Items of
ours that come back are passed over.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from contextengine_server.context.message import Form
from contextengine_server.context.view import View
from contextengine_server.wire.message import Incoming


class Alignment(msgspec.Struct, frozen=True):
    """Where a list meets the stored view."""

    start: int
    """The index of its first new message."""
    matched: dict[int, int]
    """Indexes of the list that are stored messages, by their sequence: an unbroken run that ends
    before `start`."""


def align(
    live: Sequence[Incoming], view: View, known_ids: dict[str, tuple[int, bytes, int]]
) -> Alignment | None:
    """Where the list meets the view; None where it does not. An empty view aligns with anything."""
    if not view.steps:
        return Alignment(0, {})
    listed = [index for index, message in enumerate(live) if not message.own]
    place = max(
        (at for at, index in enumerate(listed) if live[index].id and live[index].id in known_ids),
        default=None,
    )
    if place is not None:
        return Alignment(
            _behind_own(live, listed[place] + 1), _by_id(live, listed, place, known_ids)
        )
    return _by_content(live, listed, view)


def _behind_own(live: Sequence[Incoming], index: int) -> int:
    while index < len(live) and live[index].own:
        index += 1
    return index


def _by_id(
    live: Sequence[Incoming],
    listed: list[int],
    place: int,
    known_ids: dict[str, tuple[int, bytes, int]],
) -> dict[int, int]:
    matched: dict[int, int] = {}
    behind = None
    while place >= 0:
        known = known_ids.get(live[listed[place]].id)
        if known is None or (behind is not None and known[0] >= behind):
            break
        matched[listed[place]] = behind = known[0]
        place -= 1
    return matched


def _by_content(live: Sequence[Incoming], listed: list[int], view: View) -> Alignment | None:
    stored = _newest_first(view)
    best: dict[int, int] = {}
    best_place = -1
    for place in range(len(listed) - 1, -1, -1):
        if len(best) > place + 1:
            break  # an earlier place cannot have a run as long
        run, whole = _run(live, listed, place, stored)
        if len(run) > len(best) or (whole and run and len(run) == len(best)):
            best, best_place = run, place
    if best_place < 0:
        return None
    return Alignment(_behind_own(live, listed[best_place] + 1), best)


def _run(
    live: Sequence[Incoming], listed: list[int], place: int, stored: list[tuple[bytes, int, bool]]
) -> tuple[dict[int, int], bool]:
    """Going back from this place, the messages that are the newest stored ones, and whether only
    the end of the list or of what is stored ended the run. What the view does not show (an orphan
    result, say) may be in the list or not."""
    run: dict[int, int] = {}
    for content, sequence, shown in stored:
        if place < 0:
            break
        if live[listed[place]].hash == content:
            run[listed[place]] = sequence
            place -= 1
        elif shown:
            return run, False
    return run, True


def _newest_first(view: View) -> list[tuple[bytes, int, bool]]:
    """The stored contents, newest first, and whether the view shows them as they are."""
    unshown = {entry.sequence for atom in view.atoms for entry, _ in atom.dropped}
    for atom in view.atoms:
        if atom.note:
            unshown |= {slot.sequence for slot in atom.slots if slot.form is Form.NOTE}
    return [
        (entry.hash, entry.sequence, entry.sequence not in unshown)
        for entry in reversed(view.entries())
    ]
