"""What the layers of reasoning leave out of a view, and the forms that this gives its messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b

import msgspec

from contextengine_server.context.message import Form, Slot
from contextengine_server.context.observations import Reply
from contextengine_server.context.plan import Keep, Segment
from contextengine_server.context.view import View

from . import signature_scrubber, surrogate_guard, tag_stripper, thinking_cleaner
from .isolation import isolated
from .options import PipelineOptions
from .past import Leavings, Past, past_of

Layer = Callable[[Past, Leavings], Leavings]

LAYERS: tuple[tuple[str, Layer], ...] = (
    ("thinking-block-cleaner", thinking_cleaner.clean),
    ("signature-replay-scrubber", signature_scrubber.scrub),
    ("signature-surrogate-guard", surrogate_guard.guard),
    ("reasoning-tag-stripper", tag_stripper.strip),
)
"""In their order; each decides about what those before it left."""
WITHOUT_REASONING = "reasoning of a turn that is over"
STRIPPED_TAGS = "reasoning between tags, of a turn that is over"


class Unreasoned(msgspec.Struct, frozen=True):
    """The messages of a view that are shown without some of their reasoning."""

    forms: dict[int, dict[int, Slot]] = {}
    """What to show instead: slots by sequence, by step."""
    reasons: dict[int, str] = {}
    """Why, by step."""
    name: str = ""
    """Names them, for the epoch; empty: there are none."""


def leavings(view: View, past: Past) -> Leavings:
    """What the layers leave out, by sequence."""
    decided = Leavings()
    for name, layer in LAYERS:
        decided = isolated(view, name, layer, past, decided)
    return decided


def unreasoned(
    view: View,
    segments: tuple[Segment, ...],
    others: Mapping[int, Mapping[int, Slot]],
    options: PipelineOptions,
) -> Unreasoned:
    """The messages of a plan that are to be shown without reasoning; but for those that it shows in
    another form, by step and sequence."""
    kept = [segment for segment in segments if isinstance(segment, Keep)]
    thoughts = view.replies.thoughts
    if not kept or not (thoughts or view.older) or view.user_step < 0:
        return Unreasoned()
    past = past_of(view, kept[0].first, options)
    shown = {step for one in kept for step in range(one.first, min(one.last, view.user_step) + 1)}
    decided = leavings(view, past)
    forms: dict[int, dict[int, Slot]] = {}
    reasons: dict[int, str] = {}
    named = blake2b(digest_size=8)
    for one in past.said:
        how = decided.get(one.entry.sequence)
        if how is None or one.show is None or one.step not in shown:
            continue
        if one.entry.sequence in others.get(one.step, ()) or _in_parts(view, one):
            continue
        slot = one.show(how)
        forms.setdefault(one.step, {})[one.entry.sequence] = slot
        reasons[one.step] = STRIPPED_TAGS if slot.form is Form.STRIPPED_TAGS else WITHOUT_REASONING
        named.update(slot.hash)
    return Unreasoned(forms, reasons, named.hexdigest() if forms else "")


def _in_parts(view: View, one: Reply) -> bool:
    """True where only some parts of a message stand here."""
    return any(
        slot.form is Form.SOME_PARTS
        for slot in view.atom(one.step).slots
        if slot.sequence == one.entry.sequence
    )
