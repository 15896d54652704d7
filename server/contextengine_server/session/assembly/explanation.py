"""Explaining an assembly: one decision for every message of the session. The decisions partition
the input exactly."""

from __future__ import annotations

from dataclasses import replace as changed
from enum import IntEnum
from itertools import islice

import msgspec

from contextengine_server.context.atom import Atom
from contextengine_server.context.message import Entry, Form, Slot
from contextengine_server.context.plan import Beside, Keep, Reshaped, Summarized
from contextengine_server.context.view import View
from contextengine_server.context.work import Work, batches, emptied
from contextengine_server.session.assembly.assembly import Assembly


class Kind(IntEnum):
    """What was decided, by the wire's numbers."""

    KEPT = 1
    PINNED = 2
    MASKED = 3
    EVICTED = 4
    SUMMARIZED = 5
    BOUNDED = 6
    DROPPED = 7


_UNSHOWN = (Kind.EVICTED, Kind.SUMMARIZED, Kind.DROPPED)


class Decision(msgspec.Struct, frozen=True):
    """What was decided about one message."""

    entry: Entry
    kind: Kind
    rule: str
    tokens: int = 0
    summary_id: str = ""
    item_index: int | None = None
    synthetic_count: int = 0
    form: Form = Form.VERBATIM


def explain(assembly: Assembly) -> Work[list[Decision]]:
    """The decisions, in order of sequence. The assembly's view is whole, and may be gone on with
    meanwhile: what is explained is as it was at the first step."""
    # Whoever goes on with the view adds to its atoms, which are passed over here, and replaces some
    # in a copy of his own while they are read here. To copy 200,000 took 10 to 20 ms.
    atoms, read = assembly.view.atoms, assembly.view.read
    read.append(atoms)
    try:
        return (yield from _decisions(assembly))
    finally:
        read.pop(next(at for at, one in enumerate(read) if one is atoms))


def _decisions(assembly: Assembly) -> Work[list[Decision]]:
    view, plan = assembly.view, assembly.plan
    view = changed(view, anchors=dict(view.anchors))
    atoms = islice(view.atoms, len(view.atoms))
    tail = min(view.tail_from(assembly.engine.declared.tail_steps), view.unanswered)
    shown, summaries = yield from _shown(assembly, view)
    decided: dict[int, Decision] = {}

    def decide(decision: Decision) -> None:
        # Results in one message may stand behind calls of several atoms: what shows any of them
        # goes before what shows none.
        known = decided.get(decision.entry.sequence)
        if known is None or (
            known.kind in _UNSHOWN and decision.kind not in (Kind.EVICTED, Kind.DROPPED)
        ):
            decided[decision.entry.sequence] = decision

    for atom in atoms:
        for entry, rule in atom.dropped:
            decide(Decision(entry, Kind.DROPPED, rule))
        for entry in atom.entries:
            here = shown.get(entry.sequence)
            if here is not None:
                decide(_kept(view, tail, atom, entry, *here))
                continue
            covering = view.covering(atom.step)
            if covering is None:
                decide(Decision(entry, Kind.EVICTED, plan.rule or "law budget"))
            elif covering.id in summaries:
                why = summaries[covering.id].reason
                decide(Decision(entry, Kind.SUMMARIZED, why, summary_id=covering.id))
            else:
                rule = f"its summary {covering.id} was evicted"
                decide(Decision(entry, Kind.EVICTED, rule, summary_id=covering.id))
        yield
    yield from emptied(shown)
    inorder: list[Decision] = []
    for some in batches(sorted(decided)):
        inorder += map(decided.pop, some)
        yield
    return inorder


def _shown(
    assembly: Assembly, view: View
) -> Work[tuple[dict[int, tuple[int, Slot, str]], dict[str, Summarized]]]:
    """The messages shown, by sequence, with their place in the list and the engine's reason; and
    the summaries shown, by id."""
    shown: dict[int, tuple[int, Slot, str]] = {}
    summaries: dict[str, Summarized] = {}
    index = 0
    for segment in assembly.listed:
        if isinstance(segment, Beside):
            index += 1
            continue
        if isinstance(segment, Summarized):
            summaries[segment.summary.id] = segment
            index += 1
            continue
        other = segment.slots if isinstance(segment, Reshaped) else {}
        for step in range(segment.first, segment.last + 1):
            yield
            for slot in view.atom(step).slots:
                if not slot.synthetic:
                    said = isinstance(segment, Keep) or slot.sequence in other
                    why = segment.reason if said else ""
                    shown.setdefault(slot.sequence, (index, other.get(slot.sequence, slot), why))
                index += 1
    return shown, summaries


_KINDS = {Form.PLACEHOLDER: Kind.MASKED, Form.HEAD_TAIL: Kind.BOUNDED}


def _kept(
    view: View,
    tail: int,
    atom: Atom,
    entry: Entry,
    index: int,
    slot: Slot,
    why: str,
) -> Decision:
    """The decision about a message that is shown. `tail`: the first step that is always verbatim;
    `why`: what the engine says of the message, which stands where no law asks for it."""
    kind, rule = _KINDS.get(slot.form, Kind.KEPT), why or "within the budget"
    if kind is Kind.KEPT:
        if atom.leading:
            kind, rule = Kind.PINNED, "leads the session"
        elif entry.traits.pinned:
            kind, rule = Kind.PINNED, "labelled pinned"
        elif atom.step == view.user_step:
            rule = "newest user message"
        elif atom.step >= tail:
            rule = "law tail"
        if slot.form is Form.NOTE:
            rule = "late result of a summarized call, as a note"
        elif slot.form is Form.SOME_PARTS:
            rule += "; parts that answer no open call are left out"
    elif kind is Kind.BOUNDED:
        rule = why or "over its cap: head and tail"
    synthetic = sum(1 for s in atom.slots if s.synthetic) if entry.traits.calls else 0
    return Decision(
        entry, kind, rule, slot.tokens, item_index=index, synthetic_count=synthetic, form=slot.form
    )
