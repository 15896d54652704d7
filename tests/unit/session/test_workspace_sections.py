"""Sections of a workspace's files, by their headings."""

from __future__ import annotations

import pytest

from contextengine_server.session.assembly.whereabouts import SECTIONS
from contextengine_server.session.rehydration.workspace import (
    CUT,
    MAX_CHARS,
    WorkspaceFile,
    sections_of,
)

FENCES = [("```", "```"), ("~~~~ md", "~~~~~"), ("```py", "```")]


def found(text: str, *names: str) -> list[str]:
    return [said for _, said in sections_of([WorkspaceFile("AGENTS.md", text)], names or SECTIONS)]


@pytest.mark.parametrize(
    "heading",
    ["## Red Lines", "### red lines", "  ##  RED LINES  ##", "##\tRed Lines", "### Red Lines ###"],
)
def test_a_heading_of_level_two_or_three_names_it(heading: str) -> None:
    assert found(f"# All\nno\n{heading}\nyes\n## Other\nno") == [f"{heading}\nyes".strip()]


@pytest.mark.parametrize(
    "heading", ["# Red Lines", "#### Red Lines", "Red Lines", "##Red Lines", "## Red Lines too"]
)
def test_other_lines_name_none(heading: str) -> None:
    assert found(f"{heading}\nno") == []


def test_it_ends_with_the_next_of_its_level_and_holds_those_below() -> None:
    text = "### Red Lines\na\n#### More\nb\n### Next\nc"
    assert found(text) == ["### Red Lines\na\n#### More\nb"]
    assert found("### Red Lines\na\n## Next\nc") == ["### Red Lines\na"]


@pytest.mark.parametrize(("opens", "closes"), FENCES)
def test_within_a_code_fence_there_are_no_headings(opens: str, closes: str) -> None:
    other = f"{opens}\n## Other\n{closes}"
    text = f"{opens}\n## Red Lines\nno\n{closes}\n## Red Lines\na\n{other}\nb\n## End"
    assert found(text) == [f"## Red Lines\na\n{other}\nb"]


def test_a_fence_is_closed_by_its_own_kind_alone() -> None:
    text = "````\n```\n~~~~\n## Red Lines\nno\n````\n## Red Lines\nyes"
    assert found(text) == ["## Red Lines\nyes"]
    assert found("```\n## Red Lines\nnever closed") == []


def test_names_give_the_order_and_one_within_another_comes_once() -> None:
    text = "## Red Lines\na\n## Session Startup\nb\n### Red Lines\nc"
    assert found(text) == ["## Session Startup\nb\n### Red Lines\nc", "## Red Lines\na"]
    assert found(text, "red lines") == ["## Red Lines\na", "### Red Lines\nc"]
    assert found(text, "Style") == []


def test_there_is_room_for_so_many_characters() -> None:
    files = [
        WorkspaceFile("AGENTS.md", "## Red Lines\n" + "a" * 2_000),
        WorkspaceFile("MORE", "## Red Lines\n" + "b" * 2_000),
        WorkspaceFile("LAST", "## Red Lines\nc"),
    ]
    kept = sections_of(files, SECTIONS)
    assert [path for path, _ in kept] == ["AGENTS.md", "MORE"]
    assert sum(len(text) for _, text in kept) == MAX_CHARS
    assert kept[1][1].endswith("b" + CUT)
    assert sections_of([WorkspaceFile("AGENTS.md", "## Red Lines")], SECTIONS) == (
        ("AGENTS.md", "## Red Lines"),
    )


def test_what_fills_the_room_is_whole_and_what_is_longer_is_cut() -> None:
    heading = "## Red Lines\n"
    fills = heading + "a" * (MAX_CHARS - len(heading))
    assert found(fills) == [fills]
    [cut] = found(fills + "b")
    assert cut.endswith(CUT)
    assert len(cut) == MAX_CHARS
