"""The cases, by the name that `--only` takes, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable

from ..bench import Bench
from . import compacting, histories, huge, planning, projecting, starting, tracing, warm, writing

CASES: dict[str, Callable[[Bench], None]] = {
    "start": starting.run,
    "warm": warm.run,
    "project": projecting.run,
    "plan": planning.run,
    "compact": compacting.run,
    "step": writing.step,
    "ingest": writing.ingest,
    "history": histories.run,
    "tracing": tracing.run,
    "huge": huge.run,
}
