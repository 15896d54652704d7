"""What is printed of texts that others wrote, and how values look."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from contextengine.types import (
    ROLE_TOOL,
    ImagePart,
    Item,
    Message,
    Origin,
    Part,
    ReasoningPart,
    SummaryInfo,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from contextengine_server.cli import items, output


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("plain\ttext\nwith lines", "plain\ttext\nwith lines"),
        ("\x1b[2Jcleared", "\\x1b[2Jcleared"),
        ("bell\x07 and \x9b2J", "bell\\x07 and \\x9b2J"),
        ("over\rwritten", "over\\x0dwritten"),
        ("abc\u202egnp.exe", "abc\\x202egnp.exe"),
        ("\ud800 lone", "\\xd800 lone"),
    ],
)
def test_text_of_others_cannot_drive_the_terminal(text: str, safe: str) -> None:
    assert output.printable(text) == safe


def test_a_beginning_is_one_line_and_says_that_it_was_cut() -> None:
    assert output.one_line("a  b\n c", 10) == "a b c"
    assert output.one_line("x" * 11, 10) == "x" * 9 + "…"
    assert len(output.one_line("word " * 1000, 40)) == 40
    assert output.one_line(" " * 1000 + "end", 10).endswith("…")


def test_table_cells_are_text_and_never_markup(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(output, "console", lambda *, stderr=False: Console(file=stream, width=80))
    output.print_table(("name", "#count"), [("[bold]not bold[/bold] \x1b[31m", 1234567)])
    assert "[bold]not bold[/bold] \\x1b[31m" in stream.getvalue()
    assert "1,234,567" in stream.getvalue()


def test_empty_facts_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_facts(
        [("one", 1000), ("nothing", ""), ("none", None), ("zero", 0), ("flag", False)]
    )
    assert capsys.readouterr().out == "one   1,000\nzero  0\nflag  no\n"


def test_sizes_are_for_people() -> None:
    assert [output.size(n) for n in (0, 999, 1000, 1_250_000, 3 * 10**9)] == [
        "0 B",
        "999 B",
        "1.0 KB",
        "1.2 MB",
        "3.0 GB",
    ]


def test_a_message_shows_every_kind_of_part() -> None:
    result = ToolResultPart(call_id="c", parts=[Part(text=TextPart(text="no"))], is_error=True)
    message = Message(
        role=ROLE_TOOL,
        parts=[
            Part(text=TextPart(text="hello")),
            Part(reasoning=ReasoningPart(redacted_data=b"x")),
            Part(tool_call=ToolCallPart(call_id="c", name="look", arguments_json=b'{"a":1}')),
            Part(tool_result=result),
            Part(image=ImagePart(mime_type="image/png")),
            Part(),
        ],
    )
    assert items.text(message).split("\n") == [
        "hello",
        "(reasoning) hidden",
        '→ look({"a":1})',
        "← failed no",
        "(image image/png)",
        "(a part that this version does not know)",
    ]


def test_where_items_come_from() -> None:
    info = SummaryInfo(first_sequence=2, last_sequence=9, depth=1)
    assert items.origin(Item(origin=Origin(sequence=7))) == "message 7"
    assert (
        items.origin(Item(origin=Origin(summary_id="s"), summary=info)) == "summary of 2-9, depth 1"
    )
    assert items.origin(Item(origin=Origin(synthetic="no result"))) == "made up: no result"


def test_numbers_that_this_version_does_not_know_stay_numbers() -> None:
    assert items.role_name(1) == "user"
    assert items.role_name(77) == "77"
    assert items.form(0) == ""
    assert items.form(2) == "placeholder"
    assert items.form(88) == "88"
