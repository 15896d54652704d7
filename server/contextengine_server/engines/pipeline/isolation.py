"""Layers by themselves: one that fails leaves its input as it is, and the others go on. One that
fails three times in a row, over three states of a session, is switched off for that session.

After Comis's runner (packages/agent/src/context-engine/context-engine.ts). One that is off shows
what one that fails shows. Which are off is kept in memory beside the view alone: a server that
starts anew tries them again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import structlog

from contextengine_server.context.carried import Fault
from contextengine_server.context.view import View

log = structlog.get_logger("contextengine.pipeline")

MOST_FAILURES = 3
"""As in Comis (LAYER_CIRCUIT_BREAKER_THRESHOLD)."""

S = TypeVar("S")
D = TypeVar("D")


def isolated(view: View, name: str, layer: Callable[[S, D], D], subject: S, decided: D) -> D:
    """What a layer answers; what it was given where it fails, or is off for this session."""
    fault = view.faults.get(name)
    if fault is not None and fault.count >= MOST_FAILURES:
        return decided
    try:
        made = layer(subject, decided)
    except Exception as error:
        _note(view, name, fault, type(error).__name__)
        return decided
    if fault is not None and fault.at != view.last_sequence:
        del view.faults[name]
    return made


def switched_off(view: View) -> frozenset[str]:
    """The layers that are off for a view's session."""
    return frozenset(name for name, fault in view.faults.items() if fault.count >= MOST_FAILURES)


def _note(view: View, name: str, fault: Fault | None, error: str) -> None:
    if fault is not None and fault.at == view.last_sequence:
        return  # this state has been told of
    count = fault.count + 1 if fault is not None else 1
    view.faults[name] = Fault(count, view.last_sequence)
    scope = view.scope
    log.warning("a layer failed", layer=name, error=error, session=scope.session, in_a_row=count)
    if count == MOST_FAILURES:
        log.error("a layer is switched off for a session", layer=name, session=scope.session)
