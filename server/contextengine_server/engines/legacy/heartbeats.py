"""Heartbeats that nothing came of are not shown, where an operator says so.

After OpenClaw, which takes pairs of a prompt and its acknowledgement out of the history before it
counts turns (src/auto-reply/heartbeat-filter.ts). The newest turn is never such a pair: what is
asked now is shown, whatever it is.
"""

from __future__ import annotations

from contextengine_server.context.layout import Range
from contextengine_server.context.view import View

from .options import LegacyOptions

RULE = "a heartbeat that nothing came of"


def idle(view: View, options: LegacyOptions) -> list[Range]:
    """The turns that are a heartbeat and its acknowledgement, and nothing else."""
    if not options.hide_heartbeats:
        return []
    ends = [*view.users[1:], view.steps]
    turns = zip(view.users[:-1], ends, strict=False)
    return [(first, end - 1) for first, end in turns if _is_idle(view, first, end)]


def _is_idle(view: View, first: int, end: int) -> bool:
    if not all(entry.traits.heartbeat for entry in view.atom(first).entries):
        return False
    atoms = [view.atom(step) for step in range(first, end)]
    return (
        len(atoms) > 1
        and not any(atom.pinned or atom.dropped for atom in atoms)
        and all(entry.traits.heartbeat for atom in atoms for entry in atom.entries)
    )
