"""The dead-content evictor: what was read again, old pictures, old errors.

After Comis's (packages/agent/src/context-engine/dead-content-evictor.ts). A result's age is how
many came after it. Tools are known by what they read, whatever they are called.
"""

from __future__ import annotations

from contextengine_server.context.message import Gone, Replacement
from contextengine_server.context.observations import Observation
from contextengine_server.context.view import View

from .scene import Decisions, Scene


def evict(scene: Scene, decided: Decisions) -> Decisions:
    """What it leaves out, besides what is decided."""
    if not scene.results:
        return {}
    newest, found = scene.results[-1], Decisions()
    offloaded = {at for (at, _), how in decided.items() if how.why is Gone.OFFLOADED}
    old = len(scene.results) - scene.options.eviction_min_age
    for one in scene.results[: max(0, old)]:
        place = one.sequence, one.part
        if one.step == newest.step or place in decided:
            continue
        by = _superseded(scene.view, one, newest.sequence, offloaded)
        if by:
            found[place] = Replacement(one.part, by=by)
        elif one.pictured:
            found[place] = Replacement(one.part, Gone.OLD_IMAGE)
        elif one.failed:
            found[place] = Replacement(one.part, Gone.OLD_ERROR)
    return found


def _superseded(view: View, one: Observation, newest: int, offloaded: set[int]) -> int:
    """The sequence of the first result that stands for it, no newer than `newest`; 0: none. One
    that is shown in short itself stands for nothing, but what stands for it does."""
    stale = view.observations.stale.get(one.sequence)
    by = next((p.by for p in stale.parts if p.part == one.part), 0) if stale else 0
    while by in offloaded:
        stale = view.observations.stale.get(by)
        by = stale.parts[0].by if stale is not None and len(stale.parts) == 1 else 0
    return by if by <= newest else 0
