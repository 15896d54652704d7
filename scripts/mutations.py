"""The small breaks that can be made in a file: mutmut's, in the bodies of functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators

Positions = dict[cst.CSTNode, CodeRange]

STATEMENT = re.compile(
    r"\b(SELECT|INSERT|UPDATE|DELETE|FROM|WHERE|AND|ORDER|LIMIT|SET|VALUES|ON|PRAGMA|BEGIN|COMMIT|ROLLBACK|SAVEPOINT)\b"
)
"""What a text of SQL holds."""
CODEC = '"utf-8"'
"""Names the encoding in capitals as well."""
MIGRATIONS = "migrations"
"""The folder of those that were released."""
SILENT = {"create_task": "name", "Thread": "name", "zip": "strict"}
"""Arguments that no input tells from others, by what is called: a name is for whoever looks at a
running process with a debugger, and `strict` asserts that what is joined is of one length."""


COLUMN, NULLABLE, KEY = "Column", "nullable", "primary_key"
"""SQLAlchemy writes NOT NULL for a column where `nullable` is false in whatever way (None is, as
False is), and where nothing is said of a column of the primary key."""


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    path: Path
    module: cst.Module
    node: cst.CSTNode
    changed: cst.CSTNode
    lines: range
    """Of the statement that it changes."""

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
    wrapper = MetadataWrapper(
        cst.parse_module(path.read_text(encoding="utf-8")), unsafe_skip_copy=True
    )
    positions: Positions = dict(wrapper.resolve(PositionProvider))
    return [
        Mutant(path, wrapper.module, node, changed, lines)
        for node, lines in _inside_functions(wrapper.module, positions)
        for kind, operator in mutation_operators
        if isinstance(node, kind)
        for changed in operator(node)
        if not _says_the_same(node, changed, names_only=MIGRATIONS in path.parts)
    ]


def _says_the_same(node: cst.CSTNode, changed: cst.CSTNode, *, names_only: bool) -> bool:
    """True where a silent argument is another; where a column refuses NULL as before; or where SQL,
    or an encoding's name, is in other letters: capitals mean nothing in them, and what a name of a
    parameter would break by them, a wrong name breaks as well.
    `names_only`: all texts are names of tables, columns and indexes."""
    if isinstance(node, cst.Call) and isinstance(changed, cst.Call) and _called(node) in SILENT:
        silent = SILENT[_called(node)]
        return _arguments(node, silent) == _arguments(changed, silent)
    if isinstance(node, cst.Call) and isinstance(changed, cst.Call) and _called(node) == COLUMN:
        same = _arguments(node, NULLABLE) == _arguments(changed, NULLABLE)
        return same and _refuses_null(node) and _refuses_null(changed)
    if not isinstance(node, cst.SimpleString) or not isinstance(changed, cst.SimpleString):
        return False
    same = node.value.casefold() == changed.value.casefold()
    return same and (names_only or node.value == CODEC or STATEMENT.search(node.value) is not None)


def _arguments(call: cst.Call, but: str) -> list[tuple[str, str]]:
    """What is given besides the argument of that name."""
    named = ((arg.keyword.value if arg.keyword else "", arg.value) for arg in call.args)
    return [(name, cst.Module([]).code_for_node(one)) for name, one in named if name != but]


def _refuses_null(column: cst.Call) -> bool:
    """Whether a column is made NOT NULL."""
    said = {arg.keyword.value: arg.value for arg in column.args if arg.keyword}
    key, nullable = (
        value.value if isinstance(value, cst.Name) else ""
        for value in (said.get(KEY), said.get(NULLABLE))
    )
    return nullable in ("False", "None") or (NULLABLE not in said and key == "True")


def _inside_functions(
    module: cst.Module, positions: Positions
) -> Iterator[tuple[cst.CSTNode, range]]:
    """The nodes of function bodies, without docstrings, annotations, what is logged and silent
    arguments, each with the lines of its statement."""
    todo: list[tuple[cst.CSTNode, range | None]] = [(module, None)]
    unseen: set[int] = set()
    while todo:
        node, lines = todo.pop()
        if isinstance(node, cst.Annotation | cst.Decorator):
            continue
        if isinstance(node, cst.Expr) and isinstance(node.value, cst.SimpleString):
            continue
        if isinstance(node, cst.Call) and cst.Module([]).code_for_node(node.func)[:4] == "log.":
            continue
        if isinstance(node, cst.Arg) and id(node) in unseen:
            continue
        if isinstance(node, cst.Call) and _called(node) in SILENT:
            silent = SILENT[_called(node)]
            unseen |= {id(arg) for arg in node.args if arg.keyword and arg.keyword.value == silent}
        if lines is not None:
            if isinstance(node, cst.SimpleStatementLine | cst.BaseCompoundStatement):
                lines = _lines(node, positions)
            yield node, lines
        if isinstance(node, cst.FunctionDef):
            todo.append((node.body, _lines(node, positions)))
            continue
        todo += [(child, lines) for child in node.children]


def _called(call: cst.Call) -> str:
    """The last part of the name of what is called."""
    name = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    return name.value if isinstance(name, cst.Name) else ""


def _lines(statement: cst.CSTNode, positions: Positions) -> range:
    """The lines of a statement; of a compound one, those before its body."""
    place = positions[statement]
    start, end = place.start.line, place.end.line
    if isinstance(statement, cst.BaseCompoundStatement) and not isinstance(statement, cst.Match):
        end = max(start, positions[statement.body].start.line - 1)
    return range(start, end + 1)
