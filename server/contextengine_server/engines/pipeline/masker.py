"""The observation masker: of old results a preview is left.

After Comis's (packages/agent/src/context-engine/observation-masker.ts). What a session's memory and
its files answered is never masked; what the web and servers of MCP answered is sooner. Once a
session has come to the trigger masks go on for good: none is ever lifted, so there is no way back
for the layer either.
"""

from __future__ import annotations

from contextengine_server.context.message import Gone, Replacement

from .scene import Decisions, Scene
from .ticks import CHARS_A_TOKEN
from .tool_names import is_protected, is_web


def mask(scene: Scene, decided: Decisions) -> Decisions:
    """What it leaves out, besides what is decided."""
    if not scene.results or _chars(scene) < scene.options.observation_trigger_chars:
        return {}
    found, standard, ephemeral = Decisions(), 0, 0
    newest = scene.results[-1].step
    for one in reversed(scene.results):
        if is_protected(one.tool):
            continue
        if is_web(one.tool):
            ephemeral += 1
            old = ephemeral > scene.options.ephemeral_keep_window
        else:
            standard += 1
            old = standard > scene.options.observation_keep_window
        place = one.sequence, one.part
        if old and one.step < newest and place not in decided:
            found[place] = Replacement(one.part, Gone.MASKED, tool=one.tool)
    return found


def _chars(scene: Scene) -> float:
    """The characters that the session had come to, those of results counted twice."""
    view, last = scene.view, scene.results[-1]
    observations, observed = view.observations, view.fold.observed
    after = observations.sums[-1] - observations.sums[scene.count - 1]
    return CHARS_A_TOKEN * (view.atom(last.step).start + observed - after)
