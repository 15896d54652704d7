"""The fold: messages come in one by one, atoms come out. What every law needs of a message is
decided here, once.

Results are paired with calls by position, since real sessions reuse ids: a result answers an open
call of the newest assistant message, else the newest abandoned call with its id, else nothing.
Then:

- A call is pending while only results follow it. When anything else follows, it is abandoned: its
  atom is closed and shows a synthetic result in place of each missing one.
- A late result (for an abandoned call) takes the place of the synthetic one, behind its call. Where
  a summary covers the call by then, it is shown as a labelled note instead.
- A result without a call, or a second one, is not shown; nor is what the harness excludes, which
  parts no call from its results.

The fold is pure: `extend` answers what would change; `apply` changes the view once that is
committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .atom import Atom
from .extension import EntryFacts, Extension, NeedsHistory
from .folder import Folder, apply, behind, extend
from .message import Entry, Shaper, Slot
from .scope import Scope
from .view import View
from .work import AT_ONCE, Work, batches

__all__ = [
    "EntryFacts",
    "Extension",
    "NeedsHistory",
    "apply",
    "extend",
    "extended",
    "extending",
    "forked",
    "interpose",
    "seal",
]


def extending(view: View, entries: Sequence[Entry], shaper: Shaper) -> Work[Extension]:
    """What `extend` answers, of many."""
    folder = Folder(view, shaper)
    for at, entry in enumerate(entries, 1):
        folder.add(entry)
        if not at % AT_ONCE:
            yield
    return folder.finish(entries)


def interpose(view: View, slot: Slot, sequence: int, shaper: Shaper) -> Extension:
    """What an item that is no message would do to a list: it stands by itself, and what stood open
    before it is abandoned."""
    folder = Folder(view, shaper)
    folder.close()
    if folder.current is not None:
        folder.waiting = behind(folder.waiting, folder.current)
    atom = Atom(step=view.steps, start=folder.out.total, first=sequence, closed=True)
    atom.show(slot)
    folder.out.added.append(atom)
    folder.out.total += slot.tokens
    folder.leading_open = False
    return folder.finish(())


def extended(view: View, change: Extension) -> View:
    """A view with the extension in it; the original stays as it is (a `live` list that is not
    stored)."""
    copy = replace(
        view,
        atoms=list(view.atoms),
        users=list(view.users),
        pauses=list(view.pauses),
        observations=(
            view.observations.copy() if change.observed or change.pictures else view.observations
        ),
        replies=view.replies.copy() if change.replied else view.replies,
    )
    if change.shifts:
        copy.atoms = [atom.clone() for atom in copy.atoms]
    apply(copy, change)
    return copy


def forked(view: View, scope: Scope) -> View:
    """The view of another session that begins where this one stands, without its summaries. Each
    goes on by itself."""
    view.lent = True
    return View(
        scope,
        atoms=list(view.atoms),
        base=view.base,
        total=view.total,
        last_sequence=view.last_sequence,
        message_count=view.message_count,
        fold=view.fold,
        anchors=dict(view.anchors),
        follows=dict(view.follows),
        pinned=list(view.pinned),
        large=list(view.large),
        answers=list(view.answers),
        observations=view.observations.copy(),
        replies=view.replies.copy(),
        older=view.older,
        users=list(view.users),
        pauses=list(view.pauses),
        lent=True,
    )


def seal(
    view: View, entries: Sequence[Entry], late: Sequence[tuple[Entry, int]], shaper: Shaper
) -> Work[None]:
    """Folds the messages of some old atoms into an empty view. Something else followed them long
    ago, so their open calls are abandoned; then come the results that were late, each with the
    first sequence of the atom that it stands in."""
    folder = Folder(view, shaper)
    for some in batches(entries):
        for entry in some:
            folder.add(entry)
        yield
    folder.close()
    for entry, first in late:
        _add_late(folder, entry, first)
    apply(view, folder.finish([*entries, *(entry for entry, _ in late)]))


def _add_late(folder: Folder, entry: Entry, first: int) -> None:
    """A late result of which it is known where it stands; what else it answers stands elsewhere."""
    atom = folder.added.get(first)
    unanswered = {call.id for call in atom.open} if atom is not None else set()
    folder.abandoned.changed = {
        call_id: [first] for _, call_id in entry.traits.results if call_id in unanswered
    }
    if folder.abandoned.changed:
        folder.add(entry)
