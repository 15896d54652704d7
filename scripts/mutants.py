"""Breaks the core in small ways, one at a time, and looks whether a fast test fails each time.

The mutations are mutmut's. Its own runner puts a trampoline in place of every function, which our
structs do not survive. Here the tests are collected once. A first child process runs them all and
records which lines each one reaches and how long it takes. Then each mutant has a child process
of its own, where the code of the function that it changes is exchanged, and the tests that reach
the changed lines run until one fails. What is worked out while modules are
imported is not changed by that: such a mutant has the tests of its room run on a copy of the
server.

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
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType

import coverage
import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from scripts.mutations import Mutant, mutants_of  # noqa: E402

PACKAGE = ROOT / "server/contextengine_server"
ROOMS = ("context", "session", "commands", "store")
TESTS = (
    *(f"tests/unit/{room}" for room in (*ROOMS, "engines")),
    "tests/contract",
    "tests/oracle",
    "tests/properties",
    "tests/unit/config/test_summarizer.py",
    "tests/unit/summarize/test_summary_text.py",
    "tests/unit/summarize/test_stored_states.py",
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
"""A test that takes longer is not run against mutants."""
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
        mutant: Mutant,
        tests: Sequence[pytest.Item],
        functions: Functions,
        seconds: dict[str, float],
    ) -> str:
        if not tests:
            return "survived"

        def run() -> int:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
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
            raise RuntimeError(f"no test could be run against {mutant.path}: {mutant.diff}")
        return "survived" if os.WEXITSTATUS(status) == PASSED else "killed"

    def _fate_of_import(self, mutant: Mutant) -> str:
        copy, room = self._directory / "copy", _room(mutant)
        if not copy.exists():
            shutil.copytree(ROOT / "server", copy)
        place = copy / mutant.path.relative_to(ROOT / "server")
        place.write_text(mutant.code, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
        paths = (str(copy), *(str(ROOT / path) for path in PATHS[1:]))
        try:
            done = subprocess.run(
                [*command, *LEFT_OUT, *TESTS_ANEW.get(room, (f"tests/unit/{room}",))],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                capture_output=True,
                timeout=LIMIT_ANEW_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "survived"
        finally:
            place.write_text(mutant.module.code, encoding="utf-8")
        return "killed" if done.returncode else "survived"

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
            began = time.monotonic()
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            seconds[item.nodeid] = time.monotonic() - began
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


class Functions:
    """The functions of the server as they are in memory, by the place of their code."""

    def __init__(self) -> None:
        self._living: dict[str, dict[tuple[str, int], list[FunctionType]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType):
                code = thing.__code__
                self._living[code.co_filename][_place(code)].append(thing)

    def exchange(self, mutant: Mutant) -> None:
        """Gives the functions of a file their changed code, also where the file is loaded later."""
        path = str(mutant.path)
        was, changed = (
            compile(code, path, "exec", dont_inherit=True)
            for code in (mutant.module.code, mutant.code)
        )
        for before, after in zip(_codes(was), _codes(changed), strict=True):
            if before != after:
                for function in self._living[path][_place(before)]:
                    function.__code__ = after
        _load_instead(path, changed)


def _load_instead(path: str, changed: CodeType) -> None:
    load = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        return changed if loader.path == path else load(loader, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of functions of a module and of its classes, not of those inside of functions."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if "__qualname__" in inner.co_names and not inner.co_flags & OPTIMIZED:
                yield from _codes(inner)
            else:
                yield inner


OPTIMIZED = 1
"""The flag of code that is a function's and not a class body's."""


def _place(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


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
