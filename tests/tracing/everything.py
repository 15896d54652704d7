"""A service that is asked everything, with one word in every text that it is given: the word may be
in no span."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.messages import assistant, system, tool_call, tool_result, user
from tests.integration.harness import House, budget, ref
from tests.integration.summarize.lending import Harness, attached, compacting
from tests.integration.summarize.provider import (
    Provider,
    answer,
    body,
    chunk,
    error,
    provider,
    stream,
)
from tests.tracing.receiver import Receiver, traced

CANARY = "zanzibarquokka"
LONG = f"The word is {CANARY}, and the build went on with it. " * 40
SETTINGS = {"engine.dag.freshTailTurns": 1, "engine.dag.contextThreshold": 0.1}
PATIENCE_S = 60


@asynccontextmanager
async def asked_everything(directory: Path) -> AsyncIterator[Receiver]:
    """What was seen of a service that has been asked everything and has ended."""
    async with provider(answer(f"A note of {CANARY}.")) as model:
        endpoint = {
            "name": "model",
            "base_url": model.base_url,
            "model": "small",
            "retries": 0,
            "timeout": 5,
        }
        settings: dict[str, Any] = {**SETTINGS, "summarizer.endpoints": [endpoint]}
        async with traced(directory, **settings) as (house, seen):
            for ask in (talked, compacted, recalled, projected, spawned, moved, refused):
                await ask(house)
            await lent(house)
            await failed(house, model)
            await house.stop()
            yield seen


def turn(number: int) -> list[t.Message]:
    """A turn with a tool's call in it; its ids are its own."""
    call = tool_call(f"call-{number}", CANARY, {CANARY: CANARY})
    return [
        user(f"{number}: {LONG}"),
        assistant(LONG, tool_calls=[call]),
        tool_result(f"call-{number}", LONG),
        assistant(f"Done with {number}: {LONG}"),
    ]


async def talked(house: House) -> None:
    """A conversation, told in each way, and a compaction in the background."""
    client = house.client
    host = t.HostInfo(host_id="host")
    await client.bootstrap(ref(), host=host, history=[system(LONG), user(LONG)])
    for message in turn(1):
        await client.ingest(ref(), message)
    await client.ingest_batch(ref(), turn(2))
    tools = [
        t.ToolDefinition(
            name=CANARY, description=LONG, input_schema_json=f'{{"title": "{CANARY}"}}'.encode()
        )
    ]
    prompt = [t.Part(text=t.TextPart(text=CANARY))]
    for _ in range(4):
        await client.assemble(ref(), tools=tools, prompt=prompt, budget=budget(4_000))
    await client.assemble(ref(), live=t.LiveList(messages=turn(3)), explain=True)
    await client.after_turn(ref(), turn(4), budget=budget(3_000))
    async with asyncio.timeout(PATIENCE_S):
        while (await client.get_status(ref())).jobs:
            await asyncio.sleep(0.02)


async def compacted(house: House) -> None:
    """Compactions that a host asks for, proposes and makes."""
    client = house.client
    await client.ingest_batch(ref("c"), [*turn(1), *turn(2), *turn(3)])
    proposal = await client.compact(
        ref("c"), budget=budget(3_000), force=True, propose_only=True, focus=LONG
    )
    await client.should_compact(ref("c"), budget=budget(3_000), prompt_tokens=2_900)
    await client.commit_compaction(ref("c"), proposal.proposal_id, accept=True)
    await client.ingest_batch(ref("c"), turn(4))
    await client.compact(ref("c"), budget=budget(2_000), force=True, focus=LONG)
    await client.ingest_batch(ref("h"), turn(1))
    change = t.RecordHostChangeRequest.HostCompaction(
        first_sequence=1, last_sequence=4, summary=LONG
    )
    await client.record_host_change(ref("h"), change_id="one", compacted=change)


async def recalled(house: House) -> None:
    """Everything that is looked for."""
    client = house.client
    await client.recall.search(ref(), CANARY)
    await client.recall.search(ref(), f"{CANARY}.*", mode=t.SEARCH_MODE_REGEX)
    summary = (await house.export(ref("c"))).summaries[0].info.id
    await client.recall.inspect(ref("c"), summary)
    await client.recall.expand(ref("c"), summary_ids=[summary])
    arguments = f'{{"query": "{CANARY}"}}'.encode()
    await client.call_tool(ref(), "ctx_search", arguments_json=arguments)
    await client.call_tool(ref(), CANARY, arguments_json=arguments)


async def projected(house: House) -> None:
    """A list and a session in the forms of harnesses."""
    for target in (t.PROJECTION_TARGET_CODEX, t.PROJECTION_TARGET_ANTHROPIC):
        options = t.ProjectionOptions(target=target)
        await house.client.projection.project(options, session=ref())
        await house.client.projection.project(options, messages=turn(1))
        await house.client.assemble(ref(), projection=options)


async def spawned(house: House) -> None:
    """A child, from its spawn to its end."""
    client = house.client
    child = ref("child")
    made = await client.prepare_subagent_spawn(
        ref(), child, objective=LONG, context_mode=t.CONTEXT_MODE_FORK
    )
    await client.bootstrap(child, spawn_token=made.spawn_token, history=[user(LONG)])
    await client.end_subagent(child, reason=t.SUBAGENT_END_REASON_COMPLETED)


async def moved(house: House) -> None:
    """A session that comes in and goes out."""
    await house.client.sessions.import_session(ref("imported"), [*turn(1), *turn(2)])
    await house.export(ref("imported"))
    await house.client.sessions.delete(ref("imported"))
    await house.client.reset_session(ref("h"))
    await house.client.end_session(ref("h"))


async def refused(house: House) -> None:
    """What is wrong, with the word in what is wrong."""
    client = house.client
    wrong: list[Callable[[], Awaitable[Any]]] = [
        lambda: client.recall.search(ref(), f"({CANARY}", mode=t.SEARCH_MODE_REGEX),
        lambda: client.assemble(ref(), current_message_id=CANARY),
        lambda: client.engines.assign(scope=ref(), engine_id=CANARY),
        lambda: client.ingest(ref(), t.Message(role=t.ROLE_CUSTOM, custom_role=LONG)),
        lambda: client.recall.inspect(ref(), f"no summary of {CANARY}"),
        lambda: client.record_host_change(ref(), change_id=CANARY * 100),
    ]
    for call in wrong:
        with contextlib.suppress(ContextEngineError):
            await call()


async def lent(house: House) -> None:
    """Summaries by a harness's model, which answers well, and then not."""
    good = {"text": f"A note of {CANARY}.", "model": f"the model of {CANARY}", "stop_reason": LONG}
    for n, said in enumerate((good, {"text": "", "error": LONG})):
        await house.client.ingest_batch(ref(f"l{n}"), [*turn(1), *turn(2)])
        async with attached(house) as harness:
            answering = asyncio.create_task(answer_all(harness, said))
            async with compacting(house, ref(f"l{n}")):
                pass
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)


async def answer_all(harness: Harness, said: dict[str, str]) -> None:
    """Answers whatever a harness is asked."""
    while True:
        told = await harness.hears()
        if told.WhichOneof("kind") == "job":
            await harness.answer(told.job, **said)


async def failed(house: House, model: Provider) -> None:
    """A model's service that says the word where it should not."""
    named = {
        **chunk({"content": "A note."}, LONG),
        "id": f"the id of {CANARY}",
        "model": f"a {CANARY} model",
    }
    replies = [
        error(400, LONG, f"code of {CANARY}", f"kind of {CANARY}"),
        body(LONG.encode(), 500),
        stream(named),
        stream(LONG.encode()),
    ]
    for n, reply in enumerate(replies):
        model.replies[:] = [reply]
        await house.client.ingest_batch(ref(f"f{n}"), [*turn(1), *turn(2)])
        async with compacting(house, ref(f"f{n}")):
            pass
