"""How an assembly begins: the parts of its epoch, from what decided them."""

from __future__ import annotations

from contextengine_server.context import epoch
from contextengine_server.context.plan import Keep, Plan, Summarized
from contextengine_server.context.view import View
from contextengine_server.engines.contract import Engine

from .state import SessionState


def epoch_of(
    state: SessionState,
    view: View,
    plan: Plan,
    engine: Engine,
    model: str,
    cell: int,
    kept_free: int,
    mark: str,
) -> str:
    """The epoch of a plan made for `cell` tokens, besides `kept_free` for what the engine adds. `mark` names a list that is not
    the session's."""
    segments = plan.segments
    last = segments[-1] if segments else None
    # The last range goes on with what is appended. Where there is none, one will begin with the next step.
    begins, ended = (last.first, segments[:-1]) if isinstance(last, Keep) else (view.steps, segments)
    before = [s.summary.id if isinstance(s, Summarized) else f"{s.first}-{s.last}" for s in ended]
    summaries = [segment.summary.id for segment in plan.segments if isinstance(segment, Summarized)]
    return epoch.epoch(
        epoch.EpochParts(
            session=f"{view.incarnation}:{view.reset_mark}",
            engine=f"{engine.id}:{engine.version}",
            config=engine.fingerprint,
            model=model,
            rewound=str(view.rewind_mark),
            # A summary that is not shown may still have taken room for what would be said of it.
            compacted=f"{state.native_compactions}:{kept_free}:{','.join(summaries)}",
            budget=str(cell),
            late=str(view.late_mark),
            masked=plan.forms,
            cut=f"{begins}|{','.join(before)}|{mark}",
        )
    )
