"""What an engine's plan costs after each message of a session that goes on: in process, without
rpc, store or network."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from functools import cache
from itertools import islice
from random import Random

from contextengine_proto.v1 import message_pb2
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.engines.contract import Engine
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.engines.pipeline import PipelineEngine, PipelineOptions
from contextengine_server.testing.engine.trial import Trial, trial_of
from contextengine_server.testing.oracle.pairs import ViewRow
from contextengine_server.tokens import TokenCounter
from contextengine_server.wire.slots import WireShaper

from ..bench import Bench
from ..report import of_rounds
from ..talk import said, text

SIZES = (200, 2_000, 20_000)
GOALS_MS = {200: 0.13, 2_000: 0.3, 20_000: 0.3}
"""For `pipeline`. Comis takes 0.13, 0.92 and 13 ms for this shape (its release 1.0.34, on the
machine on which the goals were set)."""
BUDGET = ReferenceTokens(85_000)
"""About what the default window of 128,000 tokens leaves for messages."""
BYTES = 640
"""A message of some 146 tokens."""
FILES = 50
PLANS = 200
"""Plans in a round, each after a message that is new."""
PASSES = 40
count = cache(TokenCounter().count_text)


def run(bench: Bench) -> None:
    """The median of the plans, by engine and length of the session."""
    engines: list[Engine] = [PipelineEngine(PipelineOptions()), DagEngine(DagOptions())]
    for engine in engines:
        for size in SIZES[:2] if bench.quick else SIZES:
            rows = talk(size + bench.rounds * PLANS)
            one = played(engine, rows, size)
            medians = [_median_ms(engine, one, rows) for _ in range(bench.rounds)]
            bench.add(
                of_rounds(
                    f"plan, {engine.id}",
                    f"after a message, p50, {size:,} messages",
                    medians,
                    unit="ms",
                    goal=GOALS_MS[size] if engine.id == "pipeline" else None,
                    more_is_better=False,
                    ours=f"{len(one.view.summaries)} summaries",
                )
            )


def played(engine: Engine, rows: Iterator[ViewRow], size: int) -> Trial:
    """A session of so many messages, compacted when that was due."""
    one = trial_of([], WireShaper(count))
    while turn := list(islice(rows, min(4, size - len(one.rows)))):
        one.add(turn)
        _compact(engine, one)
    return one


def _compact(engine: Engine, one: Trial) -> None:
    if engine.due(one.view, BUDGET, None):
        for done in range(PASSES):
            reached = done > 0 and one.view.view_tokens() <= engine.threshold * BUDGET
            if not one.compaction(engine, BUDGET, reached=reached):
                break


def _median_ms(engine: Engine, one: Trial, rows: Iterator[ViewRow]) -> float:
    """Of processor time, which a busy machine does not bend much."""
    took = []
    for row in islice(rows, PLANS):
        one.add([row])
        begun = time.thread_time()
        engine.plan(one.view, BUDGET)
        took.append(time.thread_time() - begun)
        _compact(engine, one)
    return statistics.median(took) * 1e3


def talk(messages: int) -> Iterator[ViewRow]:
    """Turns of four messages: a request, a call that reads one of some files, its result, and a
    reply."""
    random = Random(1)
    for index in range(messages):
        call_id = f"call-{index // 4}"
        match index % 4:
            case 0:
                message = said(message_pb2.ROLE_USER, text(random, BYTES))
            case 1:
                message = said(message_pb2.ROLE_ASSISTANT, text(random, BYTES - 60))
                path = b'{"path": "src/%d.py"}' % random.randrange(FILES)
                message.parts.add().tool_call.CopyFrom(
                    message_pb2.ToolCallPart(call_id=call_id, name="read_file", arguments_json=path)
                )
            case 2:
                message = message_pb2.Message(role=message_pb2.ROLE_TOOL)
                result = message.parts.add().tool_result
                result.call_id, result.name = call_id, "read_file"
                result.parts.add().text.text = text(random, BYTES)
            case _:
                message = said(message_pb2.ROLE_ASSISTANT, text(random, BYTES))
        yield ViewRow(index + 1, message, 2 * index)
