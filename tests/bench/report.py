"""Figures and how they are shown: a table for people, JSON, and docs/benchmarks.md."""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure and its goal."""

    case: str
    what: str
    value: float
    unit: str = ""
    """Empty: a ratio."""
    goal: float | None = None
    more_is_better: bool = True
    low: float | None = None
    high: float | None = None
    """The lowest and highest of the rounds."""
    floor: str = ""
    ours: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None where there is none."""
        if self.goal is None:
            return None
        return self.value >= self.goal if self.more_is_better else self.value <= self.goal

    @property
    def shown(self) -> str:
        """The value with its unit."""
        return number(self.value) + (f" {self.unit}" if self.unit else "")

    @property
    def spread(self) -> str:
        """The range over the rounds."""
        return (
            ""
            if self.low is None or self.high is None
            else f"{number(self.low)} … {number(self.high)}"
        )

    @property
    def wanted(self) -> str:
        """The goal."""
        if self.goal is None:
            return ""
        sign = "≥" if self.more_is_better else "≤"
        return f"{sign} {number(self.goal)}" + (f" {self.unit}" if self.unit else "")


def of_rounds(
    case: str,
    what: str,
    values: Sequence[float],
    *,
    unit: str = "",
    goal: float | None = None,
    more_is_better: bool = True,
    floor: str = "",
    ours: str = "",
) -> Figure:
    """The median of what the rounds gave."""
    middle = statistics.median(values)
    return Figure(
        case,
        what,
        middle,
        unit,
        goal,
        more_is_better,
        min(values),
        max(values),
        floor=floor,
        ours=ours,
    )


def number(value: float) -> str:
    """Three digits, and thousands parted."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}"


_HEADERS = ("case", "figure", "floor", "ours", "result", "goal", "rounds", "met")


def _cells(figure: Figure) -> tuple[str, ...]:
    met = {True: "yes", False: "no", None: ""}[figure.met]
    return (
        figure.case, figure.what, figure.floor, figure.ours, figure.shown, figure.wanted,
        figure.spread, met,
    )  # fmt: skip


def show(figures: Sequence[Figure], console: Console) -> None:
    """Prints the table."""
    table = Table(*_HEADERS, box=box.SIMPLE)
    for figure in figures:
        *cells, met = _cells(figure)
        table.add_row(*cells, {"yes": "[green]yes", "no": "[red]no", "": ""}[met])
    console.print(table)


def as_json(figures: Sequence[Figure], machine: dict[str, str]) -> str:
    """Everything, for programs."""
    return json.dumps(
        {
            "machine": machine,
            "figures": [asdict(figure) | {"met": figure.met} for figure in figures],
        },
        indent=2,
    )


def machine_facts() -> dict[str, str]:
    """What was measured on."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    go = ""
    if shutil.which("go"):
        go = subprocess.run(["go", "version"], capture_output=True, text=True, check=False).stdout
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "processors": f"{os.cpu_count()} × {model}",
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "libraries": (
            f"grpcio {version('grpcio')}, uvloop {version('uvloop')}, protobuf"
            f" {version('protobuf')}"
        ),
        "load": f"tests/bench/driver, {go.strip()}",
        "one-minute load before": f"{os.getloadavg()[0]:.1f}",
    }


_ABOUT = """# Benchmarks

Written by `make bench`. Every figure is measured beside the floor, in turns and under the same
load, and is given as a ratio where it can be: absolute numbers tell more of a machine than of a
program.

- **The floor** is a bare `grpc.aio` handler on uvloop in a process of its own, which returns bytes
  of the same size that it holds in memory, under the same server options. Nothing written in Python
  on this stack answers faster.
- **The load** is a compiled program (`tests/bench/driver`) that writes HTTP/2 frames, makes each
  request up as it goes out, and reads no more of a reply than its status. What it costs a call
  stands beside the floor's figure: a load that is not much cheaper than the floor measures itself.
- **Each request is one that nobody asked before**, unless the row says *again*: messages have texts
  and calls of their own, an assembly is asked for in other words, a step names the list of the
  reply before it.
- **Processor time a call** is the server's, all its threads together: a machine that has other work
  bends it less than throughput. The floor is 1; a call that costs four times as much is 0.25.
- Both sides get the same requests, over as many connections. A turn lasts some seconds, of which
  the first, while connections are made and caches fill, does not count; the sides take turns
  (floor, ours, floor, ours …), and a result is the median of the rounds' ratios. *rounds* gives
  their range.
- **Replies are checked**: no call may fail, replies have the size they should have, and what was to
  be stored is counted afterwards in the revision of every session.
- Sessions of *assemble*, *step* and *ingest* hold 220 messages of 440 bytes, a context of 100 KB,
  unless named otherwise; 64 calls are in flight on 16 connections, unless the row says otherwise.
- *agents* are turns of five steps that begin by the clock, whether or not the turn before is done:
  every fifth with a search, every tenth with a child. The wait of a turn that is late counts.
- `make bench-scale` runs *sessions* with 100,000 of them and *history* to a million messages.
"""


def write_markdown(
    figures: Sequence[Figure], machine: dict[str, str], command: str, path: Path
) -> None:
    """Writes docs/benchmarks.md."""
    lines = [_ABOUT, "| | |", "| --- | --- |"]
    lines += [f"| {name} | {value} |" for name, value in machine.items()]
    lines += [f"| command | `{command}` |", ""]
    lines.append("| " + " | ".join(_HEADERS) + " |")
    lines.append("| --- | --- | --- | --- | ---: | ---: | --- | --- |")
    lines += ["| " + " | ".join(_cells(figure)) + " |" for figure in figures]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
