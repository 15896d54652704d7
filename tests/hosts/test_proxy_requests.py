"""Requests that the proxy passes on as they are: to whom, and whatever is odd in them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.hosts.providers import Answer, Json
from tests.hosts.sdk_hosts import ChatAgent
from tests.hosts.stage import apart, proxied, soon, staged
from tests.hosts.upstream import Upstream, serving
from tests.integration.harness import PATIENCE_S, house, ref


def _deep_call(depth: int) -> Json:
    """A reply with a call whose arguments are a list in so many lists."""
    given = {"name": "f", "arguments": "[" * depth + "]" * depth}
    call = {"id": "c", "type": "function", "function": given}
    return {"role": "assistant", "tool_calls": [call]}


async def test_other_paths_go_through(tmp_path: Path) -> None:
    def answer(number: int, given: Json) -> Answer:
        return Answer("Yes.")

    async with staged(tmp_path, answer) as stage, httpx2.AsyncClient() as client:
        models = await client.get(f"{stage.base}/v1/models")
        assert models.content == stage.upstream.seen[0].sent
        body = {"model": "m", "input": "Hi", "previous_response_id": "resp_1"}
        assert (await client.post(f"{stage.base}/v1/responses", json=body)).status_code == 200
        assert stage.upstream.seen[1].json == body
        assert await stage.sessions() == []


@pytest.mark.parametrize(
    ("path", "whose"),
    [
        ("/v1/threads/t1/messages", "openai"),
        ("/v1/chat/completions/abc/messages", "openai"),
        ("/v1/messagesque", "openai"),
        ("/v1/messages", "anthropic"),
        ("/v1/messages/count_tokens", "anthropic"),
        ("/v1/messages/batches", "anthropic"),
        ("/anthropic/v1/messages", "anthropic"),
        ("/teams/blue/v1/messages", "anthropic"),
        ("/v1/models/gpt-5", "openai"),
        ("/v1/models/llama3:latest", "openai"),
        ("/v1beta/models/gemini-3-pro:generateContent", "gemini"),
        ("/v1/models/gemini-3-pro:streamGenerateContent", "gemini"),
        ("/v1alpha/cachedContents", "gemini"),
        ("/upload/v1beta/files", "gemini"),
        ("/v1betting", "openai"),
    ],
)
async def test_a_key_goes_to_the_provider_that_it_is_of(
    path: str, whose: str, tmp_path: Path
) -> None:
    """As a client's base URL has it; the header of Google's keys tells as well."""
    got: list[str] = []

    def provider(name: str) -> Starlette:
        async def answer(request: Request) -> Response:
            got.append(name)
            return Response(b"{}", media_type="application/json")

        return Starlette(routes=[Route("/{path:path}", answer, methods=["POST"])])

    async with (
        house(tmp_path) as home,
        serving(provider("openai")) as openai,
        serving(provider("anthropic")) as anthropic,
        serving(provider("gemini")) as gemini,
        proxied(home, openai, anthropic=anthropic, gemini=gemini) as (_, base),
        httpx2.AsyncClient() as client,
    ):
        await client.post(f"{base}{path}", json={}, headers={"authorization": "Bearer key"})
        await client.post(f"{base}/v1/models", json={}, headers={"x-goog-api-key": "key"})
    assert got == [whose, "gemini"]


@pytest.mark.parametrize(
    "more",
    [
        {"max_tokens": True},
        {"messages": [{"role": "user", "content": "Hi"}, _deep_call(50_000)]},
    ],
    ids=["a limit that is no number", "arguments in 50,000 lists"],
)
async def test_what_is_odd_in_a_request_goes_through(more: Json, tmp_path: Path) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], **more}
    told = {"x-contextengine-session": "s"}
    async with (
        staged(tmp_path, lambda number, given: Answer("Yes.")) as stage,
        httpx2.AsyncClient() as client,
    ):
        sent = json.dumps(body).encode()
        url = f"{stage.base}/v1/chat/completions"
        reply = await client.post(url, content=sent, headers=told)
        assert reply.json()["choices"][0]["message"]["content"] == "Yes."


async def test_a_body_that_says_it_is_not_compressed_is_read(tmp_path: Path) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    told = {"x-contextengine-session": "s", "content-encoding": "identity"}
    async with (
        staged(tmp_path, lambda number, given: Answer("Yes.")) as stage,
        httpx2.AsyncClient() as client,
    ):
        await client.post(f"{stage.base}/v1/chat/completions", json=body, headers=told)
        assert await stage.sessions() == ["s"]


async def test_whoever_asks_for_websockets_is_told_to_use_http(tmp_path: Path) -> None:
    """426 alone has Codex go on with HTTP at once: what fails otherwise it tries again."""
    upstream = Upstream(lambda number, given: Answer("Yes."))
    asked = (
        "GET /v1/responses HTTP/1.1\r\nHost: it\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    async with (
        serving(upstream.application) as there,
        apart(there, "127.0.0.1:1", tmp_path) as (_, base),
    ):
        reads, writes = await asyncio.open_connection("127.0.0.1", httpx2.URL(base).port)
        writes.write(asked.encode())
        head, _, body = (await asyncio.wait_for(reads.read(), PATIENCE_S)).partition(b"\r\n\r\n")
        writes.close()
        status, *told = head.decode().lower().split("\r\n")
        assert status == "http/1.1 426 upgrade required"
        assert "upgrade: http/1.1" in told, "RFC 9110, 15.5.22"
        assert f"content-length: {len(body)}" in told
        assert "use HTTP" in json.loads(body)["error"]["message"]
        async with httpx2.AsyncClient() as client:
            assert (await client.get(f"{base}/v1/models")).status_code == 200
    assert [one.path for one in upstream.seen] == ["/v1/models"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_model_whose_template_wants_turns_is_never_refused(
    stream: bool, tmp_path: Path
) -> None:
    """As the templates of Mistral's models say it, of which vLLM and others make a 400."""
    refused: list[list[str]] = []

    def answer(number: int, given: Json) -> Answer | Response:
        said = given["messages"]
        turns = [one["role"] for one in said if one["role"] != "tool" and not one.get("tool_calls")]
        wanted = ["system", *["user", "assistant"] * len(turns)][: len(turns)]
        if turns != wanted:
            refused.append(turns)
            return Response("Conversation roles must alternate user/assistant/...", 400)
        asked = said[-1]["role"] == "user" and number % 3 == 0
        return Answer(calls=[{"of": "it"}] * 2) if asked else Answer("well " * 80)

    async with staged(tmp_path, answer, window=8_000) as stage:
        agent = ChatAgent(stage.base, stream=stream, session="talk")

        async def summarized() -> bool:
            status = await stage.home.client.get_status(ref("talk", agent="proxy"))
            return status.summary_count > 0

        for turn in range(24):
            if turn == 20:
                await soon(summarized)
            await agent.say(f"Flight {turn} leaves at {turn}:45 from gate {turn}. " * 8)
        await agent.close()
        last = stage.upstream.seen[-1].json["messages"]
    assert not refused
    assert len(last) < len(agent.messages) - 8
    assert "<<<untrusted" in json.dumps(last), "a summary stands in what the user says"
