"""What a file of the repository refers to is in the repository: pages, their sections, numbered
sections of a page that has them, and modules of the server with what stands in them."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KINDS = {".py", ".proto", ".md", ".go", ".ts", ".java", ".rs", ".toml", ".yaml", ".yml", ".json"}
RECORDED = ("tests/data/", "generated/")
LOCK = "package-lock.json"
"""What was recorded or made by tools."""

ELSEWHERE = {
    "AGENTS.md",
    "docs/reference/session-management-compaction.md",  # OpenClaw's
    "build/notes.md",  # made by the release
    "notes.md",
}
"""Pages that are not of this repository, each named together with whose it is."""

PAGE = re.compile(r"(?<![\w.*{-])/?((?:\.{1,2}/)?(?:[\w.-]+/)*[\w-]+\.md)(?:#([\w-]+))?(?![\w/])")
ADDRESS = re.compile(r"https?://\S+")
SECTION = re.compile(r"§ ?\d")
NUMBERED = "clients/README.md"
"""The one page whose headings have numbers."""


def files() -> Iterator[Path]:
    """The texts that people of this project wrote."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.split("\0"):
        path = ROOT / name
        written = path.name != LOCK and not name.startswith(RECORDED)
        if path.suffix in KINDS and path.is_file() and written:
            yield path


FILES = list(files())


@cache
def anchors(page: Path) -> frozenset[str]:
    """The sections of a page, as links name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return frozenset(
        re.sub(r"[^\w -]", "", re.sub(r"\[(.+?)\]\(.+?\)", r"\1", heading).lower()).replace(
            " ", "-"
        )
        for heading in headings
    )


def wrong_references(path: Path, text: str) -> list[str]:
    """What the text refers to and is not there."""
    wrong = []
    for name, section in PAGE.findall(ADDRESS.sub("", text)):
        places = (path.parent / name, ROOT / name, ROOT / "docs" / name, ROOT / ".github" / name)
        page = next((place for place in places if place.is_file()), None)
        if page is None and name not in ELSEWHERE:
            wrong.append(f"{name} is not in the repository")
        elif page is not None and section and section not in anchors(page):
            wrong.append(f"{name} has no section #{section}")
    if path != ROOT / NUMBERED:
        wrong += [
            f"a section by its number, without a page that has numbers: {line.strip()[:100]}"
            for line in text.splitlines()
            if SECTION.search(line) and NUMBERED not in line
        ]
    return wrong


def test_whatever_is_referred_to_is_there() -> None:
    assert len(FILES) > 500
    found = {
        str(path.relative_to(ROOT)): wrong
        for path in FILES
        if path != Path(__file__) and (wrong := wrong_references(path, path.read_text("utf-8")))
    }
    assert not found


@pytest.mark.parametrize(
    "text",
    [
        "as contract.md says",
        "see design.md",
        "(docs/semantics.md#no-such-section)",
        "(contract §3, `live`)",
        "see § 4 of the design",
    ],
)
def test_a_reference_that_leads_nowhere_is_found(text: str) -> None:
    assert wrong_references(ROOT / "server" / "one.py", text)


@pytest.mark.parametrize(
    "text",
    ["docs/semantics.md#live-lists", "[api](../docs/api.md)", "clients/README.md §5", "AGENTS.md"],
)
def test_a_reference_that_leads_somewhere_is_none(text: str) -> None:
    assert not wrong_references(ROOT / "server" / "one.py", text)


SERVER = ROOT / "server" / "contextengine_server"
PACKAGE = "contextengine_server"
MODULES = frozenset(f"/{path.relative_to(ROOT)}" for path in FILES if path.suffix == ".py")

FOREIGN = {
    "src/app.py",  # an example of what is searched for
    "src/app/main.py",  # the same
    "tiktoken_ext/openai_public.py",  # tiktoken's
    "mistral_common/protocol/instruct/validator.py",  # mistral-common's
}
"""Modules of others, and made up."""

MODULE_FILE = re.compile(r"(?<![\w./:@-])((?:[\w-]+/)+\w+\.py)\b")
ROOMS = sorted({path.name.removesuffix(".py") for path in SERVER.iterdir()} - {"__pycache__"})
DOTTED = re.compile(rf"`((?:{PACKAGE}\.)?(?:{'|'.join(ROOMS)})(?:\.\w+)+)(?:\(\))?`")
SETTINGS = frozenset(
    re.findall(r"^\| `([\w.]+)` \|", (ROOT / "docs/configuration.md").read_text("utf-8"), re.M)
)
"""Settings have paths that look like a module's name."""


def naming(path: Path) -> bool:
    """Whether a file is of those that tell a reader where something stands."""
    place = str(path.relative_to(ROOT))
    return path.suffix in (".md", ".py") and not place.startswith(("tests/", "clients/"))


@cache
def names_in(module: Path) -> frozenset[str]:
    """What a module defines or imports at its top, and what its classes have."""
    if not module.is_file():  # a folder without a word of its own
        return frozenset()
    names: set[str] = set()
    todo = list(ast.parse(module.read_text(encoding="utf-8")).body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
            todo += node.body
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {one.id for one in node.targets if isinstance(one, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {one.asname or one.name for one in node.names}
    return frozenset(names)


def is_there(dotted: str) -> bool:
    """Whether a dotted name is a room, a module, or something that stands in one."""
    parts = dotted.removeprefix(f"{PACKAGE}.").split(".")
    place = SERVER
    for index, part in enumerate(parts):
        module = place / f"{part}.py"
        if module.is_file():
            return set(parts[index + 1 :]) <= names_in(module)
        if not (place / part).is_dir():
            return set(parts[index:]) <= names_in(place / "__init__.py")
        place /= part
    return True


def wrong_modules(path: Path, text: str) -> list[str]:
    """The modules that a file names and that are not there. Pages of docs/ speak of settings and of
    what other systems call theirs, so dotted names are looked at elsewhere alone."""
    files = {name for name in MODULE_FILE.findall(ADDRESS.sub("", text)) if name not in FOREIGN}
    gone = [name for name in files if not any(one.endswith(f"/{name}") for one in MODULES)]
    if path.parent == ROOT / "docs":
        return sorted(gone)
    dotted = {name for name in DOTTED.findall(text) if name not in SETTINGS}
    return sorted([*gone, *(name for name in dotted if not is_there(name.removesuffix(".py")))])


def test_whatever_module_is_named_is_there() -> None:
    named = [path for path in FILES if naming(path)]
    assert len(named) > 300
    found = {
        str(path.relative_to(ROOT)): wrong
        for path in named
        if (wrong := wrong_modules(path, path.read_text("utf-8")))
    }
    assert not found


@pytest.mark.parametrize(
    "text",
    [
        "see context/folding.py",
        "`context.folding`",
        "`context.fold.no_such_name`",
        "`contextengine_server.config.load_settings`",
    ],
)
def test_a_module_that_is_gone_is_found(text: str) -> None:
    assert wrong_modules(ROOT / "server" / "one.py", text)


@pytest.mark.parametrize(
    "text",
    ["context/fold.py", "`context.fold.extend`", "`store.protocols.Store`", "`store.url`"],
)
def test_a_module_that_is_there_is_not(text: str) -> None:
    assert not wrong_modules(ROOT / "server" / "one.py", text)
