"""`make bench`: this server beside the floor, in turns, with the goal beside each figure.

python tests/bench/run.py [--quick] [--scale] [--only CASE[,CASE]] [--json] [--rounds N]
[--seconds S] [--markdown FILE]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rich.console import Console

from tests.bench.bench import Bench
from tests.bench.cases import APART, CASES, SCALE
from tests.bench.house import BenchError
from tests.bench.report import as_json, machine_facts, show, write_markdown


def main() -> int:
    """Runs the cases asked for. Answers 1 where one could not be measured; a goal that is missed is
    no failure."""
    parser = argparse.ArgumentParser(
        prog="make bench", description="Measures the server against a bare handler."
    )
    parser.add_argument(
        "--quick", action="store_true", help="about two minutes: fewer, shorter rounds"
    )
    parser.add_argument(
        "--scale",
        action="store_true",
        help="the long form of those that have one: 100,000 sessions, a million messages",
    )
    parser.add_argument("--only", default="", help=f"cases, parted by commas: {', '.join(CASES)}")
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    parser.add_argument("--rounds", type=int, help="turns of each side (default 5)")
    parser.add_argument("--seconds", type=float, help="how long a turn counts (default 2)")
    parser.add_argument(
        "--markdown", type=Path, help="write the table there as well, as docs/benchmarks.md has it"
    )
    given = parser.parse_args()
    every = [name for name in CASES if name not in APART]
    wanted = [name for name in given.only.split(",") if name] or list(
        SCALE if given.scale else every
    )
    if strangers := [name for name in wanted if name not in CASES]:
        parser.error(f"--only {strangers[0]}: there is no such case; there are {', '.join(CASES)}")
    machine = machine_facts()
    failed = False
    with (
        tempfile.TemporaryDirectory(prefix="contextengine-bench-") as directory,
        ExitStack() as stack,
    ):
        bench = Bench(
            Path(directory),
            stack,
            rounds=given.rounds or (2 if given.quick else 5),
            seconds=given.seconds or (1 if given.quick else 2),
            quick=given.quick,
            scale=given.scale,
        )
        for name in wanted:
            print(name, file=sys.stderr)
            try:
                CASES[name](bench)
            except BenchError as error:
                failed = True
                print(f"{name} could not be measured: {error}", file=sys.stderr)
        figures = bench.figures
    if given.json:
        print(as_json(figures, machine))
    else:
        show(figures, Console(width=None if sys.stdout.isatty() else 160))
    if given.markdown:
        write_markdown(
            figures, machine, "make bench-scale" if given.scale else "make bench", given.markdown
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
