"""A child forked from a parent of 100 KB, and ended: the pair, as a harness calls it."""

from __future__ import annotations

from functools import partial

from contextengine_proto.v1 import subagent_pb2

from ..bench import LANES, Bench
from ..house import Process
from ..load import SERIAL, Load, Slice, Step, drive
from ..report import of_rounds
from ..talk import ENGINE, conversation, ref

GOAL = 600.0
"""Children a second, where the floor carried 3,118 calls."""


def run(bench: Bench) -> None:
    """Prepare and End, each lane with a parent of its own, beside two calls of the floor."""
    talk = bench.talk(bench.server)
    parents = [f"parent-{index}" for index in range(LANES)]
    history = list(conversation(220, 400))
    for parent in parents:
        talk.fill(parent, history)
    child = ref(f"child-{SERIAL}")
    prepared = [
        subagent_pb2.PrepareSubagentSpawnRequest(
            parent=ref(parent),
            child=child,
            context_mode=subagent_pb2.CONTEXT_MODE_FORK,
            objective="Find out why the test case fails.",
            request_id=f"spawn-{SERIAL}",
        ).SerializeToString()
        for parent in parents
    ]
    ended = subagent_pb2.EndSubagentRequest(
        child=child, reason=subagent_pb2.SUBAGENT_END_REASON_COMPLETED
    ).SerializeToString()
    (bench.replies / "spawn").write_bytes(bytes(80))

    def turn(server: Process, prepare: str, end: str) -> Slice:
        script = [Step(prepare, prepared, per_lane=True), Step(end, [ended])]
        return drive(Load(script, LANES, 16), server, bench.seconds)

    floor, ours = bench.turns(
        [
            partial(turn, bench.floor, "bench.Floor/spawn", "bench.Floor/spawn"),
            partial(turn, bench.server, f"{ENGINE}/PrepareSubagentSpawn", f"{ENGINE}/EndSubagent"),
        ]
    )
    bench.compare("spawn and end", floor, ours)
    bench.add(
        of_rounds(
            "spawn and end",
            "children a second",
            [one.rate / 2 for one in ours],
            unit="/s",
            goal=GOAL,
        )
    )
