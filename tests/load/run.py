"""`make load`: ghz against a server with a seeded store, beside the floor. `--help` says more."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rich.console import Console

from tests.bench.house import BenchError
from tests.bench.report import machine_facts
from tests.bench.talk import Talk
from tests.load.driving import CASES, Driving, Row
from tests.load.ghz import VERSION, Tools
from tests.load.profiles import ProfileError, write_protoset
from tests.load.report import Ramp, show, write_html, write_json
from tests.load.seed import WRITTEN, seed_read, seed_written

ROOT = Path(__file__).resolve().parents[2]

ABOUT = f"""\
Starts a server with a seeded store on a free port of 127.0.0.1, drives each profile at it with ghz,
and at a bare handler that returns the same bytes (the floor). Prints throughput, latencies and
errors of both, and where the ramps have their knees; writes report.html, report.json and ghz's own
reports. Ends with 1 where a call failed, or did not write what it should have.

what --only takes, in the order in which it runs:
  {", ".join(list(CASES)[:6])},
  {", ".join(list(CASES)[6:])}

examples:
  make load                                         all of it, four to five minutes
  make load LOAD_SECONDS=10                         each load counts ten seconds
  make load LOAD_ONLY=step,ramp-step                two of them

by hand, against a server of your own (`make run`), with ghz alone:
  .venv/bin/python tests/load/run.py --seed 127.0.0.1:50051
  .tools/bin/ghz --config tests/load/profiles/ingest.json
"""


def main() -> int:
    """Runs what is asked for. Answers 1 where anything failed, 2 where it could not begin."""
    parser = argparse.ArgumentParser(
        prog="make load", description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="what to run, parted by commas (default: all)")
    parser.add_argument(
        "--seconds", type=float, default=3, help="how long each load counts (default 3)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=ROOT / "build" / "load",
        help="where reports go (default build/load)",
    )
    parser.add_argument(
        "--seed",
        metavar="HOST:PORT",
        help="only fill the store of that server, as the profiles need it",
    )
    given = parser.parse_args()
    if given.seed:
        return _seed(given.seed)
    wanted = {name for name in given.only.split(",") if name} or set(CASES)
    if strangers := wanted - CASES.keys():
        parser.error(
            f"--only {min(strangers)}: there is no such load; there are {', '.join(CASES)}"
        )
    if not 0.5 <= given.seconds <= 600:
        parser.error(f"--seconds {given.seconds:g}: between 0.5 and 600")
    if "end" in wanted:
        wanted.add("spawn")  # which makes the children that end
    tools = Tools(
        ROOT / ".tools/bin/ghz",
        ROOT / ".tools/bin/ghz-deltas",
        given.out / "contextengine.protoset",
    )
    for program in (tools.ghz, tools.deltas):
        if not program.is_file():
            parser.error(
                f"{program.relative_to(ROOT)} is missing: `make load` builds it, with Go 1.23 or"
                " newer on PATH"
            )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped
    reports = given.out / "ghz"
    reports.mkdir(parents=True, exist_ok=True)
    write_protoset(tools.protoset)
    machine = machine_facts() | {"load": f"ghz {VERSION}", "seconds": f"{given.seconds:g} a load"}
    rows: list[Row] = []
    ramps: list[Ramp] = []
    failures: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="contextengine-load-") as scratch, ExitStack() as stack:
        try:
            driving = Driving(Path(scratch), reports, tools, given.seconds, stack)
        except BenchError as error:
            print(f"the server could not be made ready: {error}", file=sys.stderr)
            return 2
        for name, case in CASES.items():
            if name not in wanted:
                continue
            try:
                found = case(driving)
            except (BenchError, ProfileError) as error:
                failures[name] = str(error)
                print(f"  {name} failed: {error}", file=sys.stderr)
                continue
            if name.startswith("ramp-"):
                ramps.append(Ramp(name, found))
            else:
                rows += found
    for row in [*rows, *(row for ramp in ramps for row in ramp.rows)]:
        for kind, count in {**row.floor.kinds, **row.ours.kinds}.items():
            failures[f"{row.name}, {row.load}"] = f"{count} × {kind}"
    show(rows, ramps, Console(width=None if sys.stdout.isatty() else 160))
    write_json(rows, ramps, machine, failures, given.out / "report.json")
    write_html(rows, ramps, machine, failures, given.out / "report.html")
    print(f"written: {given.out / 'report.html'}, {given.out / 'report.json'}")
    for name, told in failures.items():
        print(f"FAILED {name}: {told[:300]}", file=sys.stderr)
    return int(bool(failures))


def _seed(address: str) -> int:
    """Fills the store of a running server, for calls by hand. RUN is put before the names of what
    calls write to."""
    talk = Talk(address)
    try:
        seed_read(talk)
        seed_written(talk, os.environ.get("RUN", ""), WRITTEN)
    except BenchError as error:
        print(f"{address} could not be seeded: {error}", file=sys.stderr)
        return 1
    finally:
        talk.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
