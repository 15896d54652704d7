"""What the compressor's compaction of a whole history costs with a summarizer that answers at once,
what the prompt for one costs, and the question whether one is due: in process, without rpc, store
or network."""

from __future__ import annotations

import dataclasses
import time

from contextengine_server.compaction.compaction_pass import frame_tokens, prepare, row_of
from contextengine_server.compaction.summary_request import source_message, source_summary
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.eviction import EvictionHistory
from contextengine_server.context.lawful import snapshot_of
from contextengine_server.context.scope import Scope
from contextengine_server.context.view import View
from contextengine_server.engines.compressor import CompressorEngine, CompressorOptions
from contextengine_server.engines.contract import CompactionGoal, CompactionStep
from contextengine_server.session.rows import summary_of
from contextengine_server.store.rows import SessionHead
from contextengine_server.summarize import SummaryRequest, SummaryResult
from contextengine_server.summarize.models.prompts import build
from contextengine_server.summarize.request import Handoff
from contextengine_server.testing.engine.trial import trial_of
from contextengine_server.wire.slots import WireShaper

from ..bench import Bench
from ..report import of_rounds
from .planning import BUDGET, SIZES, count, played, talk

GOALS_MS = {200: 3.8, 2_000: 25.8, 20_000: 290.6}
"""A fifth of what Hermes's compressor takes for histories of this shape: 19, 129 and 1,453 ms of
processor time (its release 0.19.0, on the machine on which the goals were set)."""
DUE_GOAL_US = 50
ASKED = 1_000
FLOOR, ROOM = 160, 10**9
STUB = "The tables were moved. " * 80


def run(bench: Bench) -> None:
    """Medians, by the length of the session."""
    for size in SIZES[:2] if bench.quick else SIZES:
        view = trial_of(list(talk(size)), WireShaper(count)).view
        taken = [_compacted(_bare(view)) for _ in range(bench.rounds)]
        for what, goal, values in (
            ("a whole history", GOALS_MS[size], [one[0] + one[1] for one in taken]),
            ("of that its prompts, without secrets", None, [one[1] for one in taken]),
        ):
            bench.add(
                of_rounds(
                    "compress, compressor",
                    f"{what}, {size:,} messages",
                    values,
                    unit="ms",
                    goal=goal,
                    more_is_better=False,
                    ours=f"{taken[0][2]} summaries, one after the other",
                )
            )
        engine = CompressorEngine(CompressorOptions())
        one = played(engine, talk(size), size)
        bench.add(
            of_rounds(
                "due, compressor",
                f"should_compact, {size:,} messages",
                [_due_us(engine, one.view) for _ in range(bench.rounds)],
                unit="us",
                goal=DUE_GOAL_US,
                more_is_better=False,
                ours=f"{len(one.view.summaries)} summaries",
            )
        )


def _bare(view: View) -> View:
    """The view without summaries, to be compacted."""
    return dataclasses.replace(view, summaries=[], stretches=[], evictions=EvictionHistory())


def _compacted(view: View) -> tuple[float, float, int]:
    """Compacts all that there is to compact: the milliseconds of processor time without and for the
    prompts, and how many summaries were made."""
    engine, shaper = CompressorEngine(CompressorOptions()), WireShaper(count)
    took, prompts, made = 0.0, 0.0, 0
    stub = SummaryResult(STUB, count(STUB), "stub")
    head = SessionHead(Scope("tenant", "agent", "session"), "life", 10**6, 0)
    while True:
        begun = time.thread_time()
        goal = CompactionGoal(BUDGET, force=not made, floor=FLOOR)
        step = engine.compaction(view, goal)
        if not isinstance(step, CompactionStep):
            return (took + time.thread_time() - begun) * 1e3, prompts * 1e3, made
        planned = prepare(view, step)
        frame_tokens(planned, count)
        sources = [
            *map(source_summary, planned.sources),
            *map(source_message, planned.entries),
        ]
        took += time.thread_time() - begun

        begun = time.thread_time()
        request = SummaryRequest(
            tuple(sources), planned.gain, step.target_tokens, handoff=Handoff("2026-01-31")
        )
        build(request, len, ROOM)
        prompts += time.thread_time() - begun

        begun = time.thread_time()
        made += 1
        row = row_of(planned, stub, head, snapshot_of(view), shaper, [s.id for s in view.summaries])
        view.place(summary_of(row, shaper))
        took += time.thread_time() - begun


def _due_us(engine: CompressorEngine, view: View) -> float:
    """The microseconds of one answer."""
    begun = time.thread_time()
    for _ in range(ASKED):
        engine.due(view, ReferenceTokens(BUDGET), None)
    return (time.thread_time() - begun) / ASKED * 1e6
