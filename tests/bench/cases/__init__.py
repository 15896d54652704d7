"""The cases, by the name that `--only` takes, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable

from ..bench import Bench
from . import (
    compacting,
    histories,
    huge,
    mixed,
    planning,
    postgres,
    projecting,
    recalling,
    sessions,
    spawning,
    starting,
    tracing,
    warm,
    writing,
)

CASES: dict[str, Callable[[Bench], None]] = {
    "start": starting.run,
    "warm": warm.run,
    "project": projecting.run,
    "plan": planning.run,
    "compact": compacting.run,
    "step": writing.step,
    "ingest": writing.ingest,
    "search": recalling.run,
    "spawn": spawning.run,
    "mixed": mixed.run,
    "sessions": sessions.run,
    "history": histories.run,
    "tracing": tracing.run,
    "huge": huge.run,
    "postgres": postgres.run,
}

SCALE = ("sessions", "history")
"""The cases that `--scale` runs, in their long form."""
APART = ("postgres",)
"""Cases of another question, which run where they are named."""
