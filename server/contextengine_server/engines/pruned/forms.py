"""What a plan shows in short: forms of the messages that it shows, besides those of its engine."""

from __future__ import annotations

from msgspec.structs import replace

from contextengine_server.context.epoch import digest
from contextengine_server.context.layout import reshaped
from contextengine_server.context.message import Gone, Replacement, Role, Slot
from contextengine_server.context.observations import Observation, Pictured
from contextengine_server.context.plan import Keep, Plan, Reshaped, Segment, Summarized
from contextengine_server.context.settled import SCRAP
from contextengine_server.context.view import View

from .moments import Pruned, first_step, prunable
from .rules import PruningRules

REASON = "an old result, in short since the provider's cache ended, or a picture seen turns ago"

Forms = dict[int, dict[int, Slot]]
"""Slots by sequence, by step."""
Parts = dict[int, tuple[Observation | Pictured, dict[int, Replacement]]]
"""What is in short of messages, by part, by sequence; and what shows them so."""


def in_short(plan: Plan, view: View, pruned: Pruned, rules: PruningRules, reader: str = "") -> Plan:
    """The plan with these results and pictures in short, where it shows them. `reader`: the
    engine's tool that reads them whole."""
    first = max(view.raw_from, view.base, first_step(view))
    segments, named = list[Segment](), list[str]()
    for segment in plan.segments:
        found = Forms()
        if not isinstance(segment, Summarized) and segment.last >= first:
            there = range(max(first, segment.first), segment.last + 1)
            parts = _parts(view, there, pruned, rules)
            found = _forms(view, parts, reader)
        segments += _with(segment, found)
        named += [slot.hash.hex() for slots in found.values() for slot in slots.values()]
    if not named:
        return plan
    name = digest([plan.forms, *named]).hex()
    return replace(plan, segments=tuple(segments), forms=name)


def _parts(view: View, there: range, pruned: Pruned, rules: PruningRules) -> Parts:
    """What is in short of these steps, and how. A picture of what is in short is gone with it."""
    stays, parts = set(view.must_stay()), Parts()
    if pruned.decided:
        for one in prunable(view, view.observations.between(there.start, there.stop), rules):
            how = None if one.result.step in stays else _how(one.result, one.long, pruned, rules)
            if how is not None:
                known = parts.setdefault(one.result.sequence, (one.result, {}))
                known[1][one.result.part] = how
    seen = range(there.start, min(there.stop, pruned.seen))
    for picture in view.observations.pictures:
        if picture.step in seen and picture.step not in stays:
            _, known_parts = parts.get(picture.entry.sequence, (picture, {}))
            found = _seen(view, picture) | known_parts
            if found:
                parts[picture.entry.sequence] = picture, found
    return parts


def _forms(view: View, parts: Parts, reader: str) -> Forms:
    """What is shown of messages instead."""
    forms = Forms()
    for sequence, (shows, found) in parts.items():
        how = tuple(replace(found[part], reader=reader) for part in sorted(found))
        slot = view.atom(shows.step).slot_of(sequence)
        shown = view.observations.in_short(sequence, shows.show, how)
        if slot is not None and shown.tokens < slot.tokens:
            forms.setdefault(shows.step, {})[sequence] = shown
    return forms


def _seen(view: View, picture: Pictured) -> dict[int, Replacement]:
    """The pictures of a message of a user's or a tool's. A step that is a scrap may be left between
    two summaries, where nothing is in short."""
    traits, atom = picture.entry.traits, view.atom(picture.step)
    if traits.role not in (Role.USER, Role.TOOL) or atom.pinned or atom.tokens <= SCRAP:
        return {}
    return {part: Replacement(part, Gone.SEEN) for part in (*traits.images, *traits.pictured)}


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
