"""Files that users named: their text stands in the summary to the letter, where it has room."""

from __future__ import annotations

from time import perf_counter

import pytest

from contextengine_server.summarize import SummaryRequest, extract
from contextengine_server.summarize.extractive.tools import file_names

from .sources import COUNT, Work

SMALL = "\n".join(f"export const gate{n} = open({n * 37}, 'hinge');" for n in range(30))
LARGE = "\n".join(f"export const lock{n} = shut({n * 41}, 'bolt');" for n in range(300))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("read docs/theme.rst in full, then theme.ts.", ["theme.rst", "theme.ts"]),
        ("@src/a_b.py:12 and `Main.java`", ["a_b.py", "main.java"]),
        ("then oauth-selector or any other", ["oauth-selector"]),
        ("It costs 3.14 or so. Fine? and/or: go on", []),
        ("a.ts a.ts", ["a.ts"]),
    ],
)
def test_files_are_known_by_how_people_name_them(text: str, names: list[str]) -> None:
    assert file_names([text]) == names


@pytest.mark.parametrize("piece", ["a", "-", "a-", "a.", "a/", "_", "a_", "1.", " "])
def test_names_are_found_in_a_megabyte_of_anything(piece: str) -> None:
    began = perf_counter()
    file_names([piece * (1024 * 1024 // len(piece)) + ".1"])
    file_names([piece * (78 // len(piece)) + ".1"])
    assert perf_counter() - began < 5


def read(*, asked: str) -> Work:
    """Two files are read, of which nothing is changed."""
    work = Work().says("user", asked)
    work.does("read", {"path": "src/gate.ts"}, SMALL)
    work.does("read", {"path": "src/lock.ts"}, LARGE)
    return work.does("bash", {"command": "npm test"}, "12 passed")


def told(work: Work, target: int, quoted: int = 0, named: tuple[str, ...] = ()) -> str:
    """The summary, which keeps to what it may cost at most."""
    tokens = sum(COUNT(message.whole) for message in work.messages)
    request = SummaryRequest(
        tuple(work.messages), tokens, target, named=named, quoted_tokens=quoted
    )
    result = extract(request, COUNT)
    assert result.tokens == COUNT(result.text) <= target + quoted
    return result.text


def lines(text: str, of: str) -> int:
    """How many lines of a file stand in a text."""
    rows = {row.strip() for row in text.splitlines()}
    return sum(row in rows or any(one.endswith(row) for one in rows) for row in of.splitlines())


def test_the_text_of_a_named_file_takes_room_beside_the_target() -> None:
    text = told(read(asked="Please read gate.ts in full."), 150, 1_000)
    assert lines(text, SMALL) == 30
    assert lines(text, LARGE) == 0
    assert "Please read gate.ts in full." in text


def test_without_a_name_or_without_room_nothing_of_it_is_quoted() -> None:
    unnamed = told(read(asked="Have a look around."), 150, 1_000)
    assert lines(unnamed, SMALL) == 0
    assert COUNT(unnamed) <= 150  # the room is for nothing else
    assert lines(told(read(asked="Please read gate.ts in full."), 150), SMALL) == 0


def test_a_file_that_does_not_fit_is_not_quoted_in_part() -> None:
    text = told(read(asked="Please read lock.ts, then gate.ts."), 150, 1_000)
    assert lines(text, SMALL) == 30
    assert lines(text, LARGE) == 0


def test_the_newest_message_names_files_for_what_is_done_behind_it() -> None:
    work = read(asked="Go on.")
    work.messages = work.messages[1:]
    assert lines(told(work, 150, 1_000, named=("gate.ts",)), SMALL) == 30
    assert lines(told(work, 150, 1_000), SMALL) == 0


def test_only_what_still_stands_of_it_is_quoted() -> None:
    work = read(asked="Please read gate.ts in full.")
    first = SMALL.splitlines()[0]
    change: dict[str, object] = {
        "path": "src/gate.ts",
        "oldText": first,
        "newText": "export const gate0 = closed;",
    }
    text = told(work.does("edit", change, "done"), 150, 1_000)
    assert first not in text
    assert "export const gate0 = closed;" in text
    assert lines(text, SMALL) == 29


def test_a_summary_made_anew_keeps_it_within_half_of_what_it_says() -> None:
    work = read(asked="Please read gate.ts in full.")
    assert lines(told(work, 1_600), SMALL) == 30
