"""The dead-content evictor: what was read again, old pictures, old errors.

After Comis's (packages/agent/src/context-engine/dead-content-evictor.ts). A result's age is how
many came after it, that of a picture that the model made how many messages did. Tools are known by
what they read, whatever they are called. What a tool said of a picture may go once it said
something of a later one, as Comis's documents have it; in its code pictures go by age alone.
"""

from __future__ import annotations

from contextengine_server.context.message import Gone, Replacement
from contextengine_server.context.observations import Observation
from contextengine_server.context.view import View

from .scene import Decisions, Scene
from .tool_names import is_picture


def evict(scene: Scene, decided: Decisions) -> Decisions:
    """What it leaves out, besides what is decided."""
    if not scene.results:
        return {}
    newest, found = scene.results[-1], Decisions()
    looked = max((at for at, one in enumerate(scene.results) if is_picture(one.tool)), default=-1)
    offloaded = {at for (at, _), how in decided.items() if how.why is Gone.OFFLOADED}
    old = len(scene.results) - scene.options.eviction_min_age
    for at, one in enumerate(scene.results[: max(0, old)]):
        place = one.sequence, one.part
        if one.step == newest.step or place in decided:
            continue
        by = _superseded(scene.view, one, newest.sequence, offloaded)
        if by:
            found[place] = Replacement(one.part, by=by)
        elif one.pictured or (is_picture(one.tool) and at < looked):
            found[place] = Replacement(one.part, Gone.OLD_IMAGE)
        elif one.failed:
            found[place] = Replacement(one.part, Gone.OLD_ERROR)
    for picture in scene.pictures:
        sequence = picture.entry.sequence
        old_by_now = newest.sequence - sequence >= scene.options.eviction_min_age
        if old_by_now and picture.step != newest.step:
            for part in picture.entry.traits.images:
                found[sequence, part] = Replacement(part, Gone.OLD_IMAGE)
    return found


def _superseded(view: View, one: Observation, newest: int, offloaded: set[int]) -> int:
    """The sequence of the first result that stands for it, no newer than `newest`; 0: none. One
    that is shown in short itself stands for nothing, but what stands for it does."""
    stale = view.observations.stale.get(one.sequence)
    by = next((p.by for p in stale.parts if p.part == one.part), 0) if stale else 0
    while by in offloaded:
        stale = view.observations.stale.get(by)
        after = stale.parts[0].by if stale is not None and len(stale.parts) == 1 else 0
        # Of two results of one message that say the same, the second stands for the first.
        by = after if after > by else 0
    return by if by <= newest else 0
