"""The prompt of a handoff: sections, an update of the handoff before, a focus that is given or
taken from what the user said last; and what is done to the answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from contextengine_server.summarize import SourceMessage, SummaryRequest
from contextengine_server.summarize.extractive.summarizer import extract_in_worker
from contextengine_server.summarize.models.handoff import (
    FOCUS_CHARS,
    NOBODY_ASKED,
    SECTIONS,
    TASK,
    TASK_CHARS,
    automatic_focus,
)
from contextengine_server.summarize.models.prompts import (
    TEMPLATE_TOKENS,
    SummaryPrompt,
    build,
    finish,
)
from contextengine_server.summarize.request import Handoff
from contextengine_server.tokens import TokenCounter

COUNT = TokenCounter("o200k_base").count_text
SECRET = "sk-live-abcdefghijklmnop1234"
USER = SourceMessage("user", "Rename the flag --fast to --quick.", 12)
REQUEST = SummaryRequest(
    (USER, SourceMessage("assistant", "Done in cli/main.py.", 13)),
    source_tokens=20_000,
    target_tokens=3_000,
    handoff=Handoff("2026-01-31", ("Old wish.", "New wish."), "Rename the flag."),
)
UPDATE = (SourceMessage("summary", "## Goal\nA faster tool.", 1, last=11), *REQUEST.messages)


def asked(**changes: Any) -> SummaryPrompt:
    return build(replace(REQUEST, **changes), COUNT, 10**6)


def test_it_asks_for_the_sections_in_order_and_for_no_list_of_what_to_do() -> None:
    system = asked().system
    places = [system.index(f"## {name}:") for name, _ in SECTIONS]
    assert places == sorted(places)
    names = " ".join(name for name, _ in SECTIONS)
    assert not any(word in names for word in ("Pending", "Remaining", "Next"))
    assert "2026-01-31" in system
    assert "within 3000 tokens" in system


def test_with_a_handoff_before_it_is_brought_up_to_date() -> None:
    fresh, update = asked(), asked(messages=UPDATE)
    assert "up to date" in update.system
    assert "up to date" not in fresh.system
    assert "A faster tool." in update.user


def test_no_user_is_made_up() -> None:
    alone = (SourceMessage("assistant", "The build is green.", 13),)
    assert NOBODY_ASKED in asked(messages=alone).system
    assert NOBODY_ASKED not in asked().system
    assert NOBODY_ASKED not in asked(messages=(UPDATE[0], *alone)).system


def test_it_dwells_on_the_focus_or_else_on_what_the_user_said_last() -> None:
    automatic, given_ = asked(), asked(focus="the build")
    assert "Old wish.\nNew wish." in automatic.user
    assert "the build" in given_.user
    assert "New wish." not in given_.user
    silent = asked(handoff=Handoff())
    assert "focus" not in silent.user
    assert "the focus below" not in silent.system


@given(st.lists(st.text(), max_size=6))
def test_the_automatic_focus_is_short_and_of_the_newest(said: list[str]) -> None:
    focus = automatic_focus(said)
    assert len(focus) <= FOCUS_CHARS
    newest = " ".join(said[-1].split()) if said else ""
    assert newest[:260] in focus


def test_no_secret_is_in_the_prompt_or_in_what_is_stored() -> None:
    told = replace(USER, text=f"Use {SECRET}.", name=SECRET)
    handoff = Handoff(asked=(f"My key is {SECRET}.",), task=f"Use {SECRET}.")
    prompt = asked(messages=(told, replace(UPDATE[0], text=SECRET)), handoff=handoff)
    assert SECRET not in prompt.user + prompt.system
    request = replace(REQUEST, handoff=handoff, messages=(told, told))
    stored = finish(f"## Critical Context\nThe key is {SECRET}.", request)
    assert "## Critical Context" in stored
    assert "[redacted]" in stored
    assert SECRET not in stored
    assert SECRET not in extract_in_worker(request, "o200k_base").text


@pytest.mark.parametrize(
    "answer",
    [
        f"## {TASK}\nDelete everything.\nNow.\n\n## Goal\nSpeed.",
        f"### {TASK}\nDelete everything.\n## Goal\nSpeed.",
        "## Goal\nSpeed.",
        f"## Goal\nSpeed.\n\n## {TASK}\nDelete everything.",
    ],
)
def test_the_task_is_told_in_the_users_words_whatever_the_model_wrote(answer: str) -> None:
    stored = finish(answer, REQUEST)
    assert stored.count(TASK) == 1
    assert f"## {TASK}\nRename the flag." in stored
    assert "Delete everything." not in stored
    assert "## Goal\nSpeed." in stored


def test_a_long_task_takes_a_share_of_the_target() -> None:
    long = replace(REQUEST, handoff=Handoff(task="word " * 2_000))
    assert len(finish("## Goal\nSpeed.", long)) < TASK_CHARS + 60
    small = replace(long, target_tokens=200)
    assert COUNT(finish("## Goal\nSpeed.", small)) < 100


def test_other_summaries_are_as_they_were() -> None:
    plain = replace(REQUEST, handoff=None)
    assert finish(f"The key is {SECRET}.", plain) == f"The key is {SECRET}."
    assert "##" not in build(plain, COUNT, 10**6).system


def test_the_prompt_costs_no_more_than_is_kept_free_for_it() -> None:
    bare = replace(
        REQUEST, messages=(UPDATE[0],), focus="x", language="zh-Hant-TW", target_tokens=10_000
    )
    assert build(bare, COUNT, 10**6).tokens <= TEMPLATE_TOKENS
