"""Many writers to one session: serialised, nothing lost, nothing doubled, each writer's order
kept."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable

import grpc
import pytest

from contextengine import AsyncClient, ContextEngineError
from contextengine import types as t
from contextengine.messages import user
from tests.integration.harness import House, ref, texts

WRITERS, MESSAGES = 32, 12

Writer = Callable[[AsyncClient, t.SessionRef, t.Message], Awaitable[object]]


async def by_ingest(client: AsyncClient, session: t.SessionRef, message: t.Message) -> None:
    await client.ingest(session, message)


async def by_batch(client: AsyncClient, session: t.SessionRef, message: t.Message) -> None:
    await client.ingest_batch(session, [message])


async def by_assemble(client: AsyncClient, session: t.SessionRef, message: t.Message) -> None:
    await client.assemble(session, ingest=[message])


async def by_after_turn(client: AsyncClient, session: t.SessionRef, message: t.Message) -> None:
    await client.after_turn(session, [message], advancement_key=message.id)


WAYS: tuple[Writer, ...] = (by_ingest, by_batch, by_assemble, by_after_turn)


async def write(
    house: House, writer: int, session: t.SessionRef, client: AsyncClient, start: int = 0
) -> None:
    """One writer: each message in its turn, by all ways of writing."""
    for number in range(start, MESSAGES):
        message = user(f"{writer}/{number}", id=f"{writer}/{number}")
        await WAYS[(writer + number) % len(WAYS)](client, session, message)


async def check(house: House, session: t.SessionRef, writers: int = WRITERS) -> None:
    """Everything is there once, sequences have no gaps, and each writer's order is kept; in memory
    as on disk."""
    rows = await house.rows(session)
    said = texts(rows)
    assert [row.sequence for row in rows] == list(range(1, len(rows) + 1))
    assert max(Counter(said).values()) == 1
    for writer in range(writers):
        mine = [text for text in said if text.startswith(f"{writer}/")]
        assert mine == [f"{writer}/{number}" for number in range(MESSAGES)]
    status = await house.client.get_status(session)
    assert (status.message_count, status.last_sequence) == (len(rows), len(rows))
    assert status.message_tokens == sum(row.tokens for row in rows)
    warm = await house.client.assemble(session, budget=t.Budget(message_tokens=100_000))
    assert texts(warm.items) == said
    house.forget()
    cold = await house.client.assemble(session, budget=t.Budget(message_tokens=100_000))
    assert cold == warm


async def test_many_writers_to_one_session(house: House) -> None:
    await asyncio.gather(*(write(house, n, ref(), house.client_of()) for n in range(WRITERS)))
    await check(house, ref())
    assert (await house.client.get_status(ref())).revision <= WRITERS * MESSAGES


async def test_one_channel_carries_many_writers(house: House) -> None:
    await asyncio.gather(*(write(house, n, ref(), house.client) for n in range(WRITERS)))
    await check(house, ref())


async def test_writers_under_an_id_and_its_key(house: House) -> None:
    await house.client.bootstrap(ref("s1", key="main"))
    names = [ref("s1"), ref("", key="main"), ref("s1", key="main")]
    await asyncio.gather(*(write(house, n, names[n % 3], house.client) for n in range(WRITERS)))
    await check(house, ref("s1"))


async def test_two_keys_are_two_sessions(house: House) -> None:
    keys = [ref("", key="one"), ref("", key="two")]
    await asyncio.gather(
        *(write(house, n, key, house.client) for key in keys for n in range(WRITERS // 2))
    )
    for key in keys:
        await check(house, key, WRITERS // 2)


async def test_writers_that_create_the_session_together(house: House) -> None:
    replies = await asyncio.gather(*(house.client.bootstrap(ref()) for _ in range(16)))
    assert sum(reply.created for reply in replies) == 1
    assert {reply.revision for reply in replies} == {1}


async def test_all_send_the_same(house: House) -> None:
    message = user("one", id="m1")
    replies = await asyncio.gather(*(house.client.ingest(ref(), message) for _ in range(WRITERS)))
    stored = [reply.stored.disposition == t.StoredMessage.DISPOSITION_STORED for reply in replies]
    assert sum(stored) == 1
    assert {reply.stored.sequence for reply in replies} == {1}
    assert len(await house.rows(ref())) == 1


async def test_all_send_the_same_request(house: House) -> None:
    request = t.IngestBatchRequest(
        session=ref(), messages=[user("one", id=""), user("one", id="")], request_id="r1"
    )
    replies = await asyncio.gather(*(house.stub.IngestBatch(request) for _ in range(WRITERS)))
    assert all(reply == replies[0] for reply in replies)
    assert len(await house.rows(ref())) == 2


async def test_all_commit_the_same_turn(house: House) -> None:
    request = t.AfterTurnRequest(
        session=ref(),
        messages=[user("one", id="")],
        advancement_key="k1",
        usage=t.Usage(input_tokens=1),
    )
    replies = await asyncio.gather(*(house.stub.AfterTurn(request) for _ in range(WRITERS)))
    committed = [reply.status == t.AfterTurnResponse.STATUS_COMMITTED for reply in replies]
    assert sum(committed) == 1
    assert len(await house.rows(ref())) == 1
    assert (await house.client.get_status(ref())).total_usage.input_tokens == 1


async def test_all_claim_the_same_id_for_other_content(house: House) -> None:
    calls = (house.client.ingest(ref(), user(f"text {n}", id="m1")) for n in range(WRITERS))
    replies = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(reply, t.IngestResponse) for reply in replies) == 1
    assert (
        sum(getattr(reply, "reason", "") == "MESSAGE_CONFLICT" for reply in replies) == WRITERS - 1
    )
    assert len(await house.rows(ref())) == 1


async def test_the_cache_is_evicted_between_calls(house: House) -> None:
    house.app.core.cache.capacity = 0
    writers = [write(house, n, ref(), house.client) for n in range(8)]
    others = [write(house, n, ref("s2"), house.client) for n in range(8)]
    await asyncio.gather(*writers, *others)
    assert len(house.app.core.cache) == 0
    await check(house, ref(), 8)
    await check(house, ref("s2"), 8)


async def test_a_restart_in_between(house: House) -> None:
    async def insist(writer: int) -> None:
        """Goes on with its order through the restart, as a harness does: what was not answered is
        sent again."""
        number = 0
        while number < MESSAGES:
            message = user(f"{writer}/{number}", id=f"{writer}/{number}")
            try:
                await house.client.ingest(ref(), message, timeout=5)
                number += 1
            except (ContextEngineError, asyncio.CancelledError, grpc.aio.UsageError):
                await asyncio.sleep(0.02)  # the house is between two lives

    writers = [asyncio.create_task(insist(n)) for n in range(8)]
    await asyncio.sleep(0.03)
    await house.restart()
    await asyncio.gather(*writers)
    await check(house, ref(), 8)


async def test_cancelled_writers_leave_whole_messages_or_none(house: House) -> None:
    chance = random.Random(7)

    async def impatient(writer: int) -> None:
        """Gives up on every other call midway, then sends it again."""
        for number in range(MESSAGES):
            batch = [user(f"{writer}/{number}", id=f"{writer}/{number}")]
            call = asyncio.ensure_future(house.client.ingest_batch(ref(), batch))
            if number % 2:
                await asyncio.sleep(chance.random() * 0.01)
                call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            await house.client.ingest_batch(ref(), batch)

    await asyncio.gather(*(impatient(n) for n in range(16)))
    await check(house, ref(), 16)


async def test_cancelled_writers_of_unnamed_messages_double_nothing(house: House) -> None:
    chance = random.Random(11)

    async def impatient(writer: int) -> None:
        for number in range(MESSAGES):
            request = t.IngestBatchRequest(
                session=ref(),
                messages=[user(f"{writer}/{number}", id="")],
                request_id=f"{writer}/{number}",
            )
            call = house.stub.IngestBatch(request)
            await asyncio.sleep(chance.random() * 0.01)
            call.cancel()
            await house.stub.IngestBatch(request)

    await asyncio.gather(*(impatient(n) for n in range(16)))
    await check(house, ref(), 16)


async def test_readers_among_writers_see_only_whole_states(house: House) -> None:
    """Batches of three appear whole, and revisions only rise."""
    done = asyncio.Event()

    async def read() -> int:
        seen, newest = 0, 0
        while not done.is_set():
            reply = await house.client.assemble(ref(), budget=t.Budget(message_tokens=100_000))
            assert len(reply.items) % 3 == 0
            assert reply.revision >= newest
            newest, seen = reply.revision, seen + 1
        return seen

    async def batches(writer: int) -> None:
        for number in range(MESSAGES):
            await house.client.ingest_batch(
                ref(), [user(f"{writer}/{number}/{n}") for n in range(3)]
            )

    readers = [asyncio.create_task(read()) for _ in range(4)]
    await asyncio.gather(*(batches(n) for n in range(8)))
    done.set()
    assert min(await asyncio.gather(*readers)) > 0
    assert len(await house.rows(ref())) == 8 * MESSAGES * 3


@pytest.mark.parametrize("evicting", [False, True])
async def test_writers_among_changes_of_other_kinds(house: House, evicting: bool) -> None:
    """Appends, usage, models, ends and native compactions at once: all of them are there in the
    end."""
    if evicting:
        house.app.core.cache.capacity = 0
    await house.client.ingest(ref(), user("first"))
    native = t.RecordHostChangeRequest.NativeCompaction()
    changes = [
        *(house.client.report_usage(ref(), usage=t.Usage(input_tokens=1)) for _ in range(20)),
        *(house.client.update_model(ref(), window=10_000 + n) for n in range(10)),
        *(house.client.end_session(ref()) for _ in range(10)),
        *(house.client.record_host_change(ref(), native_compacted=native) for _ in range(10)),
        *(house.client.ingest(ref(), user(str(n))) for n in range(40)),
    ]
    random.Random(3).shuffle(changes)
    await asyncio.gather(*changes)
    status = await house.client.get_status(ref())
    assert status.total_usage.input_tokens == 20
    assert status.message_count == 41
    house.forget()
    again = await house.client.get_status(ref())
    for said in (status, again):
        said.engine_status_json = b""  # says how much of the session is in memory
        said.revision = 0  # the ends are still being worked off
        said.ClearField("jobs")
        said.ClearField("update_time")
    assert again == status
