"""What watchers are told of assemblies: how a list begins anew, and what that cost. Never text of
messages.

An event for every assembly would be noise, and each caller has its own budget in its reply. So they
are told when the beginning of a session's list is another one than before (a new epoch: budget,
cut, compaction, model …), and when a list is not as it should be.
"""

from __future__ import annotations

from contextengine_server.context.plan import Reshaped, spared_by
from contextengine_server.session.assembly.assembly import DEGRADED, FITS, OVER_BUDGET, Assembly
from contextengine_server.telemetry.events import Events
from contextengine_server.telemetry.meters import Meters

BUDGET_COMPUTED = "context:budget_computed"
EVICTED = "context:evicted"
MASKED = "context:masked"
REHYDRATED = "context:rehydrated"
OVERFLOW = "context:overflow"
"""The names are those of Comis (docs/dag.md#events)."""

_VERDICTS = {FITS: "fits", OVER_BUDGET: "over_budget", DEGRADED: "degraded"}


def announce(events: Events, meters: Meters, assembly: Assembly) -> None:
    """Tells of an assembly, which begins anew or does not fit. Tokens of the window and its parts
    are the model's, others are in the reference encoding."""
    view, budget = assembly.view, assembly.budget
    if not view.scope.complete:
        return
    forms = [each for each in assembly.plan.segments if isinstance(each, Reshaped)]
    spared = [tokens for each in forms for _, tokens in spared_by(each, view)]
    evicted = max(0, view.view_tokens() - assembly.tokens - sum(spared))
    events.emit(
        BUDGET_COMPUTED,
        *view.scope,
        revision=view.revision,
        counts={
            "window": budget.window,
            "system_prompt": budget.system_prompt,
            "tools": budget.tools,
            "output_reserve": budget.output_reserve,
            "available": budget.available,
            "cell": assembly.cell,
            "items": assembly.joined.total,
            "tokens": assembly.tokens,
        },
        attributes={
            "verdict": _VERDICTS[assembly.outcome],
            "window_source": budget.source,
            "engine": assembly.engine.id,
        },
    )
    if evicted and assembly.joined.begun:
        meters.changes["evicted"].value += 1
        events.emit(
            EVICTED,
            *view.scope,
            revision=view.revision,
            counts={"tokens": evicted, "first_step": assembly.plan.cut},
            attributes={"engine": assembly.engine.id, "rule": assembly.plan.rule},
        )
    again = assembly.rehydrated
    if (again.sections or again.files) and assembly.joined.begun:
        meters.changes["rehydrated"].value += 1
        events.emit(
            REHYDRATED,
            *view.scope,
            revision=view.revision,
            counts={
                "sections": again.sections,
                "files": again.files,
                "tokens": again.tokens,
            },
            attributes={"engine": assembly.engine.id, "stripped": again.stripped},
        )
    if again.stripped:
        meters.changes["overflow"].value += 1
        events.emit(
            OVERFLOW,
            *view.scope,
            revision=view.revision,
            counts={"tokens": again.wanted, "budget": again.limit},
            attributes={"engine": assembly.engine.id, "recovery": again.stripped},
        )
    if spared and assembly.joined.begun:
        meters.changes["masked"].value += 1
        events.emit(
            MASKED,
            *view.scope,
            revision=view.revision,
            counts={"messages": len(spared), "tokens": sum(spared)},
            attributes={"engine": assembly.engine.id},
        )
    if assembly.outcome == OVER_BUDGET:
        meters.changes["overflow"].value += 1
        events.emit(
            OVERFLOW,
            *view.scope,
            revision=view.revision,
            counts={"tokens": assembly.tokens, "budget": budget.available},
            attributes={"engine": assembly.engine.id, "recovery": "compact"},
        )
