"""Assemble on a warm session, the whole list, at three sizes of the reply."""

from __future__ import annotations

from pathlib import Path

from ..bench import Bench, median, p99, rate
from ..house import BenchError, Process
from ..load import Load, Slice, drive
from ..report import of_rounds
from ..stepping import build, drive_steps
from ..talk import ENGINE, assemble, body, conversation

SIZES = {"10 KB": 22, "100 KB": 220, "1 MB": 2_200}
"""Messages of 400 bytes of text, 440 as an item."""


def run(bench: Bench) -> None:
    """Throughput at each size; at 100 KB also the p99 of both sides under half of what ours can
    carry."""
    talk = bench.talk(bench.server)
    for size, messages in SIZES.items():
        session = f"warm-{messages}"
        talk.fill(session, list(conversation(messages, 400)))
        request = assemble(session).SerializeToString()
        reply = talk.raw(f"{ENGINE}/Assemble", request)
        if reply != talk.raw(f"{ENGINE}/Assemble", request):
            raise BenchError("the same request was answered with other bytes")
        (bench.replies / session).write_bytes(reply)
        file = body(bench.directory, session, request)
        floor, ours = _sides(bench, session, file, len(reply), 0)
        bench.compare(f"warm {size}", floor, ours, goal=0.8 if size == "100 KB" else None)
        if size == "100 KB":
            _in_other_words(bench, session, request)
            _half_load(bench, session, file, len(reply), median(ours, rate) / 2)


def _in_other_words(bench: Bench, session: str, request: bytes) -> None:
    """The same list asked for in ever other words: what costs where no answer is at hand. 16 calls
    in flight."""
    program = build(bench.directory)
    file = bench.directory / f"{session}-request"
    file.write_bytes(request)

    def side(method: str, server: Process) -> Slice:
        return drive_steps(program, method, [file] * 16, server, bench.seconds, whole=True)

    floor, ours = bench.turns(
        [
            lambda: side(f"bench.Floor/{session}", bench.floor),
            lambda: side(f"{ENGINE}/Assemble", bench.server),
        ]
    )
    bench.compare("warm 100 KB, planned anew", floor, ours, goal=None)


def _half_load(bench: Bench, session: str, file: Path, length: int, half: float) -> None:
    floor, ours = _sides(bench, session, file, length, half)
    bench.add(
        of_rounds(
            "warm 100 KB",
            f"p99 at half load ({half:,.0f}/s), ours over floor",
            [our.p99 / bare.p99 for our, bare in zip(ours, floor, strict=True)],
            goal=2,
            more_is_better=False,
            floor=f"{median(floor, p99) * 1e3:.2f} ms",
            ours=f"{median(ours, p99) * 1e3:.2f} ms",
        )
    )


def _sides(
    bench: Bench, session: str, file: Path, length: int, calls_per_s: float
) -> list[list[Slice]]:
    """Floor and ours in turns, 16 calls in flight on four connections."""

    def side(method: str, *, ours: bool) -> Slice:
        load = Load(method, (file,), connections=4, streams=4, calls_per_s=calls_per_s)
        taken = drive(load, bench.server if ours else bench.floor, bench.seconds)
        if (
            not length <= taken.reply_bytes <= length * 1.1
        ):  # the unfinished ones' bytes count as well
            raise BenchError(
                f"{method}: replies have {taken.reply_bytes:.0f} bytes in place of {length}"
            )
        return taken

    return bench.turns(
        [
            lambda: side(f"bench.Floor/{session}", ours=False),
            lambda: side(f"{ENGINE}/Assemble", ours=True),
        ]
    )
