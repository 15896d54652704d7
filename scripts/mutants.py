"""Breaks the core in small ways, one at a time, and looks whether a fast test fails each time.

The mutations are mutmut's. Its own runner puts a trampoline in place of every function, which our
structs do not survive; here a copy of the server holds one mutant at a time.

    python scripts/mutants.py --sample 300
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

import libcst as cst
from mutmut.mutation.mutators import mutation_operators

ROOT = Path(__file__).parent.parent
PACKAGE = Path("server/contextengine_server")
ROOMS = ("context", "session", "commands", "store")
TESTS = (
    *(f"tests/unit/{room}" for room in ROOMS),
    "tests/properties",
    "tests/contract",
)
SEED = 20_260
TIMEOUT_S = 900
"""A mutant that loops counts as killed: nobody would miss it."""


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    path: Path
    module: cst.Module
    node: cst.CSTNode
    changed: cst.CSTNode

    @property
    def code(self) -> str:
        """The file with the change."""
        mutated = self.module.deep_replace(self.node, self.changed)
        assert isinstance(mutated, cst.Module)
        return mutated.code

    @property
    def diff(self) -> str:
        """The change."""
        before, after = self.module.code.splitlines(), self.code.splitlines()
        return "\n".join(list(unified_diff(before, after, n=0, lineterm=""))[2:])


def mutants_of(path: Path) -> list[Mutant]:
    """Every mutant of the functions of a file."""
    module = cst.parse_module((ROOT / path).read_text(encoding="utf-8"))
    return [
        Mutant(path, module, node, changed)
        for node in _inside_functions(module)
        for kind, operator in mutation_operators
        if isinstance(node, kind)
        for changed in operator(node)
    ]


def _inside_functions(module: cst.Module) -> Iterator[cst.CSTNode]:
    """The nodes of function bodies, without docstrings, annotations and what is logged."""
    todo: list[tuple[cst.CSTNode, bool]] = [(module, False)]
    while todo:
        node, inside = todo.pop()
        if isinstance(node, cst.Annotation | cst.Decorator):
            continue
        if isinstance(node, cst.Expr) and isinstance(node.value, cst.SimpleString):
            continue
        if isinstance(node, cst.Call) and cst.Module([]).code_for_node(node.func)[:4] == "log.":
            continue
        if inside:
            yield node
        if isinstance(node, cst.FunctionDef):
            todo.append((node.body, True))
            continue
        todo += [(child, inside) for child in node.children]


def fails(copy: Path) -> bool:
    """Whether a test fails on a copy of the server."""
    paths = (copy / "server", ROOT / "clients/python", ROOT / "generated/python", ROOT)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *TESTS]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def killed(mutant: Mutant, copy: Path) -> bool:
    """Whether a test fails on the copy while it holds the mutant."""
    place = copy / mutant.path
    before = place.read_text(encoding="utf-8")
    place.write_text(mutant.code, encoding="utf-8")
    try:
        return fails(copy)
    finally:
        place.write_text(before, encoding="utf-8")


def main() -> None:
    """Prints each survivor and the share that was killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=300, help="how many mutants")
    parser.add_argument("--seed", type=int, default=SEED, help="which of them")
    given = parser.parse_args()
    files = sorted(
        path.relative_to(ROOT) for room in ROOMS for path in (ROOT / PACKAGE / room).rglob("*.py")
    )
    every = [mutant for path in files for mutant in mutants_of(path)]
    sample = random.Random(given.seed).sample(every, min(given.sample, len(every)))
    survived = 0
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory)
        shutil.copytree(ROOT / "server", copy / "server")
        if fails(copy):
            sys.exit("the tests fail without any mutant: what they say of mutants means nothing")
        for mutant in sample:
            if not killed(mutant, copy):
                survived += 1
                print(f"survived: {mutant.path}\n{mutant.diff}\n", flush=True)
    share = 1 - survived / len(sample)
    print(f"{len(sample)} of {len(every)} mutants: {share:.1%} killed, {survived} survived")


if __name__ == "__main__":
    main()
