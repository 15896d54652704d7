"""What a model behind an OpenAI-compatible endpoint answers that is no summary: refused, with what
was spent; and what may pass is tried again."""

from __future__ import annotations

from typing import Any

import pytest

from contextengine_server.summarize import (
    SummarizerFailed,
    TooLong,
    Unacceptable,
    WorkerPool,
)
from tests.integration.summarize.test_openai import (
    BOTH,
    COUNT,
    OVERLOADED,
    SAID,
    ask,
    failure,
)

from .provider import (
    GOOD,
    Reply,
    answer,
    body,
    chunk,
    error,
    provider,
    reset,
    silence,
    stream,
)

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.usefixtures("key")]

STARTED = (chunk({"role": "assistant", "content": ""}), chunk({"content": "The flag"}))
OVERFLOW = {
    "error": {"message": SAID, "type": "invalid_request_error", "code": "context_length_exceeded"}
}

REFUSED: list[tuple[str, Reply, type[SummarizerFailed], str]] = [
    ("empty", answer(""), Unacceptable, "empty"),
    ("blank", answer(" \n "), Unacceptable, "empty"),
    ("null", answer(None), Unacceptable, "empty"),
    ("refusal in words", answer("I'm sorry, but I can't help with that."), Unacceptable, "refusal"),
    ("refusal in its field", answer(None, refusal="I can't."), Unacceptable, "refusal"),
    ("an error as text", answer("Error: overloaded"), Unacceptable, "error text"),
    ("longer than its source", answer("word " * 500), Unacceptable, "not smaller than its source"),
    ("without an end", answer("word " * 30_000), Unacceptable, "longer than 100,000 characters"),
    ("thoughts alone", answer("<think>First I should"), Unacceptable, "empty"),
    ("a call", answer(None, finish="tool_calls"), Unacceptable, "finish reason tool_calls"),
    ("an odd reason", answer(finish=SAID), Unacceptable, "finish reason unknown"),
    ("cut off", answer(finish="length"), TooLong, "cut off at the limit on its length"),
    (
        "filtered",
        answer(finish="content_filter"),
        SummarizerFailed,
        "stopped by the service's content filter",
    ),
    ("without its end", answer(finish=None), SummarizerFailed, "the answer ended without its end"),
]


def cases(rows: list[tuple[str, Reply, type[SummarizerFailed], str]]) -> Any:
    return pytest.mark.parametrize(
        ("reply", "kind", "reason"), [row[1:] for row in rows], ids=[row[0] for row in rows]
    )


@BOTH
@cases(REFUSED)
async def test_what_is_no_summary_is_refused(
    pool: WorkerPool, reply: Reply, kind: type[SummarizerFailed], reason: str, streamed: bool
) -> None:
    async with provider(reply) as made:
        refused = await failure(pool, made, stream=streamed)
    assert type(refused) is kind
    assert str(refused).startswith(reason)
    assert refused.asked
    assert refused.spent > 0


@cases(
    [
        (
            "no choices",
            body({"object": "chat.completion", "choices": []}),
            Unacceptable,
            "no choices",
        ),
        (
            "null choices",
            body({"object": "chat.completion", "choices": None}),
            Unacceptable,
            "no choices",
        ),
        ("choices of no kind", body({"choices": ["x"]}), Unacceptable, "no choices"),
        ("a list", body([1, 2]), SummarizerFailed, "a malformed answer"),
        ("half of an answer", body(b'{"choices": [{"mess'), SummarizerFailed, "a malformed answer"),
        (
            "a web page",
            body(b"<html>hello</html>", kind="text/html"),
            SummarizerFailed,
            "a malformed answer",
        ),
        ("no UTF-8", body(b'{"choices": "\xff\xfe"}'), SummarizerFailed, "a malformed answer"),
        ("nothing", body(b""), SummarizerFailed, "a malformed answer"),
    ]
)
async def test_a_whole_answer_that_is_none_is_refused(
    pool: WorkerPool, reply: Reply, kind: type[SummarizerFailed], reason: str
) -> None:
    async with provider(reply) as made:
        refused = await failure(pool, made, stream=False)
    assert type(refused) is kind
    assert str(refused) == reason


@cases(
    [
        (
            "an error at once",
            stream(OVERLOADED),
            SummarizerFailed,
            "an error within the answer: overloaded",
        ),
        (
            "an error later",
            stream(*STARTED, OVERLOADED),
            SummarizerFailed,
            "an error within the answer: overloaded",
        ),
        (
            "an overflow",
            stream(*STARTED, OVERFLOW),
            TooLong,
            "an error within the answer: context_length_exceeded",
        ),
        (
            "a broken connection",
            stream(*STARTED, cut=True),
            SummarizerFailed,
            "the connection failed",
        ),
        ("an early end", stream(*STARTED), SummarizerFailed, "the answer ended without its end"),
        (
            "no last line",
            stream(*STARTED, end=b""),
            SummarizerFailed,
            "the answer ended without its end",
        ),
        (
            "no JSON",
            stream(*STARTED, b"data: {nonsense\n\n"),
            SummarizerFailed,
            "a malformed answer",
        ),
        ("no object", stream(*STARTED, [1]), SummarizerFailed, "AttributeError"),
        ("no events", stream(b": ping\n\n"), SummarizerFailed, "no stream was answered"),
        (
            "no stream",
            body({"object": "chat.completion"}),
            SummarizerFailed,
            "no stream was answered",
        ),
        ("only odd events", stream({"x": 1}, {"choices": None}), Unacceptable, "no choices"),
    ]
)
async def test_a_stream_that_fails_is_refused(
    pool: WorkerPool, reply: Reply, kind: type[SummarizerFailed], reason: str
) -> None:
    async with provider(reply) as made:
        refused = await failure(pool, made, stream=True)
    assert type(refused) is kind
    assert str(refused).startswith(reason)
    assert SAID not in str(refused)


async def test_of_a_stream_that_broke_off_the_prompt_is_spent(pool: WorkerPool) -> None:
    async with provider(stream(*STARTED, cut=True)) as made:
        refused = await failure(pool, made, stream=True)
        (asked,) = made.requests
    assert refused.spent >= COUNT(asked.system) + COUNT(asked.user)


OVERFLOWS = [
    error(400, f"{SAID} is too much", "context_length_exceeded"),
    error(400, f"This model's maximum context length is 8192 tokens. However, {SAID}"),
    error(400, f"prompt is too long: {SAID}", kind="invalid_request_error"),
    error(422, "Input is larger than the context window size"),
    body(b"Payload Too Large", 413, kind="text/plain"),
]


@pytest.mark.parametrize("reply", OVERFLOWS)
async def test_what_is_more_than_the_models_context_is_told_apart(
    pool: WorkerPool, reply: Reply
) -> None:
    async with provider(reply) as made:
        refused = await failure(pool, made, retries=2)
    assert type(refused) is TooLong
    assert str(refused).startswith("more than the model's context: 4")
    assert SAID not in str(refused)
    assert len(made.requests) == 1


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (error(401, SAID, "invalid_api_key"), "401 invalid_api_key"),
        (error(403, SAID), "403 error"),
        (error(404, SAID, "model_not_found"), "404 model_not_found"),
        (error(400, SAID, "invalid_value"), "400 invalid_value"),
        (error(400, SAID, f"{SAID} as a code", kind=SAID), "400"),
        (body(b"<html>Bad Gateway</html>", 502, kind="text/html"), "502"),
        (body(b"{", 500), "500"),
        (body({"error": SAID}, 503), "503"),
        (body([SAID], 429), "429"),
    ],
)
async def test_the_reason_of_a_refused_call_is_its_code_and_never_its_words(
    pool: WorkerPool, reply: Reply, reason: str
) -> None:
    async with provider(reply) as made:
        refused = await failure(pool, made)
    assert (type(refused), str(refused), refused.spent) == (SummarizerFailed, reason, 0)


@pytest.mark.parametrize("first", [error(500), error(503), error(429), error(408), reset])
async def test_what_may_pass_is_tried_again(pool: WorkerPool, first: Reply) -> None:
    async with provider(first, answer()) as made:
        result = await ask(pool, made, retries=1)
    assert result.text == GOOD
    assert len(made.requests) == 2
    assert made.requests[0].body == made.requests[1].body


async def test_the_wait_is_what_the_service_asks_for(pool: WorkerPool) -> None:
    async with provider(error(429, code="rate_limit_exceeded", Retry_After="1"), answer()) as made:
        assert (await ask(pool, made, retries=1)).text == GOOD
    first, second = made.requests
    # Without the header the first wait is under half a second.
    assert second.at - first.at >= 0.95


async def test_a_service_that_asks_for_patience_beyond_reason_is_left(pool: WorkerPool) -> None:
    async with provider(
        error(429, code="rate_limit_exceeded", Retry_After="3600"), answer()
    ) as made:
        refused = await failure(pool, made, retries=3)
    assert str(refused) == "429 rate_limit_exceeded"
    assert len(made.requests) == 1


async def test_tries_are_bounded(pool: WorkerPool) -> None:
    async with provider(error(500, Retry_After_Ms="1")) as made:
        refused = await failure(pool, made, retries=2)
    assert str(refused) == "500 error"
    assert len(made.requests) == 3


@pytest.mark.parametrize(
    "reply",
    [silence, stream(*STARTED, *[chunk({"content": "."})] * 100, pause=0.05)],
    ids=["silent", "slow"],
)
async def test_a_service_that_is_late_is_given_up(pool: WorkerPool, reply: Reply) -> None:
    async with provider(reply) as made:
        refused = await failure(pool, made, timeout=0.3, stream=True)
    assert (type(refused), str(refused)) == (SummarizerFailed, "no answer in time")


@pytest.mark.parametrize("reply", [reset, None], ids=["reset", "nobody there"])
async def test_a_service_that_cannot_be_reached_is_given_up(
    pool: WorkerPool, reply: Reply | None
) -> None:
    async with provider(reply or reset) as made:
        if reply is None:
            made.port = 1
        assert str(await failure(pool, made)) == "the connection failed"
