"""The pages whose tables come from the code are current, and links in all of them lead
somewhere."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextengine_proto.v1 import errors_pb2
from contextengine_server.api.pipeline.errors import CODES
from contextengine_server.context import lawful, layout, settled
from contextengine_server.engines.contract import event_name
from contextengine_server.telemetry.event_names import EVENTS
from tests.acceptance.shell import ROOT

SERVER = ROOT / "server"
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("*.md"))]


def test_the_generated_pages_are_current() -> None:
    words = [sys.executable, str(ROOT / "scripts" / "gen_docs.py"), "--check"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(
        r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")
    ):
        assert (page.parent / target).exists(), target


def test_what_the_guide_for_engines_names_is_there() -> None:
    page = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)\(", page.partition("## To be lawful")[2], re.MULTILINE)
    assert len(rows) >= 6
    for name in rows:
        assert any(hasattr(room, name) for room in (lawful, layout, settled)), name


def test_every_reason_of_the_contract_has_a_status_and_none_besides() -> None:
    reasons = {
        name.removeprefix("ERROR_REASON_")
        for name in errors_pb2.ErrorReason.DESCRIPTOR.values_by_name
    }
    assert CODES.keys() == reasons - {"UNSPECIFIED"}


def emitted() -> Iterator[str]:
    """What each place that emits an event calls it, as a pattern."""
    for path in sorted(SERVER.rglob("*.py")):
        module = ".".join(path.relative_to(SERVER).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "emit"
                # What another server emitted is held under the name that it has.
                and all(given.arg != "told" for given in node.keywords)
            ):
                yield pattern_of(node.args[0], module)
    yield re.escape(importlib.import_module("contextengine_server.telemetry.events").GAP)


def pattern_of(name: ast.expr, module: str) -> str:
    """A name as it is written, or by a constant; what is put in stands for any word."""
    if isinstance(name, ast.Name):
        return re.escape(str(getattr(importlib.import_module(module), name.id)))
    if isinstance(name, ast.JoinedStr):
        parts = (
            re.escape(str(part.value)) if isinstance(part, ast.Constant) else r"\w+"
            for part in name.values
        )
        return "".join(parts)
    if isinstance(name, ast.Call):
        assert isinstance(name.func, ast.Name), ast.dump(name)
        assert name.func.id == event_name.__name__
        return event_name(r"\w+", ast.literal_eval(name.args[1]))
    assert isinstance(name, ast.Constant), ast.dump(name)
    return re.escape(str(name.value))


def test_every_event_is_listed_and_every_listed_one_is_emitted() -> None:
    patterns = set(emitted())
    assert len(patterns) > 15
    for pattern in patterns:
        assert any(re.fullmatch(pattern, name) for name in EVENTS), pattern
    for name in EVENTS:
        assert any(re.fullmatch(pattern, name) for pattern in patterns), name


def test_the_protos_list_every_event() -> None:
    text = (ROOT / "proto" / "contextengine" / "v1" / "sessions.proto").read_text(encoding="utf-8")
    comment = text.partition("// Its name: ")[2].partition("string name")[0]
    assert set(re.findall(r"`(\w+:\w+)`", comment)) - {"context:dag_compacted"} == EVENTS.keys()
