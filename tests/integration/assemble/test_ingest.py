"""`ingest` in Assemble stores first, and nothing else of an assembly writes. See
docs/semantics.md#order-of-work."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from contextengine import types as t
from tests.integration.harness import House, budget, ref, texts

from .asking import (
    ask,
    assign,
    calls,
    hashes,
    ids_of,
    judged,
    origins,
    reply_with,
    result,
    say,
    store,
    without_ids,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
STORED, DUPLICATE, CONFLICT = (
    t.StoredMessage.DISPOSITION_STORED,
    t.StoredMessage.DISPOSITION_DUPLICATE,
    t.StoredMessage.DISPOSITION_CONFLICT,
)


@pytest.mark.parametrize("engine", ["dag", "legacy"])
async def test_one_call_a_step(shared: House, session: t.SessionRef, engine: str) -> None:
    await assign(shared, session, engine)
    asked = await ask(shared, session, ingest=[say("u1")])
    stepped = await ask(
        shared, session, ingest=[calls("a1", "c1", "c2"), result("r1", "c1"), result("r2", "c2")]
    )
    assert (asked.revision, stepped.revision) == (1, 2)
    assert [(s.index, s.id, s.sequence, s.disposition) for s in stepped.stored] == [
        (0, "a1", 2, STORED),
        (1, "r1", 3, STORED),
        (2, "r2", 4, STORED),
    ]
    assert ids_of(stepped.items) == ["u1", "a1", "r1", "r2"]
    assert ids_of(await shared.rows(session)) == ["u1", "a1", "r1", "r2"]
    assert stepped.engine_id == engine
    assert stepped.outcome == t.AssembleResponse.OUTCOME_FITS
    assert await judged(shared, stepped, session) == []


async def test_items_say_what_the_rows_say(shared: House, session: t.SessionRef) -> None:
    reply = await ask(shared, session, ingest=[say("u1"), reply_with("a1"), say("u2")])
    rows = await shared.rows(session)
    assert [(i.origin.sequence, i.content_hash, i.tokens) for i in reply.items] == [
        (row.sequence, row.content_hash, row.tokens) for row in rows
    ]
    assert [i.message for i in reply.items] == [row.message for row in rows]
    assert reply.estimated_tokens == sum(row.tokens for row in rows)
    assert [(s.content_hash, s.tokens) for s in reply.stored] == [
        (r.content_hash, r.tokens) for r in rows
    ]


async def test_the_same_again_is_a_duplicate(shared: House, session: t.SessionRef) -> None:
    first = await ask(shared, session, ingest=[say("u1"), reply_with("a1")])
    again = await ask(shared, session, ingest=[say("u1"), reply_with("a1")])
    assert [s.disposition for s in again.stored] == [DUPLICATE, DUPLICATE]
    assert [s.sequence for s in again.stored] == [1, 2]
    assert (again.revision, hashes(again)) == (first.revision, hashes(first))


async def test_a_conflict_is_listed_and_stops_nothing(shared: House, session: t.SessionRef) -> None:
    first = await ask(shared, session, ingest=[say("u1")])
    changed = say("u1", 9)
    reply = await ask(shared, session, ingest=[changed, reply_with("a1")])
    assert [(s.disposition, s.sequence) for s in reply.stored] == [(CONFLICT, 1), (STORED, 2)]
    assert reply.stored[0].content_hash == first.items[0].content_hash
    assert reply.stored[0].conflicting_hash not in (b"", first.items[0].content_hash)
    assert texts(reply.items) == texts([say("u1"), reply_with("a1")])


async def test_a_request_id_stands_in_for_ids(shared: House, session: t.SessionRef) -> None:
    messages = without_ids([say("u1"), reply_with("a1")])
    first = await ask(shared, session, ingest=messages, request_id="once")
    again = await ask(shared, session, ingest=messages, request_id="once")
    assert list(again.stored) == list(first.stored)
    assert hashes(again) == hashes(first)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await ask(shared, session, ingest=without_ids([say("u2")]), request_id="once")
    assert refused.value.code() == grpc.StatusCode.ALREADY_EXISTS


async def test_without_either_a_message_is_new(shared: House, session: t.SessionRef) -> None:
    messages = without_ids([say("u1")])
    await ask(shared, session, ingest=messages)
    reply = await ask(shared, session, ingest=messages)
    assert origins(reply) == ["1", "2"]
    assert reply.items[0].content_hash == reply.items[1].content_hash


async def test_an_assembly_writes_nothing_but_ingest(shared: House, session: t.SessionRef) -> None:
    await store(shared, session, [say("u1", 300), reply_with("a1", 300), say("u2")])
    before, rows = await shared.client.get_status(session), await shared.rows(session)
    for fields in (
        {},
        {"budget": budget(1)},
        {"budget": budget(100), "model": "claude-sonnet-4-5"},
        {"explain": True, "prompt": [t.Part(text=t.TextPart(text="and now?"))]},
        {"current_token_count": 10, "known_epoch": "e1.x", "known_context_hash": b"no such list"},
        {"live": t.LiveList(messages=[say("u9")])},
    ):
        await ask(shared, session, **fields)
    assert await shared.client.get_status(session) == before
    assert await shared.rows(session) == rows


async def test_an_assembly_of_no_session_makes_none(shared: House) -> None:
    nobody = ref("nobody")
    reply = await ask(shared, nobody)
    assert (len(reply.items), reply.revision) == (0, 0)
    assert reply.outcome == t.AssembleResponse.OUTCOME_FITS
    with pytest.raises(grpc.aio.AioRpcError) as missing:
        await shared.stub.GetStatus(t.GetStatusRequest(session=nobody))
    assert missing.value.code() == grpc.StatusCode.NOT_FOUND


async def test_ingest_and_live_exclude_each_other(shared: House, session: t.SessionRef) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await ask(shared, session, ingest=[say("u1")], live=t.LiveList(messages=[say("u1")]))
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "ingest" in (refused.value.details() or "")
    assert "live" in (refused.value.details() or "")


async def test_an_assembly_waits_for_the_revision_that_it_asks_for(
    shared: House, session: t.SessionRef
) -> None:
    await store(shared, session, [say("u1")])
    waiting = asyncio.ensure_future(ask(shared, session, at_least_revision=2))
    await shared.working(1)
    assert not waiting.done()
    await store(shared, session, [say("u2")])
    assert ids_of((await waiting).items) == ["u1", "u2"]


async def test_a_failed_ingest_stores_nothing_at_all(shared: House, session: t.SessionRef) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await ask(shared, session, ingest=[say("u1"), t.Message(id="nobody says this")])
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "ingest[1].role" in (refused.value.details() or "")
    assert (await ask(shared, session)).revision == 0
