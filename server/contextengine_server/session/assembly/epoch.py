"""How an assembly begins: the parts of its epoch, from what decided them."""

from __future__ import annotations

from contextengine_server.context import epoch
from contextengine_server.context.plan import Plan, Summarized
from contextengine_server.context.view import View
from contextengine_server.engines.contract import Engine
from contextengine_server.session.state import SessionState


def epoch_of(
    state: SessionState,
    view: View,
    plan: Plan,
    engine: Engine,
    model: str,
    cell: int,
    mark: str,
    memory: str = "",
) -> str:
    """The epoch of a plan made for `cell` tokens. `mark` names a list that is not the session's;
    `memory`: what is said of memory."""
    # All of them: one that is shown no more was cut off and not compacted.
    summaries = ",".join(s.id for s in view.summaries) if view.summaries else ""
    begins, before = _beginning(plan, view.base + len(view.atoms))
    return epoch.epoch(
        epoch.EpochParts(
            session=f"{view.incarnation}:{view.reset_mark}",
            engine=f"{engine.id}:{engine.version}",
            config=f"{engine.fingerprint}:{memory}" if memory else engine.fingerprint,
            model=model,
            rewound=str(view.rewind_mark),
            compacted=f"{state.native_compactions}:{summaries}",
            budget=str(cell),
            late=str(view.fold.late_mark),
            masked=plan.forms,
            cut=f"{begins}|{','.join(before)}|{mark}",
        )
    )


def _beginning(plan: Plan, steps: int) -> tuple[int, list[str]]:
    """The step that the last range begins with, and what stands before it. Where that range holds
    the newest step it goes on with what is appended; else one will begin with the next step. Forms
    part a range into several segments; they have their own part of the epoch."""
    shown: list[str | tuple[int, int]] = []
    for segment in plan.segments:
        if isinstance(segment, Summarized):
            shown.append(segment.summary.id)
            continue
        before = shown[-1] if shown else ""
        if isinstance(before, tuple) and before[1] + 1 == segment.first:
            shown[-1] = before[0], segment.last
        else:
            shown.append((segment.first, segment.last))
    last = shown[-1] if shown else ""
    goes_on = isinstance(last, tuple) and last[1] == steps - 1
    begins, shown = (last[0], shown[:-1]) if isinstance(last, tuple) and goes_on else (steps, shown)
    named: list[str] = []
    for one in shown:
        named.append(one if isinstance(one, str) else f"{one[0]}-{one[1]}")
    return begins, named
