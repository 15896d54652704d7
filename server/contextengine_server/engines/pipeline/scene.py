"""What the layers look at: the results of a view that may be shown in short, as they were at a
tick."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from contextengine_server.context.message import Replacement, Role
from contextengine_server.context.observations import Observation, Pictured
from contextengine_server.context.view import View

from .options import PipelineOptions

Decisions = dict[tuple[int, int], Replacement]
"""What is left out, by (sequence, part)."""


class Scene(msgspec.Struct, frozen=True):
    """A view as it was at a tick."""

    view: View
    options: PipelineOptions
    results: Sequence[Observation]
    """Those that had come, from the first on that may be shown in short."""
    count: int
    """How many results in memory had come."""
    pictures: Sequence[Pictured] = ()
    """The model's messages with pictures that had come by then, and hold no reasoning: forms of
    reasoning are others."""


def scene_of(view: View, count: int, first: int, options: PipelineOptions) -> Scene:
    """The scene of the first `count` results in memory, from this step on."""
    seen = view.observations
    results = seen.all[seen.before(first) : count]
    last = results[-1].sequence if results else 0
    pictures = [one for one in seen.pictures if first <= one.step and one.entry.sequence < last]
    return Scene(view, options, results, count, [*filter(_models, pictures)])


def _models(one: Pictured) -> bool:
    traits = one.entry.traits
    return traits.role == Role.ASSISTANT and bool(traits.images) and traits.thinking is None
