"""`make pressure`: what is left of a server at ten times the load that fits, and of a quiet tenant
beside a noisy one.

python tests/load/pressure.py [--seconds S] [--rounds N] [--only overload,neighbours,shares]
                              [--realtime]

Callers come back when they are told to, as the shipped clients do. Beside what a second brings
stands what a second of the server's own processor time does: callers and whatever else the machine
has to do take part of the same processors.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rich.console import Console
from rich.table import Table

from contextengine_server.api.pipeline.auth import hash_token
from tests.bench.house import Process, launch_server, start_floor
from tests.bench.report import machine_facts

Popen = subprocess.Popen[bytes]
ROOT = Path(__file__).resolve().parents[2]
NOISY, QUIET = "token-of-the-noisy", "token-of-the-quiet"
FITTING = (1, 2, 4, 8, 16, 32)
"""Callers at once among which the peak is looked for."""
TIMES = 10
KEPT, TWICE = 0.8, 2.0
"""Of the peak, at ten times the load; of a quiet tenant's p99, beside a noisy one."""
NOISE = (("step", 160), ("batch", 16))
"""What the noisy tenant sends, and its callers at once."""
SHARED = (("step", 16), ("batch", 8))
"""What the noisy tenant sends at a rate, and the callers whose answers say what the server does of
it: a tenant's share beside one other is half of that."""
REPLY = bytes(1_000)
"""What a bare handler answers: about as much as a step."""
PACE_MS = 20
"""From one call of the quiet tenant's one caller to the next."""
LONGER = 3
"""How much longer a turn of a quiet tenant counts: of some hundred calls one is the p99."""


@dataclass
class Heard:
    """What callers heard, of some turns."""

    good: list[float] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)
    lasted: float = 0.0
    cpu: float = 0.0
    """Seconds of the server's processor time."""
    sent: int = 0
    """Tries, refused ones included."""

    @property
    def rate(self) -> float:
        """Good answers a second."""
        return len(self.good) / self.lasted

    @property
    def by_cpu(self) -> float:
        """Good answers a second of the server's processor time."""
        return len(self.good) / self.cpu

    def p(self, percent: int) -> float:
        """The latency that so many of a hundred good answers do not exceed, in milliseconds."""
        if len(self.good) < 2:
            return math.nan  # nothing came of it in that time
        return statistics.quantiles(self.good, n=100)[percent - 1] * 1e3

    def add(self, other: Heard) -> None:
        self.good += other.good
        self.failed += other.failed
        self.lasted += other.lasted
        self.cpu += other.cpu
        self.sent += other.sent


def cpu(server: Process) -> float:
    """Seconds of processor time that a server took so far, its worker processes apart."""
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start(
    server: Process,
    token: str,
    kind: str,
    callers: int,
    pace: int,
    seconds: float,
    rate: float = 0.0,
) -> Popen:
    given = [server.address, token, kind, callers, pace, seconds, rate]
    command = [sys.executable, "-m", "tests.load.callers", *map(str, given)]
    if token != QUIET:  # whose one caller measures, and shares the processors with these
        command.insert(0, "nice")
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)


def before_others(pid: int) -> None:
    """Has a process the processors before all that is not in the real-time class."""
    subprocess.run(["chrt", "--all-tasks", "--rr", "--pid", "1", str(pid)], check=True)


def heard(process: Popen, server: Process) -> Heard:
    before = cpu(server)
    out, _ = process.communicate(timeout=300)
    said = json.loads(out)
    failed, taken = Counter(said["failed"]), cpu(server) - before
    return Heard(said["good"], failed, said["lasted"], taken, said["sent"])


def called(server: Process, kind: str, callers: int, seconds: float) -> Heard:
    return heard(start(server, NOISY, kind, callers, 0, seconds), server)


def overload(server: Process, kind: str, seconds: float, rounds: int, console: Console) -> bool:
    """The peak, and what is left of it at ten and a hundred times the callers."""
    found: dict[int, Heard] = {}
    counts = list(FITTING)
    for _ in range(rounds):
        for callers in FITTING:
            found.setdefault(callers, Heard()).add(called(server, kind, callers, seconds))
    peak = max(FITTING, key=lambda callers: found[callers].by_cpu)
    for _ in range(rounds):
        for callers in (peak, TIMES * peak, 10 * TIMES * peak):
            if callers not in counts:
                counts.append(callers)
            found.setdefault(callers, Heard()).add(called(server, kind, callers, seconds))
    table = Table(
        "callers",
        "good/s",
        "of peak",
        "a cpu second",
        "of peak",
        "p50 ms",
        "p99 ms",
        "sent back",
        title=f"overload: {kind}",
    )
    for callers in counts:
        one, best = found[callers], found[peak]
        table.add_row(
            f"{callers:,}",
            f"{one.rate:,.0f}",
            f"{one.rate / best.rate:.2f}",
            f"{one.by_cpu:,.0f}",
            f"{one.by_cpu / best.by_cpu:.2f}",
            f"{one.p(50):,.1f}",
            f"{one.p(99):,.1f}",
            _reasons(one.failed),
        )
    console.print(table)
    left = found[TIMES * peak]
    return left.by_cpu >= KEPT * found[peak].by_cpu and not _bare(left.failed)


@dataclass(frozen=True)
class Turns:
    """How a quiet tenant is measured: how long a turn counts, how many there are, and whether the
    server and its caller have the processors before the noisy callers."""

    seconds: float
    rounds: int
    realtime: bool


def neighbours(server: Process, kind: str, callers: int, turns: Turns, console: Console) -> bool:
    """A quiet tenant's calls alone, and beside a noisy one's. Of a bare handler this says what the
    transport and the machine do to a caller beside so many others."""
    title = f"{server.name}: beside {callers} callers of {kind}"
    return _beside(server, kind, callers, 0.0, title, turns, console)


def shares(server: Process, turns: Turns, console: Console) -> bool:
    """A quiet tenant's calls alone, and beside a tenant that sends ten times its share, whatever
    becomes of it: no call waits for another, and none that is refused comes back."""
    held = True
    # All are measured before any is exceeded: what was sent by then is still worked on afterwards.
    found = [
        (kind, callers, called(server, kind, callers, turns.seconds).rate / 2)
        for kind, callers in SHARED
    ]
    for kind, callers, share in found:
        if not share:
            raise SystemExit(f"no {kind} was answered in {turns.seconds} s: say --seconds")
        title = f"{server.name}: beside {TIMES} times a share of {share:,.1f} a second ({kind})"
        held &= _beside(server, kind, TIMES * callers, TIMES * share, title, turns, console)
    return held


def _beside(
    server: Process,
    kind: str,
    callers: int,
    rate: float,
    title: str,
    turns: Turns,
    console: Console,
) -> bool:
    alone, beside, noise = Heard(), Heard(), Heard()

    def quiet() -> Popen:
        caller = start(server, QUIET, "step", 1, PACE_MS, turns.seconds)
        if turns.realtime:
            before_others(caller.pid)
        return caller

    if turns.realtime:
        before_others(server.pid)
    for _ in range(turns.rounds):
        alone.add(heard(quiet(), server))
        noisy = start(server, NOISY, kind, callers, 0, turns.seconds + 1.5, rate)
        beside.add(heard(quiet(), server))
        noise.add(heard(noisy, server))
    table = Table(
        "quiet", "sent/s", "calls", "p50 ms", "p99 ms", "of alone", "sent back", title=title
    )
    for name, one in (("alone", alone), ("beside", beside)):
        table.add_row(
            name,
            f"{one.sent / one.lasted:,.0f}",
            f"{len(one.good):,}",
            f"{one.p(50):.1f}",
            f"{one.p(99):.1f}",
            f"{one.p(99) / alone.p(99):.2f}",
            _reasons(one.failed),
        )
    table.add_row(
        "noisy",
        f"{noise.sent / noise.lasted:,.0f}",
        f"{len(noise.good):,}",
        f"{noise.p(50):.1f}",
        f"{noise.p(99):.1f}",
        "",
        _reasons(noise.failed),
    )
    console.print(table)
    return beside.p(99) <= TWICE * alone.p(99) and not beside.failed


def _reasons(failed: Counter[str]) -> str:
    return ", ".join(f"{count:,} {why}" for why, count in failed.most_common()) or "none"


def _bare(failed: Iterable[str]) -> list[str]:
    """Failures that do not say when to come back."""
    return [why for why in failed if not why.startswith("RESOURCE_EXHAUSTED OVERLOADED")]


def main() -> int:
    """Answers 1 where a goal is missed."""
    parser = argparse.ArgumentParser(prog="make pressure", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3, help="how long a turn counts")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each load")
    parser.add_argument("--only", default="overload,neighbours,shares")
    parser.add_argument(
        "--realtime",
        action="store_true",
        help="the server and the quiet caller have the processors before the noisy callers, whose"
        " machine would be another one (chrt; needs the right to it)",
    )
    given = parser.parse_args()
    turns = Turns(LONGER * given.seconds, given.rounds, given.realtime)
    wanted, console = given.only.split(","), Console(width=140)
    tokens = [
        {"sha256": hash_token(token), "tenant": tenant}
        for token, tenant in ((NOISY, "noisy"), (QUIET, "quiet"))
    ]
    for name, fact in machine_facts().items():
        console.print(f"{name}: {fact}")
    held = True
    with tempfile.TemporaryDirectory(prefix="contextengine-pressure-") as directory:
        settings = {"CONTEXTENGINE_AUTH__TOKENS": json.dumps(tokens)}
        with launch_server(Path(directory), settings) as server:
            server.serving()
            if "overload" in wanted:
                held &= overload(server, "step", given.seconds, given.rounds, console)
            if "neighbours" in wanted:
                for kind, callers in NOISE:
                    held &= neighbours(server, kind, callers, turns, console)
            if "shares" in wanted:
                held &= shares(server, turns, console)
        if "neighbours" in wanted:
            for rpc in ("Assemble", "IngestBatch"):
                (Path(directory) / rpc).write_bytes(REPLY)
            with start_floor(Path(directory)) as floor:
                for kind, callers in NOISE:
                    neighbours(floor, kind, callers, turns, console)
    return int(not held)


if __name__ == "__main__":
    sys.exit(main())
