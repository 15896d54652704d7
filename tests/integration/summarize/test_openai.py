"""A model behind an OpenAI-compatible endpoint: what it is asked, and what of its answers becomes a
summary."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from msgspec.structs import replace

from contextengine_server.summarize import (
    SourceMessage,
    SummarizerFailed,
    SummaryRequest,
    SummaryResult,
    TooLong,
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

from .conftest import KEY
from .provider import (
    GOOD,
    Provider,
    answer,
    error,
    provider,
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


pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.usefixtures("key")]


BOTH = pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])


async def ask(
    pool: WorkerPool, made: Provider, request: SummaryRequest = REQUEST, **options: Any
) -> SummaryResult:
    settings: dict[str, Any] = {
        "timeout": 60.0,
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


OVERLOADED = {"error": {"message": SAID, "type": "server_error", "code": "overloaded"}}


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
