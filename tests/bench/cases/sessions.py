"""Many sessions in one process: whether a call costs more the more of them are warm."""

from __future__ import annotations

from functools import partial
from random import Random

from contextengine_proto.v1 import lifecycle_pb2, message_pb2

from ..bench import LANES, Bench
from ..house import Process
from ..load import SERIAL, Load, Slice, Step, drive
from ..report import Figure
from ..talk import ENGINE, assemble, ref, said, text

FEW, MANY, SCALE = 10, 10_000, 100_000
GOAL = 0.9


def run(bench: Bench) -> None:
    """A process with ten sessions beside one with very many, the calls spread over all of them."""
    many = 1_000 if bench.quick else SCALE if bench.scale else MANY
    servers = [bench.serve(f"sessions/{count}") for count in (FEW, many)]
    empty = servers[1].resident()
    names = [
        _filled(bench, server, count) for server, count in zip(servers, (FEW, many), strict=True)
    ]
    grown = servers[1].resident() - empty
    bench.add(
        Figure(
            f"{many:,} sessions", "memory a warm session of one message", grown / many / 1024, "KiB"
        )
    )
    for rpc in ("Ingest", "Assemble"):
        if rpc == "Assemble":
            # The ten that were written to are long by now, and so were the replies.
            names[0] = _filled(bench, servers[0], FEW, "read")
            _each_once(bench, servers[1], names[1])
        few, all_ = bench.turns(
            [partial(_turn, bench, rpc, *one) for one in zip(servers, names, strict=True)]
        )
        bench.compare(f"{many:,} sessions, {rpc}, beside {FEW}", few, all_, goal=GOAL)


def _each_once(bench: Bench, server: Process, names: list[str]) -> None:
    """A session's first assembly joins its list, which those after it go on from."""
    done = 0
    while done < len(names):
        done += _turn(bench, "Assemble", server, names[done:]).scripts


def _filled(bench: Bench, server: Process, count: int, named: str = "few") -> list[str]:
    """Makes so many sessions of a message, and answers their names."""
    message = said(message_pb2.ROLE_USER, text(Random(1), 250))
    if count <= LANES:
        talk = bench.talk(server)
        names = [f"{named}-{index}" for index in range(count)]
        for name in names:
            talk.fill(name, [message])
        return names
    request = lifecycle_pb2.IngestRequest(session=ref(f"many-{SERIAL}"), message=message)
    load = Load([Step(f"{ENGINE}/Ingest", [request.SerializeToString()])], LANES, 16)
    names = []
    while len(names) < count:
        made = drive(load, server, 5)
        names += [f"many-{made.first + index:08d}" for index in range(made.scripts)]
    return names


def _turn(bench: Bench, rpc: str, server: Process, names: list[str]) -> Slice:
    message = said(message_pb2.ROLE_USER, f"{SERIAL} {text(Random(2), 250)}")
    bodies = []
    for name in names:
        if rpc == "Ingest":
            stored = lifecycle_pb2.IngestRequest(session=ref(name), message=message)
            bodies.append(stored.SerializeToString())
        else:
            asked = assemble(name)
            asked.known_epoch = SERIAL
            bodies.append(asked.SerializeToString())
    return drive(Load([Step(f"{ENGINE}/{rpc}", bodies)], LANES, 16), server, bench.seconds)
