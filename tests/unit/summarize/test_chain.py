"""The chain accepts no summary that is none, and the note that counts always fits."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextengine_server.summarize import (
    COUNT_ONLY_MAX_TOKENS,
    NobodyThere,
    SourceMessage,
    SummarizerChain,
    SummarizerFailed,
    SummaryRequest,
    SummaryResult,
    count_only,
    unacceptable,
)
from contextengine_server.tokens import TokenCounter

COUNT = TokenCounter("o200k_base").count_text
REQUEST = SummaryRequest(
    (
        SourceMessage("user", "Where is the report?", 4, time_ms=1_700_000_000_000),
        SourceMessage("assistant", "In reports/2024.", 5, time_ms=1_700_000_060_000),
    ),
    source_tokens=1000,
    target_tokens=200,
)


@dataclass
class Says:
    """A summarizer that answers a given text, or raises."""

    answer: str | BaseException
    name: str = "says"
    calls: int = 0

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        self.calls += 1
        if isinstance(self.answer, BaseException):
            raise self.answer
        return SummaryResult(self.answer, 1, self.name)


def run(*answers: str | BaseException) -> tuple[SummaryResult, list[Says]]:
    summarizers = [Says(answer, f"s{index}") for index, answer in enumerate(answers)]
    return asyncio.run(SummarizerChain(summarizers, COUNT).summarize(REQUEST)), summarizers


def test_the_first_acceptable_summary_is_taken_and_counted_anew() -> None:
    result, tried = run("  The report is in reports/2024.\n", "another")
    assert result == SummaryResult(
        "The report is in reports/2024.", COUNT("The report is in reports/2024."), "s0"
    )
    assert [summarizer.calls for summarizer in tried] == [1, 0]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "empty"),
        (" \n\t ", "empty"),
        ("\x00\x07", "empty"),
        ("...", "empty"),
        ("I'm sorry, but I can't help with that.", "refusal"),
        ("I’m sorry, I cannot summarize this conversation.", "refusal"),
        ("Sorry, but I can't assist with this request.", "refusal"),
        ("I cannot provide a summary of this.", "refusal"),
        ("I am unable to process this text.", "refusal"),
        ("As an AI language model, I do not have access to it.", "refusal"),
        ("抱歉，我无法总结这段对话。", "refusal"),
        ("Error: context length exceeded", "error text"),
        ("openai.RateLimitError: Error code: 429 - slow down", "error text"),
        ('{"error": {"message": "overloaded"}}', "error text"),
        ("Traceback (most recent call last):\n  File ...", "error text"),
        ("An error occurred while processing your request.", "error text"),
        ("An unexpected error has occurred.", "error text"),
        ("503 Service Unavailable", "error text"),
        ("HTTP/1.1 502 Bad Gateway", "error text"),
        ("Too Many Requests", "error text"),
        ("Rate limit reached for this model", "error text"),
        ("This model's maximum context length is exceeded", None),
        ("Maximum context length is 8192 tokens", "error text"),
        ("Request timed out.", "error text"),
        ("<!DOCTYPE html><html><body>nginx</body></html>", "error text"),
        ("word " * 1200, "not smaller than its source: 1201 tokens for 1000"),
        (RuntimeError("the text of a message"), "RuntimeError"),
        (TimeoutError(), "TimeoutError"),
        (SummarizerFailed("no sentence fits 3 tokens"), "no sentence fits 3 tokens"),
    ],
)
def test_what_is_no_summary_is_refused_and_the_next_is_asked(
    answer: str | BaseException, reason: str | None
) -> None:
    result, tried = run(answer, "The report is in reports/2024.")
    if reason is None:
        assert result.summarizer == "s0"
        return
    assert result.text == "The report is in reports/2024."
    assert result.summarizer == "s1"
    assert [summarizer.calls for summarizer in tried] == [1, 1]
    ((name, said),) = result.refused
    assert name == "s0"
    assert said.split(":")[0] == reason.split(":")[0]
    assert "text of a message" not in said


@pytest.mark.parametrize(
    "text",
    [
        "user: the build fails with Error: ENOENT, exit code 1",
        "The deployment failed with HTTP 503 Service Unavailable; we retried.",
        "assistant: I'm sorry, the flight is sold out.",
        "We can't use Redis because of its licence; PostgreSQL was chosen.",
        "I will write the tests first, the user agreed.",
        "Error handling was moved to api/errors.py.",
        "Rate limits are now read from settings.",
        "用户抱歉迟到，会议改到三点。",
        "Unfortunately the disk was full; 40 GB were freed.",
        "500 requests were replayed, all passed.",
    ],
)
def test_a_summary_may_speak_of_errors_and_refusals(text: str) -> None:
    assert unacceptable(text, COUNT(text), REQUEST) is None


@pytest.mark.parametrize(
    "text", ["Error: Cannot find module 'x'", "I can't do that, the user said"]
)
def test_what_is_quoted_is_not_taken_for_an_answer(text: str) -> None:
    """The extractive summarizer begins with whatever line weighs most."""
    assert unacceptable(text, COUNT(text), REQUEST) in ("error text", "refusal")
    assert unacceptable(text, COUNT(text), REQUEST, quoted=True) is None


def test_a_summary_as_long_as_its_source_is_refused() -> None:
    assert unacceptable("fine", 999, REQUEST) is None
    assert unacceptable("fine", 1000, REQUEST) is not None


def test_what_utf8_cannot_carry_is_replaced() -> None:
    result, _ = run("caf\ud800 \x1b[31mred\x1b[0m\x00 ok")
    assert result.text == "caf? [31mred[0m ok"


def test_an_exhausted_chain_ends_in_the_note_that_counts() -> None:
    result, _ = run("", SummarizerFailed("down"))
    assert result.fallback
    assert result.summarizer == "count-only"
    assert result.refused == (("s0", "empty"), ("s1", "down"))
    assert result.text.startswith(
        "[2 messages, 1,000 tokens from 2023-11-14T22:13:20Z to 2023-11-14T22:14:20Z, were"
        " compacted without a summary."
    )
    empty, _ = run()
    assert empty.fallback


def test_cancellation_is_not_swallowed() -> None:
    with pytest.raises(asyncio.CancelledError):
        run(asyncio.CancelledError(), "never asked")


def test_the_note_counts_summaries_by_their_name() -> None:
    one = SummaryRequest(REQUEST.messages[:1], 70, 50, depth=2)
    assert count_only(one, COUNT).text.startswith("[1 summary, 70 tokens from 2023")
    assert "was compacted" in count_only(one, COUNT).text
    assert count_only(SummaryRequest((), 0, 1), COUNT).text.startswith(
        "[0 messages, 0 tokens, were"
    )


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
@settings(deadline=None)
@given(
    times=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=3),
    tokens=st.integers(-1, 2**63),
    depth=st.integers(0, 3),
)
def test_the_note_never_costs_more_than_it_says(
    encoding: str, times: list[int | None], tokens: int, depth: int
) -> None:
    messages = tuple(
        SourceMessage("user", "x" * 50, n, time_ms=time) for n, time in enumerate(times)
    )
    result = count_only(
        SummaryRequest(messages, tokens, 1, depth=depth), TokenCounter(encoding).count_text
    )
    assert 0 < result.tokens <= COUNT_ONLY_MAX_TOKENS
    assert "x" * 50 not in result.text


CAPPED = SummarizerFailed("over the cap", asked=False, causes=("spend_cap",))
OPEN = SummarizerFailed("open", asked=False, causes=("breaker_open",))


@pytest.mark.parametrize(
    ("answers", "causes"),
    [
        (["It moved."], ()),
        ([NobodyThere("nobody"), "It moved."], ()),
        ([CAPPED, "It moved."], ("spend_cap",)),
        ([OPEN, CAPPED, "It moved."], ("breaker_open", "spend_cap")),
        (["", RuntimeError(), SummarizerFailed("503"), "It moved."], ("failed",)),
        ([CAPPED, "Error: no"], ("spend_cap", "failed")),
        ([NobodyThere("nobody")], ()),
    ],
)
def test_why_another_stood_in_is_told_once_for_each_cause(
    answers: list[str | BaseException], causes: tuple[str, ...]
) -> None:
    result, _ = run(*answers)
    assert result.causes == causes
    assert result.fallback == (answers[-1] != "It moved.")


def test_who_was_not_there_is_not_among_those_who_failed() -> None:
    result, _ = run(NobodyThere("nobody"), "", "It moved.")
    assert result.refused == (("s1", "empty"),)
