"""What stores: the one-round-trip step, and Ingest, on 1, 8 and 64 sessions at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from contextengine_proto.v1 import lifecycle_pb2, message_pb2

from ..bench import Bench
from ..house import BenchError, Process
from ..load import Load, Slice, drive
from ..stepping import build, drive_steps
from ..talk import ENGINE, Talk, assemble, body, conversation, ref, round_trip, said, text

SESSIONS = (1, 8, 64)
HISTORY = 220
"""Messages in each session at the beginning: 100 KB."""

Request = Callable[[Talk, str, int], bytes]
"""The request that is sent to a session over and over again, made when a turn begins."""

Take = Callable[[str, Sequence[bytes], Process], Slice]
"""Drives a server with a method and a request for each session, for one turn."""


def step(bench: Bench) -> None:
    """Assemble stores a call and its result and answers what is new. The floor answers 2 KB."""

    def request(talk: Talk, session: str, seed: int) -> bytes:
        asked = assemble(session)
        asked.known_context_hash = talk.assemble(asked).context_hash
        asked.ingest.extend(round_trip(Random(seed), 250, "step"))
        return asked.SerializeToString()

    program = build(bench.directory)

    def take(method: str, bodies: Sequence[bytes], server: Process) -> Slice:
        files = []
        for index, encoded in enumerate(bodies):
            files.append(bench.directory / f"step-{index}")
            files[-1].write_bytes(encoded)
        return drive_steps(program, method, files, server, bench.seconds)

    for count in SESSIONS:
        floor, ours = _sides(bench, "step", "Assemble", count, request, take, floor_bytes=2048)
        mean = sum(one.reply_bytes for one in ours) / len(ours)
        bench.compare(
            f"step, {count} sessions",
            floor,
            ours,
            goal=_goal(count),
            note=f"replies of {mean / 1000:.1f} KB",
        )


def ingest(bench: Bench) -> None:
    """Ingest stores a message of 250 bytes. The floor answers as many bytes as Ingest does."""

    def request(talk: Talk, session: str, seed: int) -> bytes:
        message = said(message_pb2.ROLE_USER, text(Random(seed), 250))
        return lifecycle_pb2.IngestRequest(
            session=ref(session), message=message
        ).SerializeToString()

    def take(method: str, bodies: Sequence[bytes], server: Process) -> Slice:
        files = [
            body(bench.directory, f"ingest-{index}", encoded)
            for index, encoded in enumerate(bodies)
        ]
        return drive(Load(method, tuple(files)), server, bench.seconds)

    for count in SESSIONS:
        floor, ours = _sides(bench, "ingest", "Ingest", count, request, take, floor_bytes=32)
        bench.compare(f"ingest, {count} sessions", floor, ours, goal=_goal(count))


def _goal(count: int) -> float | None:
    return 0.35 if count == 64 else None


def _sides(
    bench: Bench, case: str, rpc: str, count: int, request: Request, take: Take, *, floor_bytes: int
) -> list[list[Slice]]:
    """Floor and ours in turns, a call in flight for each session. What ours answered is counted in
    the store."""
    talk = bench.talk(bench.server)
    history = list(conversation(HISTORY, 400))
    sessions = [f"{case}-{count}-{index}" for index in range(count)]
    for session in sessions:
        talk.fill(session, history)
    (bench.replies / case).write_bytes(bytes(floor_bytes))

    def bodies() -> list[bytes]:
        return [request(talk, session, index) for index, session in enumerate(sessions)]

    def revisions() -> int:
        return sum(talk.status(session).revision for session in sessions)

    def ours() -> Slice:
        before = revisions()
        taken = take(f"{ENGINE}/{rpc}", bodies(), bench.server)
        stored = revisions() - before
        if not taken.calls <= stored <= taken.calls + taken.unfinished:
            raise BenchError(f"{taken.calls} calls were answered, but {stored} were stored")
        return taken

    return bench.turns([lambda: take(f"bench.Floor/{case}", bodies(), bench.floor), ours])
