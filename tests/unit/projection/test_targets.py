"""The table of targets: each has its record, its name and its place in the documentation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from contextengine_server.projection import anthropic, codex
from contextengine_server.projection.model import ChatRole, Item, Text
from contextengine_server.projection.projection import Projection
from contextengine_server.projection.target import RequestBody, Target
from contextengine_server.projection.targets import OWN, Targets
from contextengine_server.projection.task import Task

DOCS = Path("docs/projection.md")


def test_every_target_is_documented_under_its_name_and_title() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| ([^|]+) \| [^|]+ \|$", DOCS.read_text(), re.MULTILINE)
    assert dict(rows) == {target.name: target.title for target in OWN}


def test_a_target_is_found_by_its_name_and_its_number() -> None:
    targets = Targets()
    assert targets.names == [target.name for target in targets]
    for target in targets:
        assert targets.named(target.name) is targets.numbered(target.number) is target
    assert targets.named("markdown") is None
    assert targets.numbered(0) is None


def test_targets_without_a_number_are_asked_for_by_name_alone() -> None:
    own = [replace(anthropic.TARGET, name=name, number=0) for name in ("mistral", "cohere")]
    targets = Targets([*OWN, *own])
    assert targets.names[-2:] == ["mistral", "cohere"]
    assert targets.numbered(0) is None
    assert targets.named("cohere") is own[1]


def test_two_targets_of_one_name_or_number_are_refused() -> None:
    with pytest.raises(ValueError, match="two targets of the name codex"):
        Targets([*OWN, replace(anthropic.TARGET, name="codex", number=0)])
    with pytest.raises(ValueError, match="two targets of the number 4"):
        Targets([*OWN, replace(anthropic.TARGET, name="claude")])


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({"name": ""}, "the name of a target"),
        ({"name": "Open AI"}, "the name of a target"),
        ({"name": "x" * 64}, "the name of a target"),
        ({"title": "  "}, "has no title"),
        ({"renderers": ("jsonl", "")}, "no proper name"),
    ],
)
def test_a_record_that_cannot_be_is_refused(changed: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        replace(anthropic.TARGET, **changed)


def test_the_first_renderer_is_the_default() -> None:
    task = Task(items=[Item(ChatRole.USER, (Text("x"),))], budget=9_000, epoch="e1")
    default = codex.TARGET.project(task)
    assert default == codex.TARGET.project(replace(task, renderer="jsonl"))
    assert default != codex.TARGET.project(replace(task, renderer="openclaw"))
    assert anthropic.TARGET.renderer_names == ("anthropic",)


@pytest.mark.parametrize(
    ("body", "sent", "wanted"),
    [
        (RequestBody(), Projection(messages_json=b"[1]"), {"messages": [1]}),
        (RequestBody("contents"), Projection(messages_json=b"[]"), {"contents": []}),
        (
            RequestBody("input", "instructions"),
            Projection(messages_json=b"[]", system_json=b'"s"'),
            {"instructions": "s", "input": []},
        ),
    ],
)
def test_a_body_is_made_of_what_a_projection_answers(body, sent, wanted) -> None:
    assert body(sent) == wanted


def test_every_field_of_a_record_is_documented() -> None:
    table = DOCS.read_text().partition("| field | what it says |")[2].partition("\n\n")[0]
    named = {
        name
        for row in re.findall(r"^\| (`.+?`) \| ", table, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }
    assert named == set(Target.__struct_fields__)
