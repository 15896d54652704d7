"""The house keeps its plan: imports point down as ARCHITECTURE.md says, the core is pure, and no
file outgrows its reader."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextengine_server.plugins.engines import installed_engines

ROOT = Path(__file__).parent.parent.parent
PACKAGE = "contextengine_server"
SERVER = ROOT / "server" / PACKAGE
GENERATED = "contextengine_proto"
CLIENT = "contextengine"

# What each room may import of ours. A dotted name is one module of a room, and no more of it.
BELOW: dict[str, set[str]] = {
    "context": set(),
    "tokens": set(),
    "telemetry": set(),
    "usage": {"tokens"},
    "projection": {"context.message"},
    "errors": set(),
    "fairness": set(),
    "notices": set(),
    "slices": {"context.work", "fairness"},
    "store": {"context.scope", "fairness"},
    # A store over another: sessions that nobody uses are in object storage.
    "archive": {"context.scope", "store", "errors"},
    "memory": {"context", "store", "summarize", "telemetry", "errors", "recall", "notices"},
    "engines": {"context", "errors", "config.schema", "memory.extraction"},
    "wire": {"context", "tokens", "errors", "store.rows", "notices", GENERATED},
    "summarize": {"context", "tokens", "telemetry", "fairness", "notices"},
    "recall": {"context", "wire", "store", "tokens", "errors", GENERATED},
    "session": {
        "memory", "config.policy", "config.schema", "context", "wire", "store", "tokens", "engines",
        "summarize", "recall", "telemetry", "errors", "usage", "fairness", "slices", GENERATED,
    },
    "compaction": {
        "memory", "context", "wire", "store", "tokens", "engines", "summarize", "session",
        "telemetry",
        "errors", "fairness", "slices", "notices", GENERATED,
    },
    "runtime": {"store", "summarize", "telemetry"},
    "commands": {
        "memory", "context", "wire", "store", "tokens", "summarize", "engines", "recall", "session",
        "compaction", "health", "config.policy", "fairness", "slices",
        "telemetry", "errors", "archive", GENERATED,
    },
    # Looks at every room and is looked at by none but those above.
    "health": {
        "archive", "compaction", "config", "context", "engines", "errors", "recall", "runtime",
        "session", "store", "summarize", "telemetry", "tokens", "wire", "slices", GENERATED,
    },
    "api": {
        "memory", "config.policy", "context", "wire", "store", "tokens", "summarize", "engines",
        "recall", "session",
        "compaction", "commands", "runtime", "health", "telemetry", "errors",
        "projection", "fairness", "slices", GENERATED,
    },
    # Settings are made of what rooms say of their own: the options of engines, the rules of
    # budgets.
    "config": {"context", "engines", "memory", "plugins", "tokens", "errors", "usage", "fairness"},
    "plugins": {"engines", "projection", "store"},
}  # fmt: skip
TOP = {"app", "wiring", "metric_readers", "cli", "testing", "__init__", "__main__"}
"""The composition root, the commands, and the suites that run whole servers: they know all."""

IMPURE = {
    "asyncio", "grpc", "io", "logging", "os", "pathlib", "random", "secrets", "socket", "sqlite3",
    "subprocess", "sys", "tempfile", "threading", "time", "uuid", GENERATED, "google",
}  # fmt: skip
"""What the pure core does without: I/O, gRPC types, clocks, randomness."""

FILES = sorted(SERVER.rglob("*.py"))
PLAN = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
OTHERS = {"generated code": GENERATED, "the Python client": CLIENT}
"""What the plan calls packages that are no rooms."""


def imports(path: Path) -> Iterator[str]:
    """The full names of the modules that a file imports, wherever in it."""
    package = (PACKAGE, *path.relative_to(SERVER).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            near = package[: len(package) - node.level + 1] if node.level else ()
            origin = ".".join((*near, *((node.module,) if node.module else ())))
            # `from . import a` and `from package import room` name modules; the name of a class
            # does no harm here.
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def calls(path: Path) -> set[str]:
    """The functions that a file calls, and the methods that tell the time."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    methods = {func.attr for func in called if isinstance(func, ast.Attribute)}
    return {func.id for func in called if isinstance(func, ast.Name)} | (
        methods & {"now", "utcnow", "today"}
    )


def room_of(path: Path) -> str:
    return path.relative_to(SERVER).parts[0].removesuffix(".py")


def ours(name: str) -> str | None:
    """An imported module as the table names it; None where it is not ours."""
    first, _, rest = name.partition(".")
    if first == PACKAGE:
        return rest
    return first if first in (GENERATED, CLIENT) else None


def allowed(room: str, target: str) -> bool:
    if room in TOP or target.partition(".")[0] == room:
        return True
    return any(target == name or target.startswith(f"{name}.") for name in BELOW[room])


def test_the_search_finds_what_is_there() -> None:
    found = {name for path in FILES for name in imports(path)}
    assert f"{PACKAGE}.context.fold.extend" in found
    assert f"{PACKAGE}.context.laws.case.Case" in found
    assert len(FILES) > 50


def test_every_room_has_its_place() -> None:
    assert {room_of(path) for path in FILES} <= set(BELOW) | TOP
    rows = PLAN.split("## The ideas")[0]
    named = set(re.findall(r"`(\w+)(?:/|\.py)`", rows))
    assert set(BELOW) | TOP - {"__init__", "__main__"} <= named
    assert {room_of(path) for path in FILES} - {"__init__"} <= named


@pytest.mark.parametrize("room", sorted(BELOW))
def test_the_plan_says_what_a_room_may_import(room: str) -> None:
    [said] = re.findall(rf"^\| `{room}(?:/|\.py)` \|.*\| ([^|]+) \|$", PLAN, re.MULTILINE)
    given = set(re.findall(r"`([\w.]+)`", said))
    given |= {name for words, name in OTHERS.items() if words in said}
    assert given == BELOW[room], said


@pytest.mark.parametrize("room", sorted(BELOW))
def test_imports_point_down(room: str) -> None:
    wrong = [
        f"{path.relative_to(SERVER)} imports {name}"
        for path in FILES
        if room_of(path) == room
        for name in imports(path)
        if (target := ours(name)) is not None and not allowed(room, target)
    ]
    assert not wrong, "\n".join(wrong)


def test_what_is_below_is_below() -> None:
    """The table itself has no way back up."""
    for room, below in BELOW.items():
        for name in below - {GENERATED, CLIENT}:
            seen, todo = set(), [name.split(".")[0]]
            while todo:
                at = todo.pop()
                if at not in seen:
                    seen.add(at)
                    # One module of data classes does not bring its room along.
                    todo += (
                        [n for n in BELOW[at] - {GENERATED, CLIENT} if "." not in n]
                        if "." not in name
                        else []
                    )
            assert room not in seen, (room, name)


@pytest.mark.parametrize("room", ["context", "projection"])
def test_pure_rooms_are_pure(room: str) -> None:
    for path in FILES:
        if room_of(path) == room:
            for name in imports(path):
                assert name.partition(".")[0] not in IMPURE, f"{path.name} imports {name}"
                if name.startswith(PACKAGE):
                    pure = {room, *BELOW[room]}
                    assert any(name.startswith(f"{PACKAGE}.{one}.") for one in pure), name
            assert not (
                calls(path) & {"now", "utcnow", "today", "open", "input", "print", "eval", "exec"}
            ), path.name


def test_the_suites_are_for_tests_alone() -> None:
    """No server that serves imports pytest, which need not be installed beside it."""
    for path in FILES:
        if room_of(path) != "testing":
            for name in imports(path):
                assert name.partition(".")[0] not in ("pytest", "pytest_asyncio", "hypothesis"), (
                    path
                )
                assert not name.startswith(f"{PACKAGE}.testing"), path


def test_the_generated_types_stay_at_the_edge() -> None:
    for path in FILES:
        if room_of(path) in ("context", "engines", "store", "tokens", "summarize", "projection"):
            assert not any(
                name.partition(".")[0] in (GENERATED, "grpc") for name in imports(path)
            ), path


NOUNS = {
    "encoding": "of text as tokens",
    "mapping": "what YAML calls its names with values",
    "pending": "calls that wait for a result: the name of a law",
    "reasoning": "what a model thought: the name of a law",
    "testing": "the suites, as libraries call theirs",
    "tracing": "with OpenTelemetry",
    "wiring": "of rooms, put together by the composition root",
}
"""Words that end like a gerund and name a thing of the field, each with what it is."""


def test_modules_are_named_by_nouns() -> None:
    """A gerund says that something is done, and neither what it is done to nor what comes of it."""
    named = {part.removesuffix(".py") for path in FILES for part in path.relative_to(SERVER).parts}
    assert {name for name in named if name.split("_")[-1].endswith("ing")} == set(NOUNS)


def test_a_class_has_its_name_to_itself() -> None:
    """Whoever reads a name, or searches for it, finds one meaning."""
    homes: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path.relative_to(SERVER)))
    shared = {name: places for name, places in homes.items() if len(places) > 1}
    assert not shared


def test_a_file_can_be_read_at_one_sitting() -> None:
    long = {
        str(path.relative_to(SERVER)) for path in FILES if len(path.read_text().splitlines()) > 400
    }
    assert not long


NEUTRAL = ("session", "compaction", "commands", "api", "summarize", "runtime", "health", "recall")
"""What serves every engine alike knows none by name."""


@pytest.mark.parametrize("room", NEUTRAL)
def test_no_engine_is_named_where_all_are_served(room: str) -> None:
    """Neither by its module nor by its id."""
    names = {one.id for one in installed_engines().registrations if one.owner == "core"}
    for path in FILES:
        if room_of(path) != room:
            continue
        for name in imports(path):
            parts = (ours(name) or "").split(".")
            assert not (parts[0] == "engines" and names & set(parts)), f"{path} imports {name}"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        said = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        assert not names & {text for text in said if isinstance(text, str)}, path


def _loaded_at_import(path: Path) -> Iterator[str]:
    """The modules of ours that a file imports outside its functions, for types alone as well."""
    package = (PACKAGE, *path.relative_to(SERVER).parts[:-1])
    modules = {name_of(file) for file in FILES}
    body = ast.parse(path.read_text(encoding="utf-8")).body
    nodes = [*body, *(inner for node in body if isinstance(node, ast.If) for inner in node.body)]
    for node in nodes:
        if not isinstance(node, ast.ImportFrom):
            continue
        near = package[: len(package) - node.level + 1] if node.level else ()
        origin = ".".join((*near, *((node.module,) if node.module else ())))
        for alias in node.names:
            named = f"{origin}.{alias.name}"
            yield named if named in modules else origin


def name_of(path: Path) -> str:
    """A module's full name; a package's own."""
    parts = path.relative_to(SERVER).with_suffix("").parts
    return ".".join((PACKAGE, *(part for part in parts if part != "__init__")))


def test_no_imports_run_in_circles() -> None:
    """Inside rooms as well: a module knows nothing of what knows it."""
    arrows = {name_of(path): set(_loaded_at_import(path)) for path in FILES}
    done: set[str] = set()

    def walk(module: str, way: tuple[str, ...]) -> None:
        if module in way:
            circle = " -> ".join((*way[way.index(module) :], module))
            raise AssertionError(circle)
        if module in done:
            return
        for below in sorted(arrows.get(module, ())):
            if below != module and not module.startswith(f"{below}."):
                walk(below, (*way, module))
        done.add(module)

    for module in sorted(arrows):
        walk(module, ())


@pytest.mark.parametrize(
    "folder", sorted({path.parent for path in FILES}), ids=lambda f: str(f.relative_to(SERVER))
)
def test_a_room_can_be_overlooked(folder: Path) -> None:
    if folder.relative_to(SERVER).parts[:1] != ("projection",):
        modules = [path for path in FILES if path.parent == folder and path.stem != "__init__"]
        assert len(modules) <= 20


def test_servicers_reach_no_store() -> None:
    """They read requests, run commands and write replies; what a row looks like they may know."""
    known = tuple(f"{PACKAGE}.store.{module}" for module in ("rows", "model_jobs", "errors"))
    for path in FILES:
        if room_of(path) == "api":
            for name in imports(path):
                assert not name.startswith(f"{PACKAGE}.store.") or name.startswith(known), (
                    f"{path.relative_to(SERVER)} imports {name}"
                )


def test_every_command_has_its_unit_tests() -> None:
    """Beside those over the wire: a module of commands that runs something has a module of tests
    at the same place."""
    commands, tests = SERVER / "commands", ROOT / "tests" / "unit" / "commands"
    ran = set()
    for path in commands.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        if any(isinstance(one, functions) and one.name == "run" for c in classes for one in c.body):
            place = path.relative_to(commands)
            ran.add(place)
            assert (tests / place.with_name(f"test_{place.name}")).exists(), place
    assert len(ran) > 25
