"""Search in a session of a thousand messages, each time for other words of some message in it."""

from __future__ import annotations

from functools import partial
from random import Random

from contextengine_proto.v1 import recall_pb2

from ..bench import LANES, Bench
from ..house import Process
from ..load import Load, Slice, Step, drive
from ..report import of_rounds
from ..talk import SEARCH, ref, said, transcripts

MESSAGES = 1_000
QUERIES = 4_096
"""More than are asked in one turn."""
GOAL = 400.0
"""A second, where the floor carried 2,511 calls."""


def run(bench: Bench) -> None:
    """Throughput beside the floor, and what one search takes by itself."""
    talk = bench.talk(bench.server)
    told = transcripts()[:MESSAGES]
    talk.indexed("searched", talk.fill("searched", [said(*one) for one in told]))
    queries = asked([content for _, content in told])
    reply = talk.raw(SEARCH, queries[0])
    (bench.replies / "search").write_bytes(reply)
    for lanes, goal in ((1, None), (LANES, GOAL)):
        turn = partial(_turn, bench, queries, lanes)
        floor, ours = bench.turns(
            [partial(turn, "bench.Floor/search", bench.floor), partial(turn, SEARCH, bench.server)]
        )
        case = f"search in {MESSAGES:,} messages, {lanes} in flight"
        note = f"replies of {ours[0].reply_bytes / 1000:.1f} KB"
        bench.compare(case, floor, ours, note=note)
        bench.add(
            of_rounds(case, "searches a second", [one.rate for one in ours], unit="/s", goal=goal)
        )


def asked(texts: list[str]) -> list[bytes]:
    """Requests for two or three words that stand together in a text, no two the same."""
    random, found = Random(1), dict[str, None]()
    while len(found) < QUERIES:
        words = [word.strip(".,!?:;()'\"*") for word in random.choice(texts).split()]
        words = [word for word in words if len(word) > 3]
        count = random.choice((2, 3))
        if len(words) >= count:
            start = random.randrange(len(words) - count + 1)
            found[" ".join(words[start : start + count])] = None
    return [
        recall_pb2.SearchRequest(session=ref("searched"), query=query).SerializeToString()
        for query in found
    ]


def _turn(bench: Bench, queries: list[bytes], lanes: int, method: str, server: Process) -> Slice:
    load = Load([Step(method, queries)], lanes, min(lanes, 16))
    return drive(load, server, bench.seconds)
