"""The ledger of an extractive summary: what was done with tools, by rule, the newest state of
each."""

from __future__ import annotations

import time

import pytest

from contextengine_server.summarize.extractive.ledger import chosen, ledger_of
from contextengine_server.summarize.extractive.tools import uses_of

from .sources import COUNT, Work

OLD = "export function resizeDialog(width: number) {\n  return layoutDialog(width);\n}\n" * 40


def ledger(work: Work, room: int = 2_000) -> list[str]:
    return chosen(ledger_of(uses_of(work.messages)).lines, room, COUNT)


def line(work: Work, beginning: str) -> str:
    found = [row for row in ledger(work) if row.startswith(beginning)]
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("edit", {"path": "src/a.ts", "oldText": "x", "newText": "makeDialog()"}),
        ("Edit", {"file_path": "src/a.ts", "old_string": "x", "new_string": "makeDialog()"}),
        ("write_file", {"filename": "src/a.ts", "content": "makeDialog()"}),
        (
            "multi_edit",
            {"path": "src/a.ts", "edits": [{"oldText": "x", "newText": "makeDialog()"}]},
        ),
        (
            "str_replace_based_edit_tool",
            {
                "command": "str_replace",
                "path": "src/a.ts",
                "old_str": "x",
                "new_str": "makeDialog()",
            },
        ),
        (
            "apply_patch",
            {"input": "*** Begin Patch\n*** Update File: src/a.ts\n+makeDialog()\n*** End Patch"},
        ),
        ("apply_patch", "*** Begin Patch\n*** Update File: src/a.ts\n+makeDialog()\n*** End Patch"),
    ],
)
def test_a_change_is_told_whatever_the_tool(tool: str, given: dict[str, object] | str) -> None:
    assert line(Work().does(tool, given, "ok"), "changed ") == "changed src/a.ts #1: makeDialog"


@pytest.mark.parametrize(
    ("tool", "given", "told"),
    [
        ("read", {"path": "src/a.ts"}, "read src/a.ts #1"),
        ("Read", {"file_path": "src/a.ts", "offset": 10, "limit": 20}, "read src/a.ts 10-29 #1"),
        ("view", {"path": "src/a.ts", "view_range": [1, 40]}, "read src/a.ts 1-40 #1"),
        (
            "str_replace_based_edit_tool",
            {"command": "view", "path": "src/a.ts"},
            "read src/a.ts #1",
        ),
        ("bash", {"command": "cd /w && cat src/a.ts"}, "read src/a.ts #1"),
        ("shell", {"command": ["bash", "-lc", "sed -n 1,20p src/a.ts"]}, "read src/a.ts #1"),
        ("web_fetch", {"url": "https://a.example/b"}, "read https://a.example/b #1"),
    ],
)
def test_a_read_is_one_line_without_code(tool: str, given: dict[str, object], told: str) -> None:
    work = Work().does(tool, given, OLD)
    assert ledger(work) == [told]
    work.says("assistant", "The dialog is laid out again and again there.")
    assert "return layoutDialog" not in work.summary(200)


def test_many_changes_of_a_file_are_one_line_with_what_was_written_last() -> None:
    work = Work()
    for n in range(5):
        work.does("edit", {"path": "src/a.ts", "newText": f"const dialogPart{n} = 1;"}, "Changed 1")
    assert line(work, "changed src/a.ts") == (
        "changed src/a.ts 5 times, last #9: dialogPart4, dialogPart3, dialogPart2, dialogPart1,"
        " dialogPart0"
    )


def test_an_error_that_was_mended_is_gone_and_an_open_one_stays() -> None:
    work = Work()
    work.does("bash", {"command": "npm run check"}, "a.ts(5,1): error TS2339: no\nexit code 2")
    work.does("bash", {"command": "npm test"}, "AssertionError: 3 is not 4", failed=True)
    work.does("bash", {"command": "npm run check 2>&1 | tail -5"}, "Checked 36 files in 38ms")
    assert ledger(work) == [
        "ran npm run check: ok #6",
        "failed #4 bash npm test: AssertionError: 3 is not 4",
    ]
    work.says("assistant", "One test still fails, and I am looking into the reason of it.")
    text = work.summary(300)
    assert "TS2339" not in text
    assert "Checked 36 files" not in text


def test_what_failed_again_after_it_had_worked_is_open() -> None:
    work = Work().does("bash", {"command": "make"}, "fine")
    work.does("bash", {"command": "make"}, "ld: undefined reference\nexit code 2")
    assert ledger(work) == ["failed #4 bash make: ld: undefined reference"]


def test_nothing_found_is_no_error() -> None:
    assert ledger(Work().does("bash", {"command": "grep -n foo src/a.ts"}, "exit code 1")) == []


@pytest.mark.parametrize(
    ("command", "result", "told"),
    [
        (
            "git commit -m 'x'",
            "[main 9f3c2ab] fix: resize\n 1 file",
            "commit #1 9f3c2ab: fix: resize",
        ),
        ('git add . && git commit -m "fix: resize"', "done", "commit #1: fix: resize"),
        (
            "git commit -m \"$(cat <<'EOF'\nfix: resize\nEOF\n)\"",
            "done",
            "commit #1: fix: resize",
        ),
    ],
)
def test_a_commit_is_told_with_its_message(command: str, result: str, told: str) -> None:
    assert line(Work().does("bash", {"command": command}, result), "commit ") == told


def test_values_stand_with_their_names() -> None:
    work = Work().does("book_flight", {"user_id": "mia_3668", "cabin": "economy", "bags": 2}, "{}")
    assert ledger(work) == ["called #1 book_flight (user_id: mia_3668; cabin: economy; bags: 2)"]


def test_an_id_that_is_used_twice_answers_in_order() -> None:
    work = Work().does("bash", {"command": "make a"}, "fine")
    work.does("bash", {"command": "make b"}, "", failed=True)
    assert ledger(work) == ["ran make a: ok #2", "failed #4 bash make b"]


def test_in_little_room_errors_and_commits_stand_before_what_was_read() -> None:
    work = Work()
    for n in range(30):
        work.does("read", {"path": f"src/file{n}.ts"}, OLD)
    work.does("bash", {"command": "git commit -m 'fix: resize'"}, "done")
    work.does("bash", {"command": "npm test"}, "Error: boom", failed=True)
    rows = ledger(work, 80)
    assert rows[0] == "commit #61: fix: resize"
    assert "failed #64 bash npm test: Error: boom" in rows
    assert COUNT("\n".join(rows)) <= 80


@pytest.mark.parametrize(
    "text",
    [
        " " * 2**20,
        "a" * 2**20,
        "aA" * 2**19,
        "a_" * 2**19,
        "| tail " * 150_000,
        "git commit " * 95_000,
        "exit code " * 100_000,
        "[x 1234567" * 100_000,
        "error" * 200_000,
        '{"a":' * 200_000,
        "[" * 2**20,
        "a/" * 2**19,
        "#1 user" * 150_000,
        "\\n" * 2**19,
        "Let me now " * 95_000,
    ],
)
def test_a_megabyte_of_anything_takes_a_moment(text: str) -> None:
    began = time.process_time()
    work = Work().does("bash", {"command": text}, text)
    work.does("edit", {"path": text, "newText": text}, text, failed=True)
    work.does("read", {"path": "a.ts"}, text)
    work.does("look_up", text, text)
    work.says("user", text).says("assistant", text).says("summary", text)
    work.summary(800)
    assert time.process_time() - began < 10  # the square of a megabyte would take hours
