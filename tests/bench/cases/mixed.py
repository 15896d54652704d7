"""Agents at work: turns that begin by the clock, at rates that rise, and how late what is
answered."""

from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random

from contextengine_proto.v1 import lifecycle_pb2, message_pb2, recall_pb2, subagent_pb2

from ..bench import LANES, Bench, median, p50, p99, p999
from ..house import Process
from ..load import SERIAL, Load, Slice, Step, drive
from ..report import Figure, of_rounds
from ..talk import ENGINE, SEARCH, Talk, assemble, conversation, ref, round_trip, said, text

RATES = (20, 40, 80)
"""Turns a second in all, each of seven calls or so."""
STEPS = 5
"""Of a turn: a user's message, and what tools answered."""
BUDGET = 32_000
"""Tokens: the longest sessions are compacted meanwhile, in the background."""
LATE_MS = 50.0


def run(bench: Bench) -> None:
    """Both sides get the same calls at the same times."""
    talk = bench.talk(bench.server)
    for index in range(LANES):
        # Sessions of other lengths: they do not all come to their thresholds at once.
        talk.fill(f"agent-{index}", list(conversation(120 + 2 * index, 400, seed=index)))
    steps = script(talk)
    for name in ("Assemble", "AfterTurn", "Search", "PrepareSubagentSpawn", "EndSubagent"):
        (bench.replies / name).write_bytes(bytes(1_000))
    bare = [
        Step(
            f"bench.Floor/{one.method.rpartition('/')[2]}",
            one.bodies,
            one.per_lane,
            False,
            one.every,
        )
        for one in steps
    ]
    seconds = max(bench.seconds, 2 if bench.quick else 4)
    for rate in RATES:

        def turn(script: list[Step], server: Process, rate: int = rate) -> Slice:
            return drive(Load(script, LANES, 16, rate), server, seconds)

        floor, ours = bench.turns(
            [partial(turn, bare, bench.floor), partial(turn, steps, bench.server)]
        )
        for what, of in (("p50", p50), ("p99", p99), ("p99.9", p999)):
            bench.add(
                of_rounds(
                    f"agents, {rate} turns/s",
                    f"{what} of {median(ours, lambda one: one.rate):,.0f} calls/s",
                    [of(one) * 1e3 for one in ours],
                    unit="ms",
                    goal=LATE_MS if what == "p99" and rate == RATES[-1] else None,
                    more_is_better=False,
                    floor=f"{median(floor, of) * 1e3:.2f} ms",
                )
            )
        _tail(bench, rate, ours)


def _tail(bench: Bench, rate: int, ours: list[Slice]) -> None:
    """Where the slowest hundredth comes from: which calls they are, and in how many stretches of
    50 ms they were answered."""
    late: Counter[str] = Counter()
    stretches = calls = 0
    for one in ours:
        stretches += len({round(at * 20) for at, took in one.all.latest if took >= one.p99})
        calls += sum(took >= one.p99 for _, took in one.all.latest)
        for name, of in one.methods.items():
            late[name.rpartition("/")[2]] += sum(took >= one.p99 for _, took in of.latest)
    told = ", ".join(f"{count} {name}" for name, count in late.most_common(3))
    bench.add(
        Figure(
            f"agents, {rate} turns/s",
            "stretches of 50 ms in which the slowest hundredth was answered",
            stretches,
            ours=f"{calls} calls: {told}",
        )
    )


def script(talk: Talk) -> list[Step]:
    """What an agent does in a turn, a session a lane."""
    begun: list[bytes] = []
    stepped: list[bytes] = []
    over, searched, forked = [], [], []
    for index in range(LANES):
        session, random = f"agent-{index}", Random(index)
        asked = assemble(session, BUDGET)
        asked.known_context_hash = talk.assemble(asked).context_hash
        for requests, messages in (
            (begun, [said(message_pb2.ROLE_USER, f"{SERIAL} {text(random, 250)}")]),
            (stepped, round_trip(random, 600, f"call-{SERIAL}")),
        ):
            asked.ClearField("ingest")
            asked.ingest.extend(messages)
            requests.append(asked.SerializeToString())
        after = lifecycle_pb2.AfterTurnRequest(
            session=ref(session),
            messages=[said(message_pb2.ROLE_ASSISTANT, f"{SERIAL} {text(random, 400)}")],
        )
        over.append(after.SerializeToString())
        wanted = recall_pb2.SearchRequest(
            session=ref(session), query=f"{text(random, 12)} {SERIAL}"
        )
        searched.append(wanted.SerializeToString())
        child = subagent_pb2.PrepareSubagentSpawnRequest(
            parent=ref(session),
            child=ref(f"helper-{SERIAL}"),
            context_mode=subagent_pb2.CONTEXT_MODE_FORK,
            request_id=f"spawn-{SERIAL}",
        )
        forked.append(child.SerializeToString())
    ended = subagent_pb2.EndSubagentRequest(
        child=ref(f"helper-{SERIAL}"), reason=subagent_pb2.SUBAGENT_END_REASON_COMPLETED
    ).SerializeToString()
    turn = Step(f"{ENGINE}/Assemble", begun, per_lane=True, known=True)
    step = Step(f"{ENGINE}/Assemble", stepped, per_lane=True, known=True)
    return [
        turn,
        *[step] * (STEPS - 1),
        Step(SEARCH, searched, per_lane=True, every=5),
        Step(f"{ENGINE}/PrepareSubagentSpawn", forked, per_lane=True, every=10),
        Step(f"{ENGINE}/EndSubagent", [ended], every=10),
        Step(f"{ENGINE}/AfterTurn", over, per_lane=True),
    ]
