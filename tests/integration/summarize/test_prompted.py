"""What services read when a session is compacted, and that nothing but a summary is ever committed
of what they answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from contextengine import types as t
from contextengine.messages import assistant, user
from contextengine_server.tokens import TokenCounter

from ..harness import budget, ref, texts
from .lending import SECRET, talk, written_by
from .provider import GOOD, Reply, answer, body, chunk, error, provider, reset, stream
from .services import Served, served

pytestmark = pytest.mark.asyncio(loop_scope="module")

COUNT = TokenCounter("o200k_base").count_text
WINDOW = 8_192
FOCUS = "dwell on what was decided about the billing tables"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    patient = {"engine.dag.summarizerBreaker.failureThreshold": 1_000}
    async with served(tmp_path_factory.mktemp("shared"), "first", window=WINDOW, **patient) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def on(shared: Served) -> Served:
    shared.replying()
    shared.clock.advance(86_400)
    return shared


async def long(on: Served, name: str, turns: int) -> t.SessionRef:
    """A session of about 200 tokens a turn."""
    session = ref(name)
    said: list[t.Message] = []
    for n in range(turns):
        said += [
            user(f"Question {n} of the migration, password={SECRET}?"),
            assistant(f"Answer {n}. " + "It went on. " * 45),
        ]
    await on.at.client.ingest_batch(session=session, messages=said)
    return session


async def test_chunks_are_what_the_window_leaves(on: Served) -> None:
    session = await long(on, "clamped", 60)
    await on.compacted(session)
    requests = on.services["first"].requests
    assert len(requests) > 1
    for asked in requests:
        took = COUNT(asked.system) + COUNT(asked.user) + asked.body["max_completion_tokens"]
        assert took <= WINDOW
        assert not asked.aggressive, "it fits in the normal form"
        assert "are left out here" not in asked.user
    # What is to be summarized comes in parts of one size, as few as fit.
    sizes = [COUNT(asked.user) for asked in requests]
    assert max(sizes) > WINDOW // 4
    assert min(sizes[:-1]) > 0.9 * max(sizes)
    assert set(await written_by(on.at, session)) == {"first:first-small"}


async def test_every_depth_has_its_prompt_and_its_sources(on: Served) -> None:
    session = await long(on, "deep", 240)
    await on.assign(session, leafChunkTokens=1_000, condensedMinFanout=2, condensedTargetTokens=256)
    depths = {"(operational)": 0, "(session, timeline)": 0, "(phase, trajectory)": 0}
    said = [f"Stage {n}: " + f"the tables moved to node-{n}. " * 30 for n in range(400)]

    async def says(request, writer) -> None:
        depths[next(level for level in depths if level in request.system)] += 1
        await answer(said[sum(depths.values())])(request, writer)

    on.replying(first=says)
    await on.compacted(session, focus=FOCUS)
    assert all(depths.values()), depths
    above = [
        asked for asked in on.services["first"].requests if "(operational)" not in asked.system
    ]
    for asked in above:
        assert "The summaries to summarize" in asked.user
        assert asked.user.count("summary") >= 2
        assert "Stage" in asked.user
        assert "Question" not in asked.user
    leaves = [asked for asked in on.services["first"].requests if "(operational)" in asked.system]
    assert "The messages to summarize" in leaves[0].user
    # Each goes on from the one before it.
    assert "The summary of what came before" not in leaves[0].user
    assert "Stage" in leaves[1].user
    for asked in on.services["first"].requests:
        assert FOCUS in asked.user
        assert FOCUS not in asked.system
        assert SECRET.encode() not in asked.raw
    exported = (await on.at.export(session)).summaries
    assert {summary.info.depth for summary in exported} >= {0, 1, 2}
    shown = texts((await on.at.client.assemble(session=session, budget=budget(4_000))).items)
    assert not any(FOCUS in text for text in shown)


OVERLOADED = {"error": {"message": "x", "type": "server_error", "code": "overloaded"}}
NO_SUMMARY: dict[str, Reply] = {
    "empty": answer(""),
    "white space": answer(" \n\t"),
    "a refusal": answer("I'm sorry, but I can't help with that."),
    "a refusal apart": answer(None, refusal="no"),
    "error text": answer("Error: 500 internal server error"),
    "longer than its source": answer("and so on and on " * 3_000),
    "its instructions": answer(f"As asked to {FOCUS}, here it is."),
    "cut off": answer(finish="length"),
    "filtered": answer(finish="content_filter"),
    "no end": answer(finish=None),
    "not JSON": body(b"<html>502</html>"),
    "half of it": body(b'{"choices": [{"message"'),
    "another shape": body([1, 2]),
    "no choices": body({"choices": []}),
    "a context error": error(400, "x", "context_length_exceeded"),
    "a limit": error(429, retry_after="1"),
    "no key": error(401),
    "a broken connection": reset,
    "a stream that breaks off": stream(chunk({"content": GOOD}), cut=True),
    "a stream that ends in an error": stream(chunk({"content": GOOD}), OVERLOADED),
}


async def test_nothing_but_a_summary_is_committed(on: Served) -> None:
    for what, reply in NO_SUMMARY.items():
        on.replying(first=reply)
        session = await talk(on.at)
        await on.compacted(session, focus=FOCUS)
        assert await written_by(on.at, session) == ["extractive"], what
        assert on.asked(), what


async def test_streamed_or_not_nothing_but_a_summary_is_committed(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    async with provider(answer()) as made:
        endpoint = {
            "name": "streaming",
            "base_url": made.base_url,
            "model": "m",
            "retries": 0,
            "timeout": 60,
            "stream": True,
        }
        settings: dict[str, Any] = {
            "summarizer.endpoints": [endpoint],
            "engine.dag.summarizerBreaker.failureThreshold": 1_000,
        }
        async with served(tmp_path_factory.mktemp("streaming"), **settings) as on:
            for what in (
                "empty",
                "cut off",
                "a stream that breaks off",
                "a stream that ends in an error",
            ):
                made.replies[:] = [NO_SUMMARY[what]]
                session = await talk(on.at)
                await on.compacted(session)
                assert await written_by(on.at, session) == ["extractive"], what
            made.replies[:] = [answer()]
            session = await on.compacted(await talk(on.at))
            assert await written_by(on.at, session) == ["streaming:m"]


async def test_a_limit_is_waited_out_as_the_service_asks(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    async with provider(error(429, retry_after="0.2"), answer()) as made:
        endpoint = {
            "name": "busy",
            "base_url": made.base_url,
            "model": "m",
            "retries": 1,
            "timeout": 60,
        }
        settings: dict[str, Any] = {"summarizer.endpoints": [endpoint]}
        async with served(tmp_path_factory.mktemp("busy"), **settings) as on:
            session = await on.compacted(await talk(on.at))
            assert await written_by(on.at, session) == ["busy:m"]
        first, second = made.requests
        assert second.at - first.at >= 0.2
