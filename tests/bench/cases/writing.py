"""What stores: the one-round-trip step, and Ingest, on 1, 8 and 64 sessions at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from contextengine_proto.v1 import lifecycle_pb2, message_pb2

from ..bench import LANES, Bench
from ..house import BenchError, Process
from ..load import SERIAL, Load, Slice, Step, drive
from ..talk import ENGINE, Talk, assemble, conversation, ref, round_trip, said, text

SESSIONS = (1, 8, LANES)
HISTORY = 220
"""Messages in each session at the beginning: 100 KB."""

Request = Callable[[Talk, str, int], bytes]
"""The request that is sent to a session over and over again, made when a turn begins."""


def step(bench: Bench) -> None:
    """Assemble stores a call and its result and answers what is new."""

    def request(talk: Talk, session: str, seed: int) -> bytes:
        asked = assemble(session)
        asked.known_context_hash = talk.assemble(asked).context_hash
        asked.ingest.extend(round_trip(Random(seed), 250, f"call-{SERIAL}"))
        return asked.SerializeToString()

    _measure(bench, "step", "Assemble", request, goal=0.33, known=True)


def ingest(bench: Bench) -> None:
    """Ingest stores a message of 250 bytes."""

    def request(talk: Talk, session: str, seed: int) -> bytes:
        message = said(message_pb2.ROLE_USER, f"{SERIAL} {text(Random(seed), 250)}")
        return lifecycle_pb2.IngestRequest(
            session=ref(session), message=message
        ).SerializeToString()

    _measure(bench, "ingest", "Ingest", request, goal=0.4)


def _measure(
    bench: Bench, case: str, rpc: str, request: Request, *, goal: float, known: bool = False
) -> None:
    """Floor and ours in turns, a call in flight for each session. What ours answered is counted in
    the store."""
    talk = bench.talk(bench.server)
    history = list(conversation(HISTORY, 400))
    for count in SESSIONS:
        sessions = [f"{case}-{count}-{index}" for index in range(count)]
        for session in sessions:
            talk.fill(session, history)
        # The floor answers what ours does.
        first = request(talk, sessions[0], 0).replace(SERIAL.encode(), b"00000000")
        reply = talk.raw(f"{ENGINE}/{rpc}", first)
        (bench.replies / f"{case}-{count}").write_bytes(reply)
        bodies = [request(talk, session, index) for index, session in enumerate(sessions)]
        turn = partial(_turn, bench, bodies=bodies, known=known)
        floor, ours = bench.turns(
            [
                partial(turn, f"bench.Floor/{case}-{count}", bench.floor),
                partial(_stored, talk, sessions, partial(turn, f"{ENGINE}/{rpc}", bench.server)),
            ]
        )
        bench.compare(
            f"{case}, {count} session{'s' if count > 1 else ''}",
            floor,
            ours,
            goal=goal if count == LANES else None,
            note=f"replies of {len(reply) / 1000:.1f} KB",
        )


def _turn(
    bench: Bench, method: str, server: Process, *, bodies: Sequence[bytes], known: bool
) -> Slice:
    step = Step(method, bodies, per_lane=True, known=known)
    return drive(Load([step], len(bodies), min(len(bodies), 16)), server, bench.seconds)


def _stored(talk: Talk, sessions: Sequence[str], turn: Callable[[], Slice]) -> Slice:
    """A turn whose calls are each found in the store."""

    def revisions() -> int:
        return sum(talk.status(session).revision for session in sessions)

    before = revisions()
    taken = turn()
    if (stored := revisions() - before) != taken.calls:
        raise BenchError(f"{taken.calls} calls were answered, but {stored} were stored")
    return taken
