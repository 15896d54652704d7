"""Assemble on a warm session, the whole list: the same request again, and asked in words that
nobody asked in before."""

from __future__ import annotations

from ..bench import LANES, Bench, median, p99, p999, rate
from ..house import BenchError, Process
from ..load import SERIAL, Load, Slice, Step, drive
from ..report import of_rounds
from ..talk import ENGINE, assemble, conversation

SIZES = {"10 KB": 22, "100 KB": 220, "1 MB": 2_200}
"""Messages of 400 bytes of text, 440 as an item."""
ANEW = {"10 KB": None, "100 KB": 0.6}
"""The sizes that are asked anew, and the goals."""


def run(bench: Bench) -> None:
    """Throughput and processor time at each size; at 100 KB also the latest replies of both sides
    under half of what ours can carry."""
    talk = bench.talk(bench.server)
    for size, messages in SIZES.items():
        session = f"warm-{messages}"
        talk.fill(session, list(conversation(messages, 400)))
        request = assemble(session)
        again = request.SerializeToString()
        reply = talk.raw(f"{ENGINE}/Assemble", again)
        if reply != talk.raw(f"{ENGINE}/Assemble", again):
            raise BenchError("the same request was answered with other bytes")
        (bench.replies / session).write_bytes(reply)
        lanes = LANES if messages < 1_000 else 16
        floor, ours = _sides(bench, session, again, len(reply), lanes)
        bench.compare(f"assemble {size}, again", floor, ours)
        if size in ANEW:
            request.known_epoch = SERIAL
            anew = request.SerializeToString()
            floor, ours = _sides(bench, session, anew, len(reply), lanes)
            bench.compare(f"assemble {size}, anew", floor, ours, goal=ANEW[size])
            if size == "100 KB":
                _half_load(bench, session, anew, len(reply), median(ours, rate) / 2)


def _half_load(bench: Bench, session: str, request: bytes, length: int, half: float) -> None:
    floor, ours = _sides(bench, session, request, length, LANES, half)
    for what, of, goal in (("p99", p99, 2.0), ("p99.9", p999, 3.0)):
        bench.add(
            of_rounds(
                "assemble 100 KB, anew",
                f"{what} at half load ({half:,.0f}/s), ours over floor",
                [of(our) / of(bare) for our, bare in zip(ours, floor, strict=True)],
                goal=goal,
                more_is_better=False,
                floor=f"{median(floor, of) * 1e3:.2f} ms",
                ours=f"{median(ours, of) * 1e3:.2f} ms",
            )
        )


def _sides(
    bench: Bench, session: str, request: bytes, length: int, lanes: int, calls_per_s: float = 0
) -> list[list[Slice]]:
    """Floor and ours in turns."""

    def side(method: str, server: Process) -> Slice:
        load = Load([Step(method, [request])], lanes, min(lanes, 16), calls_per_s)
        taken = drive(load, server, bench.seconds)
        # A cause of another epoch is named besides.
        if not length <= round(taken.reply_bytes) <= length + 64:
            raise BenchError(
                f"{method}: replies have {taken.reply_bytes:.0f} bytes in place of {length}"
            )
        return taken

    return bench.turns(
        [
            lambda: side(f"bench.Floor/{session}", bench.floor),
            lambda: side(f"{ENGINE}/Assemble", bench.server),
        ]
    )
