"""Projecting a warm context of 100 KB in the call that assembles it, beside the assembly alone."""

from __future__ import annotations

import statistics
import time
from itertools import count

from contextengine_proto.v1 import assemble_pb2, projection_pb2

from ..bench import Bench
from ..report import of_rounds
from ..talk import ENGINE, Talk, assemble, conversation

CALLS = 100
"""Of each side in a round, in turns."""

TARGETS = ("CODEX", "OPENAI_CHAT", "OPENAI_RESPONSES", "ANTHROPIC", "GEMINI")
GOAL = 1.5


def run(bench: Bench) -> None:
    """Medians of single calls: the whole list, and the projection in its place, as a harness asks
    that holds the list."""
    talk = bench.talk(bench.server)
    talk.fill("projected", list(conversation(220, 400)))
    held = talk.assemble(assemble("projected")).context_hash
    asked = count()
    for target in TARGETS:
        options = projection_pb2.ProjectionOptions(target=f"PROJECTION_TARGET_{target}")
        plain, projected, ratios = [], [], []
        for _ in range(bench.rounds):
            alone, both = [], []
            for _ in range(CALLS):
                alone.append(_call(talk, assemble("projected"), next(asked)))
                request = assemble("projected")
                request.known_context_hash = held
                request.projection.CopyFrom(options)
                both.append(_call(talk, request, next(asked)))
            plain.append(statistics.median(alone))
            projected.append(statistics.median(both))
            ratios.append(projected[-1] / plain[-1])
        bench.add(
            of_rounds(
                "project 100 KB",
                f"into {target.lower()}, over Assemble alone",
                ratios,
                goal=GOAL,
                more_is_better=False,
                floor=f"{statistics.median(plain) * 1e3:.2f} ms",
                ours=f"{statistics.median(projected) * 1e3:.2f} ms",
            )
        )


def _call(talk: Talk, request: assemble_pb2.AssembleRequest, number: int) -> float:
    """Seconds of one call that was not asked before: what the harness measured is another each
    time."""
    request.current_token_count = number
    body = request.SerializeToString()
    begun = time.perf_counter()
    talk.raw(f"{ENGINE}/Assemble", body)
    return time.perf_counter() - begun
