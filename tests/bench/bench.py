"""What the cases share: the processes, the rounds, and how two sides are compared."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from .house import Process, start_floor, start_server
from .load import Slice
from .report import Figure, of_rounds
from .talk import Talk

LANES = 64
"""Calls in flight where much is asked at once."""


@dataclass
class Bench:
    """One run. Whatever is started ends with `stack`."""

    directory: Path
    stack: ExitStack
    rounds: int
    seconds: float
    """How long a turn counts."""
    quick: bool
    scale: bool = False
    """The long form of a case, where it has one."""
    figures: list[Figure] = field(default_factory=list)
    _floor: Process | None = None
    _server: Process | None = None

    @property
    def replies(self) -> Path:
        """What the floor answers with, a file each."""
        path = self.directory / "floor"
        path.mkdir(exist_ok=True)
        return path

    @property
    def floor(self) -> Process:
        """The bare handler."""
        if self._floor is None:
            self._floor = self.stack.enter_context(start_floor(self.replies))
        return self._floor

    @property
    def server(self) -> Process:
        """Our server as it comes, with room to keep every session warm."""
        if self._server is None:
            self._server = self.serve("server")
        return self._server

    def serve(self, name: str, settings: Mapping[str, str] | None = None) -> Process:
        """Another one of our servers, with data of its own."""
        return self.stack.enter_context(start_server(self.directory / name, settings))

    def talk(self, server: Process) -> Talk:
        """Single calls to a server."""
        talk = Talk(server.address)
        self.stack.callback(talk.close)
        return talk

    def add(self, figure: Figure) -> None:
        """A figure, told as soon as it is known: a run takes minutes."""
        self.figures.append(figure)
        print(
            f"  {figure.case}, {figure.what}: {figure.shown} (goal {figure.wanted or 'none'})",
            file=sys.stderr,
        )

    def turns(self, sides: Sequence[Callable[[], Slice]]) -> list[list[Slice]]:
        """Each side's slices: the sides in turn, as often as there are rounds."""
        slices: list[list[Slice]] = [[] for _ in sides]
        for _ in range(self.rounds):
            for taken, side in zip(slices, sides, strict=True):
                taken.append(side())
        return slices

    def compare(
        self,
        case: str,
        floor: Sequence[Slice],
        ours: Sequence[Slice],
        *,
        goal: float | None = None,
        note: str = "",
    ) -> None:
        """What a call costs of processor time, and the throughput, against the floor's, round by
        round. `goal`: of both."""
        driver = f"driver {median(floor, own) * 1e6:,.0f}"
        self.add(
            of_rounds(
                case,
                "processor time a call, floor over ours",
                [bare.cpu / our.cpu for our, bare in zip(ours, floor, strict=True)],
                goal=goal,
                floor=f"{median(floor, cpu) * 1e6:,.0f} µs ({driver})",
                ours=f"{median(ours, cpu) * 1e6:,.0f} µs",
            )
        )
        self.add(
            of_rounds(
                case,
                "throughput",
                [our.rate / bare.rate for our, bare in zip(ours, floor, strict=True)],
                goal=goal,
                floor=f"{median(floor, rate):,.0f}/s",
                ours=f"{median(ours, rate):,.0f}/s" + (f", {note}" if note else ""),
            )
        )


def median(slices: Sequence[Slice], of: Callable[[Slice], float]) -> float:
    """The median of one of their numbers."""
    ordered = sorted(map(of, slices))
    return ordered[len(ordered) // 2]


def rate(one: Slice) -> float:
    """Calls a second."""
    return one.rate


def cpu(one: Slice) -> float:
    """Seconds of processor time a call."""
    return one.cpu


def own(one: Slice) -> float:
    """Seconds of the driver's processor time a call."""
    return one.own


def p50(one: Slice) -> float:
    """The median latency."""
    return one.p50


def p99(one: Slice) -> float:
    """The latency that one call in a hundred exceeds."""
    return one.p99


def p999(one: Slice) -> float:
    """The latency that one call in a thousand exceeds."""
    return one.p999
