"""The same server over PostgreSQL beside itself over SQLite, in turns: SQLite stands where the
floor stands elsewhere. PostgreSQL is on this machine, so no network's time is in it, and its
processes share the processors with the server and the load."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from contextengine_proto.v1 import lifecycle_pb2, message_pb2
from tests import postgres

from ..bench import LANES, Bench
from ..house import BenchError, Process
from ..load import SERIAL, Load, Slice, Step, drive
from ..report import of_rounds
from ..talk import ENGINE, assemble, conversation, ref, said, text

HISTORY = 220
"""Messages in each session at the beginning: 100 KB."""


def run(bench: Bench) -> None:
    """Warm Assemble, each of which looks where the session stands, and Ingest on many sessions."""
    if why := postgres.missing():
        raise BenchError(why)
    cluster = postgres.Cluster(fsync="on", full_page_writes="on")
    bench.stack.callback(cluster.remove)
    cluster.start()
    url = cluster.url("postgres")
    servers = bench.server, bench.serve("postgres", {"CONTEXTENGINE_STORE__URL": url})
    sessions = [f"session-{index}" for index in range(LANES)]
    history = list(conversation(HISTORY, 400))
    for server in servers:
        talk = bench.talk(server)
        for session in sessions:
            talk.fill(session, history)

    again = assemble(sessions[0])
    anew = assemble(sessions[0])
    anew.known_epoch = SERIAL
    for name, request in (("again", again), ("anew", anew)):
        _compare(
            bench, f"assemble 100 KB, {name}", servers, "Assemble", [request.SerializeToString()]
        )
    _second(bench, servers[1], bench.serve("second", {"CONTEXTENGINE_STORE__URL": url}), sessions)
    _compare(
        bench,
        f"ingest, {LANES} sessions",
        servers,
        "Ingest",
        [
            lifecycle_pb2.IngestRequest(
                session=ref(session),
                message=said(message_pb2.ROLE_USER, f"{SERIAL} {text(Random(index), 250)}"),
            ).SerializeToString()
            for index, session in enumerate(sessions)
        ],
    )


def _compare(
    bench: Bench, case: str, servers: Sequence[Process], rpc: str, bodies: Sequence[bytes]
) -> None:
    step = Step(f"{ENGINE}/{rpc}", bodies, per_lane=len(bodies) > 1)

    def turn(server: Process) -> Slice:
        return drive(Load([step], LANES, 16), server, bench.seconds)

    sqlite, ours = bench.turns([partial(turn, server) for server in servers])
    goal = 0.75 if rpc == "Ingest" else 0.9
    bench.compare(f"{case}, on PostgreSQL", sqlite, ours, goal=goal, note="floor: SQLite")


FULL = 0.9
"""Busier processors than this are what bounds a throughput."""
ADDED = 0.8
"""What a second server adds at least to the first, until the machine is full."""


@dataclass(frozen=True, slots=True)
class _Together:
    """What some servers did at once."""

    rate: float
    cpu: float
    """Seconds of the servers' processor time a call."""
    busy: float
    """How much of the machine's processors was in use, by whomever."""


def _second(bench: Bench, first: Process, second: Process, sessions: Sequence[str]) -> None:
    """Two servers over one database beside one of them, each with as many calls in flight: they
    share nothing but the database, so what is left to bound them is this machine."""
    requests = [assemble(session) for session in sessions]
    for request in requests:
        request.known_epoch = SERIAL
    step = Step(f"{ENGINE}/Assemble", [one.SerializeToString() for one in requests], per_lane=True)

    def turn(servers: Sequence[Process]) -> _Together:
        def of(server: Process) -> Slice:
            return drive(Load([step], LANES // 2, 8), server, bench.seconds)

        idle, whole = _ticks()
        with ThreadPoolExecutor(len(servers)) as pool:
            slices = list(pool.map(of, servers))
        idle, whole = (now - then for now, then in zip(_ticks(), (idle, whole), strict=True))
        rate = sum(one.rate for one in slices)
        return _Together(
            rate, sum(one.rate * one.cpu for one in slices) / rate, 1 - idle / max(whole, 1)
        )

    turn([second])  # reads the sessions
    one, two = [], []
    for _ in range(bench.rounds):
        one.append(turn([first]))
        two.append(turn([first, second]))
    busy = [sorted(each.busy for each in some)[len(some) // 2] for some in (one, two)]
    case = f"assemble 100 KB, {LANES} sessions, two servers on one PostgreSQL"
    bench.add(
        of_rounds(
            case,
            "processor time a call, one server over two",
            [alone.cpu / both.cpu for alone, both in zip(one, two, strict=True)],
            goal=ADDED,
        )
    )
    bound = busy[1] > FULL
    bench.add(
        of_rounds(
            case,
            "throughput, two servers over one",
            [both.rate / alone.rate for alone, both in zip(one, two, strict=True)],
            goal=None if bound else 1 + ADDED,
            floor=f"{os.cpu_count()} processors {busy[0]:.0%} busy",
            ours=f"{busy[1]:.0%} busy" + (": they bound it" if bound else ""),
        )
    )


def _ticks() -> tuple[int, int]:
    """How long the machine's processors were idle since it began, and how long in all."""
    first = Path("/proc/stat").read_text().partition("\n")[0]
    ticks = [int(one) for one in first.split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)
