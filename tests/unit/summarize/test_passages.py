"""Sources taken apart: results without escapes, days of the calendar, summaries that quote."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.summarize import SourceMessage
from contextengine_server.summarize.extractive.passages import day_of, plain

from .sources import Work, made
from .test_user_words import REQUESTS, coding


@pytest.mark.parametrize(
    ("time_ms", "day"),
    [
        (0, "1970-01-01 Thu"),
        (1_763_681_581_544, "2025-11-20 Thu"),
        (-1, "1969-12-31 Wed"),
        (10**18, ""),
        (None, ""),
    ],
)
def test_the_day_is_that_of_the_calendar_in_utc(time_ms: int | None, day: str) -> None:
    assert day_of(time_ms) == day


def test_json_is_told_as_names_with_their_values() -> None:
    value = {
        "id": "M05KNL",
        "paid": True,
        "flights": [{"number": "HAT139", "prices": {"economy": 104, "business": 267}}],
        "tags": ["a\nb", "c"],
        "note": None,
    }
    assert plain(json.dumps(value)).split("\n") == [
        "id: M05KNL; paid: true; tags: a b, c; note: null",
        "flights: number: HAT139; prices: (economy: 104, business: 267)",
    ]


def test_escapes_of_what_is_nearly_json_do_not_stay() -> None:
    assert (
        plain('{"text": "one\\n\\ttwo", "name": \\"x\\"') == '{"text": "one  two", "name": \\"x\\"'
    )
    assert plain(r"C:\new\table is a path") == r"C:\new\table is a path"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
        max_leaves=20,
    )
)
def test_no_value_of_json_is_lost(value: object) -> None:
    text = plain(json.dumps([value]))
    todo: list[object] = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            todo += one.values()
        elif isinstance(one, list):
            todo += one
        elif isinstance(one, str):
            assert all(word in text for word in one.split())
        elif isinstance(one, int) and not isinstance(one, bool):
            assert str(one) in text


def test_what_a_summary_quotes_of_users_survives_being_folded_again() -> None:
    first = coding(REQUESTS[:3]).summary(300)
    second = coding(REQUESTS[3:]).summary(300)
    children = [
        SourceMessage("summary", first, 1, last=63),
        SourceMessage("summary", second, 64, last=126),
    ]
    text = made(children, 200).text
    places = [text.index(f"user: {request}") for request in REQUESTS]
    assert places == sorted(places)
    assert text.startswith("[1970-01-01 Thu]\n#1 user: ")
    assert text.count("State at the end:") <= 1


def test_a_line_of_output_keeps_its_tool_and_what_it_was_used_on() -> None:
    work = Work().does(
        "bash", {"command": "make report"}, "revenue_2026: 14,250.75 EUR\n" + "x\n" * 90
    )
    work.says("assistant", "The report is made, and it looks as it did in the year before.")
    text = work.summary(90)
    assert "tool bash make report: revenue_2026: 14,250.75 EUR" in text


@pytest.mark.parametrize(
    "noise",
    ["Checked 36 files in 38ms. No fixes applied.", "Changed 332 characters to 449.", "ok"],
)
def test_success_alone_is_not_told(noise: str) -> None:
    work = Work()
    for n in range(30):
        work.does("deploy", {"stage": f"s{n}"}, f"{noise}\nregion eu-west-{n} is served now")
    text = work.summary(500)
    assert noise not in text
    assert "eu-west-" in text


def test_cheering_is_no_request() -> None:
    work = Work()
    for n in range(12):
        work.says("user", f"Wow! Keep it up! Keep going! My aunt Ann{n} won prize number {n + 40}.")
        work.says(
            "assistant", f"Take care of yourself! Her cousin Bob{n} lost coin number {n + 80}."
        )
    text = work.summary(150)
    assert "Keep" not in text
    assert text.count("Take care") <= 1
    assert text.count("Ann") + text.count("Bob") >= 8


SLOW = "def gate():\n    return open_gate_slowly()"
PATCH = """*** Begin Patch
*** Update File: src/gate.py
@@
 def gate():
-    return open_gate_slowly()
+    return open_gate_at_once()
*** End Patch"""


@pytest.mark.parametrize(
    ("change", "gone"),
    [
        (("edit", {"path": "src/gate.py", "newText": "    return open_gate_at_once()"}), False),
        (
            (
                "edit",
                {
                    "path": "src/gate.py",
                    "oldText": "    return open_gate_slowly()",
                    "newText": "    return open_gate_at_once()",
                },
            ),
            True,
        ),
        (("write", {"path": "src/gate.py", "content": "    return open_gate_at_once()"}), True),
        (("apply_patch", {"input": PATCH}), True),
    ],
)
def test_code_that_was_written_and_stands_is_told_to_the_letter(
    change: tuple[str, dict[str, object]], gone: bool
) -> None:
    work = Work().says("user", "The gate opens too slowly, mend it.")
    work.does("edit", {"path": "src/gate.py", "oldText": "pass", "newText": SLOW}, "ok")
    work.does("read", {"path": "src/other.py"}, "def other(): return only_read_and_never_written()")
    work.does(*change, "Changed 20 characters.")
    work.does("edit", {"path": "src/gate.py", "newText": "never_put_there()"}, "x", failed=True)
    text = work.summary(160)
    assert "wrote gate.py: " in text
    assert "return open_gate_at_once()" in text
    assert ("return open_gate_slowly()" in text) is not gone
    assert "only_read_and_never_written()" not in text
    assert "never_put_there()" not in text


def test_of_a_file_that_was_changed_the_lines_that_it_still_has_are_told() -> None:
    work = Work().says("user", "The gate opens too slowly, mend it.")
    number = "     {}\t"
    read = ["def opened():", "    return open_gate_slowly()", "LIMIT = gate_limit(7)"]
    work.does(
        "read",
        {"path": "src/gate.py"},
        "\n".join(number.format(at) + row for at, row in enumerate(read, 1)),
    )
    work.does("read", {"path": "src/other.py"}, "def other(): return only_read_and_never_written()")
    slow, swift = "    return open_gate_slowly()", "    return open_at_once()"
    work.does("edit", {"path": "src/gate.py", "oldText": slow, "newText": swift}, "Changed it.")
    text = work.summary(160)
    assert "read gate.py: " in text
    assert "LIMIT = gate_limit(7)" in text
    assert "\t" not in text
    assert "return open_gate_slowly()" not in text
    assert "only_read_and_never_written()" not in text
    # What a later look at it shows, or a later change writes, is told there.
    work.does("read", {"path": "src/gate.py"}, f"{read[0]}\n{swift}\n{read[2]}\nEND = 9")
    text = work.summary(160)
    assert text.count("gate_limit(7)") == text.count("open_at_once()") == text.count("END = 9") == 1
    # A file that was written anew has nothing of what it was.
    work.does("write", {"path": "src/gate.py", "content": "BEGUN = anew()"}, "Wrote 1 line.")
    text = work.summary(160)
    assert "anew()" in text
    assert "gate_limit(7)" not in text


def test_a_fact_is_told_rather_than_what_one_thinks_of_life() -> None:
    work = Work()
    for n in range(12):
        work.says("user", f"Honestly, friendship and patience matter most, whatever happens {n}.")
        work.says("assistant", f"You always inspire people with such amazing positive energy {n}.")
        work.says("user", f"The plumber mended both taps with copper wire in cellar {n}.")
    text = work.summary(160)
    assert text.count("copper") + text.count("plumber") + text.count("cellar") > 8
    assert text.count("friendship") + text.count("energy") <= 2


def test_a_title_or_an_initial_ends_no_sentence() -> None:
    work = Work().says("user", "Sure. I see Dr. Havel and J. K. Nyong at noon. Fine with me.")
    work.says("user", "That is great, I am so happy for you, keep going! " * 9)
    assert "Dr. Havel and J. K. Nyong" in work.summary(24)


def test_sentences_of_languages_without_spaces_are_chosen_whole() -> None:
    work = Work()
    for n in range(30):
        work.says("assistant", f"今天的天气很好。我们决定在第{n}号仓库存放蓝色的箱子。谢谢你。")
        work.says("user", f"箱子{n}是什么时候买的？")
    text = work.summary(300)
    assert "号仓库存放蓝色的箱子。" in text
