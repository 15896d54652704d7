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
    h2load = ""
    if shutil.which("h2load"):
        h2load = subprocess.run(
            ["h2load", "--version"], capture_output=True, text=True, check=False
        ).stdout
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
        "load": h2load.strip(),
        "one-minute load before": f"{os.getloadavg()[0]:.1f}",
    }


_ABOUT = """# Benchmarks

Written by `make bench`. Every figure is measured beside the floor, in turns and under the same
load, and is given as a ratio where it can be: absolute numbers tell more of a machine than of a
program.

- **The floor** is a bare `grpc.aio` handler on uvloop in a process of its own, which returns bytes
  of the same size that it holds in memory, under the same server options. Nothing written in Python
  on this stack answers faster.
- **The load** is h2load. Both sides get the same requests, from as many processes and connections.
  A turn lasts some seconds, of which the first, while connections are made and caches fill, does
  not count; the sides take turns (floor, ours, floor, ours …), and a result is the median of the
  rounds' ratios. *rounds* gives their range.
- **Replies are checked**: no call may fail, replies have the size they should have, and what was to
  be stored is counted afterwards in the revision of every session.
- h2load sends one fixed body a process. A load on 64 sessions is therefore 64 processes with a call
  in flight each. Messages carry no ids, so each call stores new ones. Where requests must differ, a
  small Go program (`tests/bench/stepper`) drives both sides: a step names the list of the reply
  before it, so that the answer is its delta, and what is *planned anew* is asked for in words that
  nobody has asked in before. The same request again is answered from memory.
- Sessions of *warm*, *step* and *ingest* hold 200 messages of 440 bytes, a context of 100 KB,
  unless named otherwise.
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
