"""What a plan shows in short: forms of the messages that it shows, besides those of its engine."""

from __future__ import annotations

from msgspec.structs import replace

from contextengine_server.context.epoch import digest
from contextengine_server.context.layout import reshaped
from contextengine_server.context.message import Gone, Replacement, Slot
from contextengine_server.context.observations import Observation
from contextengine_server.context.plan import Keep, Plan, Reshaped, Segment, Summarized
from contextengine_server.context.view import View

from .moments import Pruned, first_step, prunable
from .rules import PruningRules

REASON = "an old result, in short since the provider's cache ended"

Forms = dict[int, dict[int, Slot]]
"""Slots by sequence, by step."""


def in_short(plan: Plan, view: View, pruned: Pruned, rules: PruningRules, reader: str = "") -> Plan:
    """The plan with these results in short, where it shows them. `reader`: the engine's tool that
    reads them whole."""
    first = max(view.raw_from, view.base, first_step(view))
    segments, named = list[Segment](), list[str]()
    for segment in plan.segments:
        found = Forms()
        if not isinstance(segment, Summarized) and segment.last >= first:
            found = _forms(view, max(first, segment.first), segment.last, pruned, rules, reader)
        segments += _with(segment, found)
        named += [slot.hash.hex() for slots in found.values() for slot in slots.values()]
    if not named:
        return plan
    name = digest([plan.forms, *named]).hex()
    return replace(plan, segments=tuple(segments), forms=name)


def _forms(
    view: View, first: int, last: int, pruned: Pruned, rules: PruningRules, reader: str
) -> Forms:
    """What is shown of these steps instead."""
    stays, forms = set(view.must_stay()), Forms()
    results = view.observations.between(first, last + 1)
    parts: dict[int, list[Replacement]] = {}
    show: dict[int, Observation] = {}
    for one in prunable(view, results, rules):
        how = None if one.result.step in stays else _how(one.result, one.long, pruned, rules)
        if how is not None:
            parts.setdefault(one.result.sequence, []).append(replace(how, reader=reader))
            show[one.result.sequence] = one.result
    for sequence, replaced in parts.items():
        result = show[sequence]
        slot = view.atom(result.step).slot_of(sequence)
        shown = view.observations.in_short(sequence, result.show, tuple(replaced))
        if slot is not None and shown.tokens < slot.tokens:
            forms.setdefault(result.step, {})[sequence] = shown
    return forms


def _how(one: Observation, long: bool, pruned: Pruned, rules: PruningRules) -> Replacement | None:
    """How a result is shown; None: as it is."""
    if (one.sequence, one.part) <= pruned.cleared:
        return Replacement(one.part, Gone.CLEARED, text=rules.placeholder)
    if not long or one.step >= pruned.trimmed:
        return None
    head, tail = rules.head_chars, rules.tail_chars
    if one.chars <= max(rules.max_chars, head + tail):
        head, tail = one.chars, 0  # only its picture goes
    return Replacement(one.part, Gone.TRIMMED, head=head, tail=tail)


def _with(segment: Segment, forms: Forms) -> tuple[Segment, ...]:
    """A segment with these forms; where the engine has one of its own, the shorter."""
    if not forms or isinstance(segment, Summarized):
        return (segment,)
    if isinstance(segment, Keep):
        return reshaped([segment], forms, dict.fromkeys(forms, REASON))
    slots, shorter = dict(segment.slots), False
    for found in forms.values():
        for sequence, slot in found.items():
            if sequence not in slots or slot.tokens < slots[sequence].tokens:
                slots[sequence], shorter = slot, True
    reason = f"{segment.reason}, or {REASON}" if shorter else segment.reason
    return (Reshaped(segment.first, segment.last, reason, slots),)
