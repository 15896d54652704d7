"""A model behind an OpenAI-compatible endpoint: what it is asked, and what of its answers becomes a
summary."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from contextengine_server.summarize import (
    SourceMessage,
    SummarizerFailed,
    SummaryRequest,
    SummaryResult,
    TooLong,
    Unacceptable,
    WorkerPool,
)
from contextengine_server.summarize.models.calls import ModelCalls
from contextengine_server.summarize.models.openai import (
    Endpoint,
    EndpointConnection,
    OpenAISummarizer,
)
from contextengine_server.telemetry.metrics import Metrics
from contextengine_server.tokens import TokenCounter

from .provider import (
    GOOD,
    Provider,
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

COUNT = TokenCounter("o200k_base").count_text
CALLS = ModelCalls(Metrics(), "local")
SAID = "the zebra crossed the street"
REQUEST = SummaryRequest(
    (
        SourceMessage(
            "user", "Rename the flag --fast to --quick. " + SAID, 12, time_ms=1_700_000_000_000
        ),
        SourceMessage("assistant", "Done in cli/main.py. " * 40, 13),
    ),
    source_tokens=400,
    target_tokens=150,
)
KEY = "sk-test-0123456789abcdef"


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[WorkerPool]:
    made = WorkerPool()
    yield made
    await made.close()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", KEY)


BOTH = pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])


async def ask(
    pool: WorkerPool, made: Provider, request: SummaryRequest = REQUEST, **options: Any
) -> SummaryResult:
    settings: dict[str, Any] = {
        "timeout": 5.0,
        "retries": 0,
        "api_key_env": "TEST_MODEL_KEY",
    } | options
    connection = EndpointConnection(Endpoint("local", made.base_url, "small-1", **settings))
    try:
        return await OpenAISummarizer(connection, pool, "o200k_base", COUNT, CALLS).summarize(
            request
        )
    finally:
        await connection.close()


async def failure(
    pool: WorkerPool, made: Provider, request: SummaryRequest = REQUEST, **options: Any
) -> SummarizerFailed:
    with pytest.raises(SummarizerFailed) as caught:
        await ask(pool, made, request, **options)
    return caught.value


@BOTH
async def test_a_summary_is_asked_for_on_the_wire_and_taken(
    pool: WorkerPool, streamed: bool
) -> None:
    async with provider(answer()) as made:
        result = await ask(pool, made, stream=streamed)
    assert result == SummaryResult(GOOD, COUNT(GOOD), "local:small-1", spent=720)
    (asked,) = made.requests
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body["model"] == "small-1"
    assert [message["role"] for message in asked.body["messages"]] == ["system", "user"]
    assert asked.body["max_completion_tokens"] == 150 + 2_048
    assert bool(asked.body.get("stream")) == streamed
    assert "Rename the flag --fast to --quick." in asked.user
    assert "Rename" not in asked.system


@BOTH
async def test_prompts_follow_depth_form_focus_and_language(
    pool: WorkerPool, streamed: bool
) -> None:
    levels = ("(operational)", "(session, timeline)", "(phase, trajectory)", "(project memory)")
    async with provider(answer()) as made:
        for depth in range(4):
            for aggressive in (False, True):
                request = replace(
                    REQUEST,
                    depth=depth,
                    aggressive=aggressive,
                    focus="the flag and its docs",
                    language="pt-BR",
                    previous_summary="They had chosen --fast.",
                )
                await ask(pool, made, request, stream=streamed)
    seen = [
        (level, asked.aggressive)
        for asked in made.requests
        for level in levels
        if level in asked.system
    ]
    assert seen == [(level, aggressive) for level in levels for aggressive in (False, True)]
    for asked in made.requests:
        assert "the language with the tag pt-BR" in asked.system
        assert "the flag and its docs" in asked.user
        assert "They had chosen --fast." in asked.user
        assert "the flag and its docs" not in asked.system
        assert "They had chosen" not in asked.system


async def test_no_secret_is_in_any_request(pool: WorkerPool) -> None:
    secrets = [
        "hunter2hunter2",
        "sk-proj-AbCdEf0123456789GhIjKl",
        "ghp_0123456789abcdefABCDEF0123456789abcd",
    ]
    secrets += ["c2VjcmV0LWJhc2ljLWNyZWQ=", "MIIEpAIBAAKCAQEAx7f3kQ2mN8sLw0pYt5uVbJzR1cXe9dHg"]
    text = (
        f"DB_PASSWORD={secrets[0]}\nkey {secrets[1]}\npush {secrets[2]}\nAuthorization: Basic"
        f" {secrets[3]}\n-----BEGIN PRIVATE KEY-----\n{secrets[4]}\n-----END PRIVATE KEY-----\n"
    )
    request = replace(
        REQUEST,
        messages=(
            SourceMessage("user", text, 1),
            SourceMessage("tool", json.dumps({"env": text}), 2, name=f"token={secrets[0]}"),
            SourceMessage("assistant", f"postgres://bob:{secrets[0]}@db/app " * 20, 3),
        ),
        focus=f"password: {secrets[0]}",
        previous_summary=text,
    )
    async with provider(answer()) as made:
        for aggressive in (False, True):
            for streamed in (False, True):
                await ask(pool, made, replace(request, aggressive=aggressive), stream=streamed)
    assert len(made.requests) == 4
    for asked in made.requests:
        assert not [secret for secret in secrets if secret.encode() in asked.raw]
        assert asked.user.count("[redacted]") >= 15


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


STARTED = (chunk({"role": "assistant", "content": ""}), chunk({"content": "The flag"}))
OVERLOADED = {"error": {"message": SAID, "type": "server_error", "code": "overloaded"}}
OVERFLOW = {
    "error": {"message": SAID, "type": "invalid_request_error", "code": "context_length_exceeded"}
}


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


@BOTH
async def test_thoughts_before_the_answer_are_no_part_of_it(
    pool: WorkerPool, streamed: bool
) -> None:
    async with provider(
        answer(f"<think>\nWhat is <b>?\n</think>\n\n{GOOD} It wrote <think> tags.")
    ) as made:
        result = await ask(pool, made, stream=streamed)
    assert result.text == f"{GOOD} It wrote <think> tags."


@BOTH
@pytest.mark.parametrize(
    "usage", [None, {}, {"total_tokens": -1}, {"total_tokens": "9"}, [], {"total_tokens": 10**30}]
)
async def test_without_a_report_what_was_spent_is_counted(
    pool: WorkerPool, streamed: bool, usage: object
) -> None:
    async with provider(answer(usage=usage)) as made:
        result = await ask(pool, made, stream=streamed)
    (asked,) = made.requests
    assert result.spent == COUNT(asked.system) + COUNT(asked.user) + COUNT(GOOD)


async def test_more_than_the_window_is_never_sent(pool: WorkerPool) -> None:
    request = replace(
        REQUEST,
        messages=tuple(SourceMessage("tool", "abc " * 3_000, n) for n in range(3)),
        source_tokens=9_000,
    )
    async with provider(answer()) as made:
        refused = await failure(pool, made, request, window=8_000)
        assert (type(refused), refused.asked, refused.spent) == (TooLong, False, 0)
        assert "window of 8,000" in str(refused)
        assert made.requests == []
        # The aggressive form is cut to what fits.
        assert (await ask(pool, made, replace(request, aggressive=True), window=8_000)).text == GOOD
    (asked,) = made.requests
    assert COUNT(asked.system) + COUNT(asked.user) + asked.body["max_completion_tokens"] < 8_000
    assert "characters are left out here" in asked.user


async def test_the_limit_on_the_answer_has_the_name_that_the_service_knows(
    pool: WorkerPool,
) -> None:
    async with provider(answer()) as made:
        await ask(pool, made, length_parameter="max_tokens", window=4_096)
    (asked,) = made.requests
    assert asked.body["max_tokens"] == 2_048
    assert "max_completion_tokens" not in asked.body


async def test_without_its_key_nobody_is_asked(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TEST_MODEL_KEY")
    async with provider(answer()) as made:
        refused = await failure(pool, made)
        assert not refused.asked
        assert "TEST_MODEL_KEY" in str(refused)
        assert made.requests == []
        await ask(pool, made, api_key_env="")
    assert KEY not in str(made.requests[0].headers)


async def test_no_text_and_no_key_reaches_a_log(
    pool: WorkerPool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    libraries = ("openai", "httpx2", "httpcore2")
    for name in libraries:
        logging.getLogger(name).setLevel(logging.DEBUG)
    replies = [
        error(429, SAID),
        answer(),
        error(400, SAID),
        error(400, SAID),
        answer(finish=SAID),
        stream(OVERLOADED),
    ]
    async with provider(*replies) as made:
        await ask(pool, made, retries=1)
        for streamed in (False, True, False, True):
            await failure(pool, made, stream=streamed)
    assert len(made.requests) == 6
    logged = caplog.text + "".join(str(vars(record)) for record in caplog.records)
    for word in (SAID, "zebra", "Rename", KEY, GOOD):
        assert word not in logged
    assert not [record for record in caplog.records if record.name.split(".")[0] in libraries]
