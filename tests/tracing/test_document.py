"""docs/tracing.md names every span and attribute that the server has, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import contextengine_server
from tests.tracing.jaeger import spans_of
from tests.tracing.test_turn import ANSWER

PACKAGE = Path(contextengine_server.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "tracing.md"
TRACING = PACKAGE / "telemetry" / "tracing.py"
CALL = "contextengine.v1.SERVICE/RPC"
ATTRIBUTE = re.compile(r"(contextengine|gen_ai|rpc|network|server|error)(\.[a-z_]+)+")


def table(heading: str) -> list[list[str]]:
    """The rows of a section's table."""
    section = (
        PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    )
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def spans() -> set[str]:
    """The names of spans in the docs."""
    return {row[0].strip("`") for row in table("Spans")}


def attributes() -> dict[str, set[str]]:
    """The spans that have it, by attribute; `call` is every server span, `any` every span."""
    return {
        row[0].strip("`"): {one.strip(" `") for one in row[1].split(",")}
        for row in table("Attributes")
    }


def opened() -> Iterator[str]:
    """The names of the spans that the server opens, as they are in its code."""
    for method, name in first_arguments():
        if method in ("span", "background"):
            yield name


def set_somewhere() -> Iterator[str]:
    """The attributes that the server sets, as they are in its code."""
    for method, name in first_arguments():
        if method == "set" and ATTRIBUTE.fullmatch(name):
            yield name
    for node in ast.walk(ast.parse(TRACING.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and ATTRIBUTE.fullmatch(node.value)
        ):
            yield node.value


def first_arguments() -> Iterator[tuple[str, str]]:
    """The methods called, each with the text that its first argument is or begins with; a model's
    name is MODEL."""
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                text = "".join(written(node.args[0]))
                if text:
                    yield node.func.attr, text


def written(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            for part in parts:
                yield from ["MODEL"] if isinstance(part, ast.FormattedValue) else written(part)
        case ast.Call(func=ast.Attribute(value=inner)):
            yield from written(inner)


def test_every_span_is_in_the_docs() -> None:
    assert {CALL, *opened()} == spans()


def test_every_attribute_is_in_the_docs() -> None:
    assert set(set_somewhere()) == set(attributes())


def test_the_page_says_what_is_in_its_picture() -> None:
    spans = [span for span in spans_of(ANSWER) if span.service == "contextengine"]
    assert spans
    assert [wrong for span in spans for wrong in not_in_the_docs(span.name, span.attributes)] == []


def not_in_the_docs(name: str, found: Iterable[str]) -> list[str]:
    """What the docs do not say of a span: its name, or the attributes found on it."""
    name = CALL if name.startswith("contextengine.v1.") else name
    name = "chat MODEL" if name.partition(" ")[0] == "chat" else name
    known, on = attributes(), {"call" if name == CALL else name, "any"}
    wrong = [] if name in spans() else [name]
    return wrong + [f"{name}: {key}" for key in found if not known.get(key, set()) & on]
