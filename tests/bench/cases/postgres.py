"""The same server over PostgreSQL beside itself over SQLite, in turns: SQLite stands where the
floor stands elsewhere. PostgreSQL is on this machine, so no network's time is in it, and its
processes share the processors with the server and the load."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random

from contextengine_proto.v1 import lifecycle_pb2, message_pb2
from tests import postgres

from ..bench import LANES, Bench
from ..house import BenchError, Process
from ..load import SERIAL, Load, Slice, Step, drive
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
