"""Breaks the core in small ways, one at a time, and looks whether a test fails each time.

The mutations are mutmut's. Its own runner puts a trampoline in place of every function, which our
structs do not survive. Here the tests are collected once. A first child process runs them all and
records which lines each one reaches and how long it takes. Then each mutant has a child process
of its own, where the code of the function that it changes is exchanged, and the tests that reach
the changed lines run until one fails. What is worked out while modules are
imported is not changed by that: such a mutant has the tests of its room run on a copy of the
server.

What is said of mutants is worth what the tests are: first some are run, in the order in which they
run against a mutant, on the code as it is, and must pass.

    python scripts/mutants.py --sample 300
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import coverage
import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from scripts.mutant_functions import Functions  # noqa: E402
from scripts.mutations import Mutant, mutants_of  # noqa: E402

PACKAGE = ROOT / "server/contextengine_server"
ROOMS = ("context", "session", "commands", "store")
TESTS = (
    *(f"tests/unit/{room}" for room in (*ROOMS, "engines")),
    "tests/contract",
    "tests/oracle",
    "tests/properties",
    "tests/unit/usage",
    "tests/unit/config/test_summarizer.py",
    "tests/unit/summarize/test_summary_text.py",
    "tests/unit/summarize/test_stored_states.py",
    "tests/unit/api",
    "tests/unit/recall",
    "tests/unit/config",
    "tests/integration/compact",
    "tests/integration/writing",
    "tests/integration/recall",
    "tests/integration/background",
    "tests/integration/projection",
    "tests/integration/isolation",
)
LEFT_OUT = (
    "--ignore=tests/properties/test_transcripts.py",
    "--ignore=tests/unit/store/test_kill.py",
    "--deselect=tests/contract/test_stores.py::TestCachedSqlite",
    "--deselect=tests/contract/test_engines.py::TestDagOverManySessions",
    "--deselect=tests/contract/test_engines.py::TestLegacyOverManySessions",
)
"""Whole transcripts, which take minutes; servers in processes of their own, which no mutant
reaches; and the suite of stores on a wrapper around a store that passes it."""
TESTS_ANEW = {
    "store": (
        "tests/unit/store/test_schema.py",
        "tests/contract/test_stores.py::TestSqlite",
        "tests/unit/store",
        "tests/contract/test_stores.py::TestMemory",
    )
}
"""The tests of what a room works out while it is imported; else its unit tests."""
PATHS = ("server", "clients/python", "generated/python", ".")
SEED = 20_260

SLOW_S = 8.0
"""A test that takes more processor time is not run against mutants. By the clock, a test would be
left out on a busy machine, and what it alone notices survive."""
LIMIT_S = 60.0
"""After so much processor time no further test is begun: the mutant survived, unless `--seconds`
says otherwise. Were it time of the clock, mutants would survive on a busy machine that no test was
run against."""
LIMIT_ANEW_S = 600.0
"""Where the tests run on a copy of the server: so long by the clock."""
PATIENCE = 20
"""A test that takes so many times its time, and more than that by the grace below, would never end:
it fails."""
CPU_GRACE_S = 5.0
WALL_GRACE_S = 60.0
MEMORY = 6 << 30

PASSED, FAILED, BROKEN = 0, 1, 2
"""How a child ends; `BROKEN` says that the tests were not run."""


@dataclass(frozen=True)
class Record:
    """What the tests do where nothing is broken."""

    seconds: dict[str, float]
    reached: dict[str, dict[int, list[str]]]
    """By file and line: the tests that reach it."""
    failed: list[str]
    imported: dict[str, set[int]]
    """By file: the lines that importing it reaches."""

    def tests_of(self, mutant: Mutant) -> list[str]:
        """The tests that reach a mutant: first the unit tests of its room, of each function the
        quickest of its cases, by turns from each file, then the next cases; and likewise the
        others."""
        by_line = self.reached.get(str(mutant.path), {})
        tests = {test for line in mutant.lines for test in by_line.get(line, ())}
        quick = (test for test in tests if self.seconds[test] <= SLOW_S)
        near = f"tests/unit/{_room(mutant)}/"
        ranked: list[tuple[bool, int, int, float, str]] = []
        cases: Counter[str] = Counter()
        turns: Counter[tuple[str, int]] = Counter()
        for test in sorted(quick, key=lambda test: (self.seconds[test], test)):
            file, function = test.partition("::")[0], test.partition("[")[0]
            case = cases[function]
            turn = turns[file, case]
            ranked.append((not file.startswith(near), case, turn, self.seconds[test], test))
            cases[function] += 1
            turns[file, case] += 1
        return [test for *_, test in sorted(ranked)]

    def is_imported(self, mutant: Mutant) -> bool:
        """Whether importing its module runs it."""
        return not self.imported.get(str(mutant.path), set()).isdisjoint(mutant.lines)


def _room(mutant: Mutant) -> str:
    return mutant.path.relative_to(PACKAGE).parts[0]


def _recorder() -> coverage.Coverage:
    source = [str(PACKAGE / room) for room in ROOMS]
    return coverage.Coverage(data_file=None, source=source, config_file=False)


class Runner:
    """Runs collected tests in child processes, in place of pytest's own loop. Made before the
    server is imported."""

    def __init__(self, mutants: Sequence[Mutant], directory: Path, limit_s: float) -> None:
        self._mutants, self._directory, self._limit_s = mutants, directory, limit_s
        self._imports = _recorder()
        self._imports.start()
        self._failed: list[str] = []
        self._sound: set[str] = set()
        """Rooms whose tests pass on a copy of the server."""
        self._on_failure: Callable[[], None] = lambda: None
        self._quiet: Callable[[], object] = lambda: None
        self.survivors: list[Mutant] = []
        self.judged = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes what fails."""
        if report.failed:
            self._failed.append(report.nodeid)
            self._on_failure()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Records the tests, then runs those that reach it against each mutant."""
        self._imports.stop()
        plugins = session.config.pluginmanager
        self._quiet = lambda: plugins.unregister(plugins.get_plugin("terminalreporter"))
        items = {item.nodeid: item for item in session.items}
        functions = Functions()
        gc.collect()
        gc.freeze()
        record = self._recorded(list(items.values()))
        if record.failed:
            pytest.exit(f"tests fail without any mutant: {', '.join(record.failed)}", 1)
        for mutant in {_room(one): one for one in self._mutants}.values():
            tests = [items[test] for test in record.tests_of(mutant)]
            if self._fate(None, tests, functions, record.seconds) != "survived":
                pytest.exit(f"the tests of {_room(mutant)} fail in this order without a mutant", 1)
        for at, mutant in enumerate(self._mutants, start=1):
            began = time.monotonic()
            tests = [items[test] for test in record.tests_of(mutant)]
            fate = self._fate(mutant, tests, functions, record.seconds)
            if fate == "survived" and record.is_imported(mutant):
                fate = self._fate_of_import(mutant)
            self.judged += 1
            took = f"{time.monotonic() - began:.1f} s"
            print(f"{at}/{len(self._mutants)} {fate} in {took}, {len(tests)} tests reach it")
            if fate.startswith("survived"):
                self.survivors.append(mutant)
                print(f"{mutant.path.relative_to(ROOT)}\n{mutant.diff}\n")
            sys.stdout.flush()
        return True

    def _fate(
        self,
        mutant: Mutant | None,
        tests: Sequence[pytest.Item],
        functions: Functions,
        seconds: dict[str, float],
    ) -> str:
        """What becomes of a mutant; None: of the code as it is, which no test may fail for."""
        if not tests:
            return "survived"

        def run() -> int:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            if mutant is not None:
                functions.exchange(mutant)
            self._on_failure = lambda: os._exit(FAILED)
            deadline = time.process_time() + self._limit_s
            for item, following in _with_next(tests):
                if time.process_time() > deadline:
                    break
                patience = PATIENCE * seconds[item.nodeid]
                signal.setitimer(signal.ITIMER_PROF, CPU_GRACE_S + patience)
                signal.setitimer(signal.ITIMER_REAL, WALL_GRACE_S + patience)
                try:
                    item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
                except BaseException:
                    return FAILED
            return PASSED

        status = self._child(run)
        if os.WIFSIGNALED(status):
            return f"killed ({signal.Signals(os.WTERMSIG(status)).name})"
        if os.WEXITSTATUS(status) == BROKEN:
            what = "the code as it is" if mutant is None else f"{mutant.path}: {mutant.diff}"
            raise RuntimeError(f"no test could be run against {what}")
        return "survived" if os.WEXITSTATUS(status) == PASSED else "killed"

    def _fate_of_import(self, mutant: Mutant) -> str:
        copy, room = self._directory / "copy", _room(mutant)
        if not copy.exists():
            shutil.copytree(ROOT / "server", copy)
        if room not in self._sound:
            ended = self._run_anew(copy, room)
            if ended is None:
                return "survived: the tests of its room do not end in time without it either,"
            if ended != 0:
                pytest.exit(f"the tests of {room} fail on a copy without a mutant", 1)
            self._sound.add(room)
        place = copy / mutant.path.relative_to(ROOT / "server")
        place.write_text(mutant.code, encoding="utf-8")
        try:
            return "killed" if self._run_anew(copy, room) else "survived"
        finally:
            place.write_text(mutant.module.code, encoding="utf-8")

    @staticmethod
    def _run_anew(copy: Path, room: str) -> int | None:
        """How a room's tests end on a copy of the server, 0: well; None where they do not end."""
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
        paths = (str(copy), *(str(ROOT / path) for path in PATHS[1:]))
        try:
            return subprocess.run(
                [*command, *LEFT_OUT, *TESTS_ANEW.get(room, (f"tests/unit/{room}",))],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                capture_output=True,
                timeout=LIMIT_ANEW_S,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            return None

    def _recorded(self, items: list[pytest.Item]) -> Record:
        file = self._directory / "record.json"
        status = self._child(lambda: self._record(items, file))
        if status != PASSED:
            pytest.exit("the tests cannot be run even without any mutant", 1)
        told = json.loads(file.read_text(encoding="utf-8"))
        reached = {
            path: {int(line): tests for line, tests in by_line.items()}
            for path, by_line in told["reached"].items()
        }
        data = self._imports.get_data()
        imported = {path: set(data.lines(path) or ()) for path in data.measured_files()}
        return Record(told["seconds"], reached, told["failed"], imported)

    def _record(self, items: list[pytest.Item], file: Path) -> int:
        seconds: dict[str, float] = {}
        recorder = _recorder()
        recorder.start()
        for item, following in _with_next(items):
            recorder.switch_context(item.nodeid)
            began = time.process_time()
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            seconds[item.nodeid] = time.process_time() - began
        recorder.stop()
        data = recorder.get_data()
        reached = {path: data.contexts_by_lineno(path) for path in data.measured_files()}
        told = {"seconds": seconds, "reached": reached, "failed": self._failed}
        file.write_text(json.dumps(told), encoding="utf-8")
        return PASSED

    def _child(self, work: Callable[[], int]) -> int:
        """Does it in a child process that ends with what it returns; how that ended."""
        sys.stdout.flush()
        child = os.fork()
        if child:
            return os.waitpid(child, 0)[1]
        status = BROKEN
        try:
            self._quiet()
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, 1)
            os.dup2(nothing, 2)
            with tempfile.TemporaryDirectory(dir=self._directory) as directory:
                tempfile.tempdir = directory
                done = work()
            status = done
        finally:
            os._exit(status)


def _with_next(
    items: Sequence[pytest.Item],
) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    return zip(items, [*items[1:], None], strict=True)


def main() -> None:
    """Prints each survivor and the share that was killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=300, help="how many mutants")
    parser.add_argument("--seed", type=int, default=SEED, help="which of them")
    parser.add_argument(
        "--seconds",
        type=float,
        default=LIMIT_S,
        help="processor time for each mutant: nearly all that are noticed are so within 20",
    )
    parser.add_argument("--only", default="", help="of files whose path contains this")
    given = parser.parse_args()
    files = sorted(path for room in ROOMS for path in (PACKAGE / room).rglob("*.py"))
    every = [mutant for path in files if given.only in str(path) for mutant in mutants_of(path)]
    sample = random.Random(given.seed).sample(every, min(given.sample, len(every)))
    os.environ["HYPOTHESIS_PROFILE"] = "glance"
    os.chdir(ROOT)
    sys.path[:0] = paths = [str(ROOT / path) for path in PATHS]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    with tempfile.TemporaryDirectory() as directory:
        runner = Runner(sample, Path(directory), given.seconds)
        pytest.main(["-q", "-p", "no:cacheprovider", *LEFT_OUT, *TESTS], plugins=[runner])
    if runner.judged < len(sample):
        sys.exit("not every mutant was run: what is said above says nothing of the tests")
    survived = len(runner.survivors)
    share = 1 - survived / len(sample)
    print(f"{len(sample)} of {len(every)} mutants: {share:.1%} killed, {survived} survived")


if __name__ == "__main__":
    main()
