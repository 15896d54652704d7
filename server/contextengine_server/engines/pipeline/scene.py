"""What the layers look at: the results of a view that may be shown in short, as they were at a
tick."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from contextengine_server.context.message import Replacement
from contextengine_server.context.observations import Observation
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


def scene_of(view: View, count: int, first: int, options: PipelineOptions) -> Scene:
    """The scene of the first `count` results in memory, from this step on."""
    seen = view.observations
    return Scene(view, options, seen.all[seen.before(first) : count], count)
