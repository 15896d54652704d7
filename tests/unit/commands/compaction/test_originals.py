"""What a fold is made from: the messages below the summaries, within bounds, and without what no
summary stands for."""

from __future__ import annotations

import asyncio

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.compaction import originals
from contextengine_server.compaction.originals import OriginalMessages
from contextengine_server.store.errors import StoreError
from contextengine_server.summarize import SourceMessage, SummaryRequest
from tests.unit.commands.house import (
    S1,
    TENANT,
    Server,
    assistant,
    incoming,
    result,
    scope,
    turns,
    user,
)

SECRET = pb.Part(reasoning=pb.ReasoningPart(text="what nobody but the model may read"))


def fold(*ranges: tuple[int, int]) -> SummaryRequest:
    at = scope()
    sources = tuple(
        SourceMessage("summary", f"summary of {first} to {last}", first, last=last)
        for first, last in ranges
    )
    return SummaryRequest(
        sources, 10_000, 1_000, depth=1, tenant=at.tenant, agent=at.agent, session=at.session
    )


async def read(server: Server, *ranges: tuple[int, int]) -> list[SourceMessage]:
    return list(await OriginalMessages(server.store)(fold(*ranges)))


async def store(server: Server, *messages: pb.Message) -> None:
    await server.context.ingest.run(TENANT, S1, incoming(*messages), None)


async def test_messages_stand_for_their_summaries_in_order(server: Server) -> None:
    await server.talk(1, 10)
    found = await read(server, (1, 4), (5, 12))
    assert [message.sequence for message in found] == list(range(1, 13))
    assert [message.role for message in found[:3]] == ["user", "assistant", "user"]
    assert found[0].text.startswith("u1 ")


async def test_private_reasoning_is_left_out_and_calls_are_told_apart(server: Server) -> None:
    call = assistant("I look.", "a", "c1")
    call.parts.insert(0, SECRET)
    await store(
        server, user("look it up", "u"), call, result("c1", "it is 42", "r"), user("ok", "v")
    )
    found = await read(server, (1, 3))
    assert "nobody but the model" not in repr(found)
    assert (found[1].text, [call.name for call in found[1].calls]) == ("I look.", ["exec"])
    assert [(one.id, one.text) for one in found[2].results] == [("c1", "it is 42")]
    assert found[2].text == ""


async def test_what_is_pinned_was_never_summarized(server: Server) -> None:
    pinned = user("always shown", "p", labels={"pinned": "true"})
    await store(server, user("one", "a"), pinned, user("two", "b"), user("three", "c"))
    assert [message.text for message in await read(server, (1, 3))] == ["one", "two"]


async def test_beyond_the_bound_the_texts_stand_for_the_oldest(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.talk(1, 10)
    rows = await server.store.messages(scope(), 5, 8)
    monkeypatch.setattr(originals, "MAX_TOKENS", sum(row.tokens for row in rows))
    found = await read(server, (1, 2), (3, 4), (5, 8))
    assert [message.text for message in found[:2]] == ["summary of 1 to 2", "summary of 3 to 4"]
    assert [message.sequence for message in found[2:]] == [5, 6, 7, 8]
    monkeypatch.setattr(originals, "MAX_TOKENS", 10**9)
    monkeypatch.setattr(originals, "MAX_MESSAGES", 5)
    assert [message.role for message in await read(server, (1, 4), (5, 8))][:1] == ["summary"]


async def test_rows_that_cannot_be_read_leave_the_texts(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.talk(1, 4)

    async def failing(*_: object, **__: object) -> None:
        raise StoreError

    monkeypatch.setattr(server.store, "messages", failing)
    assert [m.text for m in await read(server, (1, 4))] == ["summary of 1 to 4"]


async def test_others_have_their_turn_while_messages_are_decoded(server: Server) -> None:
    await store(server, *incoming_turns(200))
    turns_had = 0

    async def others() -> None:
        nonlocal turns_had
        while True:
            turns_had += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    assert len(await read(server, (1, 400))) == 400
    beside.cancel()
    assert turns_had > 20


def incoming_turns(count: int) -> list[pb.Message]:
    return [pb.Message.FromString(one.body) for one in turns(1, count, 12)]
