"""Tags of reasoning: what goes, and what stays as it is."""

from __future__ import annotations

import time

import pytest

from contextengine_server.wire.reasoning_tags import code_spans, has_tags, without_tags


@pytest.mark.parametrize("tag", ["think", "thinking", "thought", "antThinking", "THINK"])
def test_what_stands_between_tags_goes_with_them(tag: str) -> None:
    assert without_tags(f"One <{tag}>two</{tag}> three") == "One  three"
    assert without_tags(f"< {tag} why='x' >two\nmore</ {tag} >\nthree") == "three"


def test_what_is_final_loses_its_tags_alone() -> None:
    assert without_tags("<think>hm</think><final>It is 4.</final>") == "It is 4."


@pytest.mark.parametrize(
    "text",
    [
        "Write `<think>` and `</think>` around it.",
        "```html\n<think>a</think>\n```\nand so on",
        "~~~\n<final>a</final>\n~~~",
        "    ```\n    <think>a</think>\n    ```",
        "```\n<think>a fence that is not closed</think>",
        "a < b, <b>bold</b>, <thinker>x</thinker>, <think-tank/>, <finally>",
        "  no tags, and space around  ",
        "",
    ],
)
def test_code_and_other_tags_stay_as_they_are(text: str) -> None:
    assert without_tags(text) == text
    assert not has_tags(text)


def test_a_tag_in_code_closes_nothing() -> None:
    text = "<think>say `</think>` then\n```\n</think>\n```\nstop</think>answer"
    assert without_tags(text) == "answer"


def test_a_tag_that_is_not_closed_goes_and_what_follows_stays() -> None:
    assert without_tags("The answer <think>is 4.") == "The answer is 4."
    assert without_tags("four</think>") == "four"
    assert without_tags("<think/>four") == "four"


def test_tags_within_tags_close_at_their_depth() -> None:
    assert without_tags("<think>a<think>b</think>c</think>d") == "d"
    assert without_tags("<think>a<think>b</think>c") == "c"


def test_what_is_left_has_no_space_around_it() -> None:
    assert without_tags("  <think>a</think>\n\nb \n") == "b"
    assert without_tags("<think>all of it</think>") == ""
    assert has_tags("<think>all of it</think>")


def test_code_is_a_run_of_backticks_to_the_next_like_it() -> None:
    assert code_spans("a `b` c ``d ` e`` f `g") == [(2, 5), (8, 17)]
    assert code_spans("`a\n```\nb\n```\nc`") == [(3, 12)]


def test_texts_made_to_be_slow_are_not() -> None:
    begun = time.process_time()
    for text in ("<" + " " * 200_000, "<think>" * 30_000, "<think>" * 15_000 + "</think>" * 15_000,
                 "`" * 200_000, "".join("`" * n + "x" for n in range(600)), "```\n" * 30_000,
                 "``` <think>\n" * 20_000, "<think " * 30_000):  # fmt: skip
        without_tags(text)
    assert time.process_time() - begun < 20
