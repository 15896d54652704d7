"""The proxy as clients meet it: the SDKs of OpenAI and Anthropic on one side, a provider on the
other, over loopback. `make test-hosts` plays two hundred turns where this plays a few."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.responses import Response

from contextengine import name_by_content as name
from contextengine_server.tokens import TokenCounter
from tests.hosts.gate import Way, gate
from tests.hosts.providers import Answer, Json
from tests.hosts.sdk_hosts import Agent, AnthropicAgent, ChatAgent, GeminiAgent, ResponsesAgent
from tests.hosts.stage import WINDOW, Stage, lively, proxied, soon, staged
from tests.integration.harness import ref

TURNS = int(os.environ.get("CONTEXTENGINE_HOST_TURNS", "10"))
AGENTS = [ChatAgent, ResponsesAgent, AnthropicAgent, GeminiAgent]
EACH = pytest.mark.parametrize("kind", AGENTS)
PATHS = ["chat/completions", "responses", "messages"]
pytestmark = pytest.mark.timeout(180 + 8 * TURNS)


BETWEEN_PIECES = re.compile(r'"\}\],\s*"role":\s*"model"\},\s*\{"parts":\s*\[\{"text":\s*"')
"""What frames each piece of a reply of Gemini's: some clients keep each as a content of its own."""


def question(turn: int) -> str:
    return f"Question {turn}? {'please ' * 60}"


def listed(body: Json) -> list[Json]:
    found: list[Json] = body.get("messages") or body.get("input") or body["contents"]
    return found


@EACH
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_conversation_is_stored_as_the_client_has_it_and_shown_within_the_window(
    kind: type[Agent], stream: bool, tmp_path: Path
) -> None:
    async with staged(tmp_path) as stage:
        agent = kind(stage.base, stream=stream, session="talk")
        for turn in range(TURNS):
            assert (await agent.say(question(turn))).startswith("Answer")
        await stage.settled("talk", name(agent.read()))
        await agent.close()
        last = stage.upstream.seen[-1].json
        assert len(listed(last)) < len(agent.messages) - 4
        # With all that frames it in JSON, which no provider counts; but for pieces of a reply.
        count = TokenCounter().count_text
        sent = [BETWEEN_PIECES.sub("", one.body.decode()) for one in stage.upstream.seen]
        assert max(map(count, sent)) < WINDOW
        assert question(TURNS - 1) in json.dumps(last)
        status = await stage.home.client.get_status(ref("talk", agent="proxy"))
        assert status.last_total_tokens == 105


async def test_without_a_header_each_conversation_is_known_by_how_it_begins(tmp_path: Path) -> None:
    def answer(number: int, given: Json) -> Answer:
        return Answer(f"Reply {number}")

    async with staged(tmp_path, answer) as stage:
        agents = [ChatAgent(stage.base, stream=True) for _ in range(2)]
        for words in ("Hello", "How are you?", "Goodbye"):
            for agent in agents:
                await agent.say(words)

        await stage.each_stored([agent.read() for agent in agents])
        for agent in agents:
            await agent.close()


@EACH
async def test_what_the_user_took_back_leaves_the_session_however_often(
    kind: type[Agent], tmp_path: Path
) -> None:
    async with staged(tmp_path) as stage:
        agent = kind(stage.base, stream=False, session="talk")
        for turn in range(3):
            await agent.say(question(turn))
        before = list(agent.messages)
        for edit in ("another", "a third", "another"):
            agent.messages = list(before)
            await agent.say(f"{edit} question")
            await agent.say("and so on")
            await stage.settled("talk", name(agent.read()))
        async with proxied(stage.home, stage.there) as (_, base):
            cold = kind(base, stream=False, session="talk")
            cold.messages = list(before)
            await cold.say("asked of a proxy that knows nothing")
            await stage.settled("talk", name(cold.read()))
            await cold.close()
        await agent.close()


@pytest.mark.parametrize("path", PATHS)
async def test_what_fits_goes_through_byte_for_byte_both_ways(path: str, tmp_path: Path) -> None:
    turns = [("user", "Hi \\ud83d \\u00e9"), ("assistant", "Yes?"), ("user", "Go on.  ")]
    messages = ", ".join(f'{{"role" :"{role}",\n"content":"{text}"}}' for role, text in turns)
    kept = "input" if path == "responses" else "messages"
    for stream in ("false", "true"):
        body = (
            f'{{ "model":"mock-1", "{kept}": [{messages}], "x-unknown": [1.0, 1e3], '
            f'"max_tokens": 9,"stream" : {stream}}}\n'
        ).encode()
        (directory := tmp_path / stream).mkdir()
        async with staged(directory) as stage, httpx2.AsyncClient() as client:
            reply = await client.post(
                f"{stage.base}/v1/{path}?beta=true",
                content=body,
                headers={
                    "authorization": "Bearer secret",
                    "x-contextengine-session": "s",
                    "connection": "keep-alive, x-hop",
                    "x-hop": "1",
                    "x-mine": "2",
                },
            )
            [seen] = stage.upstream.seen
            assert seen.body == body
            assert reply.content == seen.sent
            assert seen.headers["authorization"] == "Bearer secret"
            assert seen.headers["x-mine"] == "2"
            assert not {"x-hop", "x-contextengine-session"} & seen.headers.keys()
            assert len(seen.headers["host"].split(",")) == 1
            await soon(lambda: _has(stage, "s", 4))


async def _has(stage: Stage, session: str, count: int) -> bool:
    return session in await stage.sessions() and len(await stage.stored(session)) == count


async def test_fields_beside_the_conversation_stay_as_they_were_where_it_is_shortened(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as stage, httpx2.AsyncClient() as client:
        talk: list[Json] = [{"role": "system", "content": "Be brief."}]
        for turn in range(20):
            talk += [
                {"role": "user", "content": question(turn)},
                {"role": "assistant", "content": f"{turn} {'fine ' * 80}"},
            ]
        talk.append({"role": "user", "content": "Last."})
        body = {"temperature": 0.1, "messages": talk, "model": "mock-1", "odd": {"a": [None]}}
        raw = json.dumps(body).replace("0.1", "0.1000")
        await client.post(
            f"{stage.base}/v1/chat/completions",
            content=raw,
            headers={"x-contextengine-session": "s"},
        )
        sent = stage.upstream.seen[0]
        assert b'"temperature": 0.1000' in sent.body
        assert {**sent.json, "messages": talk} == body
        assert len(sent.json["messages"]) < 30
        assert sent.json["messages"][0]["content"].startswith("Be brief.\n\n")
        assert sent.json["messages"][-1] == talk[-1]


async def test_a_compressed_reply_stays_compressed_and_is_recorded(tmp_path: Path) -> None:
    def answer(number: int, given: Json) -> Response:
        message = {"role": "assistant", "content": "packed"}
        whole = {"model": "m", "choices": [{"message": message, "finish_reason": "stop"}]}
        return Response(
            gzip.compress(json.dumps(whole).encode()),
            media_type="application/json",
            headers={"content-encoding": "gzip"},
        )

    async with staged(tmp_path, answer) as stage, httpx2.AsyncClient() as client:
        body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
        headers = {"x-contextengine-session": "s", "accept-encoding": "br, gzip;q=1.0"}
        url = f"{stage.base}/v1/chat/completions"
        async with client.stream("POST", url, json=body, headers=headers) as reply:
            raw = b"".join([chunk async for chunk in reply.aiter_raw()])
        assert raw == stage.upstream.seen[0].sent
        assert stage.upstream.seen[0].headers["accept-encoding"] == "gzip"
        await soon(lambda: _has(stage, "s", 2))


async def test_a_dead_or_hung_service_loses_nothing_and_is_found_again(tmp_path: Path) -> None:
    async with (
        staged(tmp_path, window=60_000) as stage,
        gate(stage.home.app.address) as way,
        proxied(stage.home, stage.there, address=way.address, patience=2.0) as (_, base),
        httpx2.AsyncClient() as asking,
    ):
        agent = ChatAgent(base, stream=True, session="talk")

        async def service() -> str:
            said: str = (await asking.get(f"{base}/healthz")).json()["service"]
            return said

        async def back() -> bool:
            await agent.say("Back?")
            return await service() == "there"

        await agent.say("Alpha")
        await stage.settled("talk", name(agent.read()))
        for gone in (Way.CLOSED, Way.HUNG):
            way.turn(gone)
            took = []
            for words in ("Bravo", "Charlie", "Delta"):
                began = time.monotonic()
                await agent.say(words)
                took.append(time.monotonic() - began)
                # The whole list, as the client sent it.
                assert len(stage.upstream.seen[-1].json["messages"]) == len(agent.messages) - 1
                assert await service() == "away"
            print(f"{gone.name}: {[round(one, 3) for one in took]} s a turn")
            way.turn(Way.OPEN)
            await soon(back)
            await stage.settled("talk", name(agent.read()))
        await agent.close()


async def test_a_client_that_goes_away_ends_the_request_upstream(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, httpx2.AsyncClient() as client:
        stage.upstream.hold = asyncio.Event()
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
        url = f"{stage.base}/v1/chat/completions"
        headers = {"x-contextengine-session": "s"}
        async with client.stream("POST", url, json=body, headers=headers) as reply:
            await anext(aiter(reply.aiter_raw()))
        async with asyncio.timeout(60):
            await stage.upstream.cancelled.wait()
        assert len(await stage.stored("s")) == 1


@pytest.mark.parametrize("path", PATHS)
async def test_what_goes_wrong_is_said_as_the_api_says_it(path: str, tmp_path: Path) -> None:
    def answer(number: int, given: Json) -> Response:
        return Response(b'{"error": "slow down"}', 429, {"retry-after": "7", "x-limit": "1"})

    kept = "input" if path == "responses" else "messages"
    body = {"model": "m", kept: [{"role": "user", "content": "Hi"}]}
    async with (
        staged(tmp_path, answer, max_bytes=1_000) as stage,
        httpx2.AsyncClient() as client,
        proxied(stage.home, "http://127.0.0.1:1") as (_, nowhere),
    ):
        url = f"{stage.base}/v1/{path}"
        theirs = await client.post(url, json=body)
        assert (theirs.status_code, theirs.content) == (429, b'{"error": "slow down"}')
        assert (theirs.headers["retry-after"], theirs.headers["x-limit"]) == ("7", "1")
        odd = await client.post(url, content=b"[no json")
        assert odd.status_code == 500  # as the mock has it: it is upstream's to say
        ours = [
            await client.post(url, json={**body, "pad": "x" * 1_000}),
            await client.post(url, json=body, headers={"x-contextengine-session": "s" * 300}),
            await client.post(f"{nowhere}/v1/{path}", json=body),
        ]
        assert [one.status_code for one in ours] == [413, 400, 502]
        for one in ours:
            error = one.json()["error"]
            assert error["message"]
            assert ("type" in one.json()) == (path == "messages")


async def test_a_refusal_for_length_teaches_the_window_that_is_served(tmp_path: Path) -> None:
    text = "This model's maximum context length is 4096 tokens. You requested 5000 tokens."

    def answer(number: int, given: Json) -> Any:
        if number:
            return Answer("fine")
        error = {"message": text, "code": "context_length_exceeded"}
        return Response(json.dumps({"error": error}), 400)

    async with staged(tmp_path, answer) as stage, httpx2.AsyncClient() as client:
        body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
        headers = {"x-contextengine-session": "s"}
        refused = await client.post(f"{stage.base}/v1/chat/completions", json=body, headers=headers)
        assert refused.status_code == 400

        async def learnt() -> bool:
            assembled = await stage.home.client.assemble(ref("s", agent="proxy"), model="m")
            return assembled.budget.window == 4096

        await soon(learnt)


@EACH
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_request_that_is_refused_for_its_length_is_made_again_with_less(
    kind: type[Agent], stream: bool, tmp_path: Path
) -> None:
    """The client gets the reply alone, as it came; the limit that was named holds from then on."""
    said = {"message": "prompt is too long: 5001 tokens > 4096 maximum"}
    refusal = json.dumps({"type": "error", "error": said}).encode()

    def answer(number: int, given: Json) -> Any:
        length = len(BETWEEN_PIECES.sub("", json.dumps(given)))
        long = length > 12_000
        if long:
            lengths.append(length)
        return Response(gzip.compress(refusal), 400, zipped) if long else lively(number, given)

    zipped = {"content-type": "application/json", "content-encoding": "gzip"}
    lengths: list[int] = []
    async with staged(tmp_path, answer, window=60_000) as stage:
        agent = kind(stage.base, stream=stream, session="talk")
        for turn in range(12):
            assert (await agent.say(question(turn))).startswith("Answer")
        await stage.settled("talk", name(agent.read()))
        await agent.close()
        assert len(lengths) == 1, "it was refused once, and then the limit was known"
        status = await stage.home.client.get_status(ref("talk", agent="proxy"))
        assert status.last_total_tokens == 105


async def test_a_cache_mark_moves_on_with_the_client(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, httpx2.AsyncClient() as client:
        talk: list[Json] = []
        mark = {"cache_control": {"type": "ephemeral"}}
        for turn in range(3):
            words = {"type": "text", "text": question(turn)}
            talk.append({"role": "user", "content": [words | mark]})
            await client.post(
                f"{stage.base}/v1/messages",
                json={"model": "m", "messages": talk, "max_tokens": 9},
                headers={"x-contextengine-session": "s"},
            )
            talk[-1] = {"role": "user", "content": [words]}
            talk.append({"role": "assistant", "content": f"Reply {turn}"})
        assert stage.upstream.seen[-1].body.count(b"cache_control") == 1
