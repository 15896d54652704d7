"""What the layers leave out of a view, and the forms that this gives its messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import structs

from contextengine_server.context.budget import cell as on_grid
from contextengine_server.context.lawful import Moment
from contextengine_server.context.message import Gone, Replacement
from contextengine_server.context.view import View

from ..bounds import Bounds, bounds_of, with_masks
from ..contract import SESSION_SEARCH
from ..masks import LEAST_SAVED, Masks
from ..ticks import earlier, results_at, view_before
from . import evictor, masker, window
from .isolation import isolated
from .offload import REASON as ARRIVED
from .offload import Arrived, arrived
from .options import PipelineOptions
from .scene import Decisions, Scene, scene_of
from .ticks import interval

Layer = Callable[[Scene, Decisions], Decisions]

LAYERS: tuple[tuple[str, Layer], ...] = (
    ("dead-content-evictor", evictor.evict),
    ("observation-masker", masker.mask),
)
"""In their order; each decides about what those before it left."""
REASON = "dead content, or an old result"
REACH = 16
"""Masks are sought in so many times the budget of the newest history: of what lies before it not
even the markers would fit."""


def decisions(scene: Scene, early: Arrived) -> Decisions:
    """What the layers leave out, of what is not short from its arrival on. A layer that fails
    leaves out nothing, and is told of."""
    short = {
        (sequence, each.part): each
        for sequence, parts in early.parts.items()
        for each in parts
        if each.why is not Gone.CUT
    }
    decided = Decisions(short)
    for name, layer in LAYERS:
        decided = isolated(scene.view, name, _adding(layer), scene, decided)
    return {place: how for place, how in decided.items() if place not in short}


def _adding(layer: Layer) -> Layer:
    """A layer that answers all that is left out."""
    return lambda scene, decided: decided | layer(scene, decided)


class Shaping:
    """How the messages of a view are shown at a budget: now, and at earlier moments of it."""

    def __init__(self, view: View, budget: int, options: PipelineOptions) -> None:
        self._view, self._budget, self._options = view, budget, options
        self._early = arrived(view, options)
        """Worked out once for all moments: messages have these forms from their arrival on."""

    def now(self) -> Bounds:
        """The forms of the view's messages."""
        return self._with(len(self._view.observations.all))

    def before(self, revision: int) -> Bounds:
        """Those before a revision."""
        return self._with(self._view.observations.before_revision(revision))

    def moments(self) -> Iterator[Moment]:
        """The view just before each tick in memory: what was masked then was less."""
        view, options, first = self._view, self._options, self._first()
        every, apart = view.observations.all, interval(options)
        at = results_at(view, len(every), apart)
        since = _masks(view, at, first, options, self._early) if at else {}
        for there, then in earlier(view, at, apart):
            if every[there].step < first or not since:
                return
            masks = _masks(view, then, first, options, self._early)
            if _forms(masks) == _forms(since):
                continue
            since, before = masks, view_before(view, there)
            bounds = _arrived(before, self._budget, arrived(before, options, self._early))
            bounds = with_masks(bounds, before, masks, REASON)
            yield Moment(before, bounds.saved, bounds.grown)

    def _with(self, count: int) -> Bounds:
        """Once the first `count` results in memory had come, by the newest tick of then."""
        bounds = _arrived(self._view, self._budget, self._early)
        at = results_at(self._view, count, interval(self._options))
        if not at:
            return bounds
        masks = _masks(self._view, at, self._first(), self._options, self._early)
        return with_masks(bounds, self._view, masks, REASON)

    def _first(self) -> int:
        """The first step that may be shown in short: behind the summaries, where a result stays
        until it is summarized; behind the first turns; not before the window; and not so far back
        that it cannot be shown."""
        view, budget, options = self._view, self._budget, self._options
        gone = window.hidden(view, budget, options)
        anchored = window.anchored(view, budget, options)
        reached = view.cut_from(view.total - REACH * budget, 0)
        return max(view.raw_from, view.base, anchored, gone.stop, reached)


def _arrived(view: View, budget: int, early: Arrived) -> Bounds:
    """The forms that follow from messages and the budget alone."""
    bounds = bounds_of(view, on_grid(budget), early.forms)
    for step, forms in early.forms.items():
        shown = bounds.forms[step]
        if shown == forms:
            bounds.reasons[step] = ARRIVED
        elif any(shown[sequence] is slot for sequence, slot in forms.items()):
            bounds.reasons[step] = f"{bounds.reasons[step]}, or {ARRIVED}"
    return bounds


def _masks(view: View, count: int, first: int, options: PipelineOptions, early: Arrived) -> Masks:
    """What to show instead of messages, where the layers leave out some of their results."""
    scene, masks = scene_of(view, count, first, options), Masks()
    if not scene.results:
        return masks
    by_sequence: dict[int, dict[int, Replacement]] = {}
    for (sequence, part), how in decisions(scene, early).items():
        by_sequence.setdefault(sequence, {})[part] = structs.replace(how, reader=SESSION_SEARCH)
    stays = set(view.must_stay())
    messages = [(one.step, one.sequence, one.show) for one in scene.results]
    messages += [(one.step, one.entry.sequence, one.show) for one in scene.pictures]
    for step, sequence, show in messages:
        left_out = by_sequence.pop(sequence, None)
        if not left_out or step in stays:
            continue
        parts = {each.part: each for each in early.parts.get(sequence, ())} | left_out
        slot = early.forms.get(step, {}).get(sequence)
        if slot is None:
            slot = view.atom(step).slot_of(sequence)
        every = tuple(parts[part] for part in sorted(parts))
        shown = view.observations.shown(sequence, show, every)
        if slot is not None and slot.tokens - shown.tokens > LEAST_SAVED:
            masks.setdefault(step, {})[sequence] = shown
    return masks


def _forms(masks: Masks) -> set[int]:
    return {sequence for slots in masks.values() for sequence in slots}
