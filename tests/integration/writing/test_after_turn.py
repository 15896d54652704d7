"""AfterTurn: what the turn added, exactly once where a key is given; usage; and reads that wait for
a revision."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.messages import assistant, system, user
from tests.integration.harness import House, problem, ref, texts

COMMITTED = t.AfterTurnResponse.STATUS_COMMITTED
DUPLICATE = t.AfterTurnResponse.STATUS_DUPLICATE


async def test_the_turns_new_messages(house: House) -> None:
    reply = await house.client.after_turn(ref(), [user("q"), assistant("a")])
    assert (reply.status, reply.revision) == (COMMITTED, 1)
    assert [item.sequence for item in reply.stored] == [1, 2]
    assert texts(await house.rows(ref())) == ["q", "a"]


async def test_the_whole_list_with_the_count_of_what_was_there_before(house: House) -> None:
    before = [system("be brief", id=""), user("q1", id=""), assistant("a1", id="")]
    await house.stub.IngestBatch(t.IngestBatchRequest(session=ref(), messages=before))
    new = [user("q2", id=""), assistant("a2", id="")]
    reply = await house.stub.AfterTurn(
        t.AfterTurnRequest(session=ref(), messages=[*before, *new], pre_prompt_message_count=3)
    )
    assert [(item.index, item.sequence) for item in reply.stored] == [(3, 4), (4, 5)]
    assert texts(await house.rows(ref())) == ["be brief", "q1", "a1", "q2", "a2"]


async def test_a_count_of_zero_is_not_an_absent_count(house: House) -> None:
    reply = await house.client.after_turn(ref(), [user("q")], pre_prompt_message_count=0)
    assert len(reply.stored) == 1


async def test_a_count_of_all_stores_nothing(house: House) -> None:
    reply = await house.client.after_turn(ref(), [user("q")], pre_prompt_message_count=1)
    assert list(reply.stored) == []
    assert (await house.client.sessions.list()).sessions == []


@pytest.mark.parametrize("count", [3, -1])
async def test_a_count_that_cannot_be(house: House, count: int) -> None:
    with pytest.raises(ContextEngineError) as caught:
        await house.client.after_turn(ref(), [user("q"), user("r")], pre_prompt_message_count=count)
    assert problem(caught.value) == (
        "INVALID_ARGUMENT",
        "INVALID_FIELD",
        ["pre_prompt_message_count"],
    )


async def test_a_wrong_message_is_named_by_its_place_in_the_whole_list(house: House) -> None:
    messages = [user("q1"), user("q2"), t.Message(id="m3")]
    with pytest.raises(ContextEngineError) as caught:
        await house.client.after_turn(ref(), messages, pre_prompt_message_count=1)
    assert problem(caught.value)[2] == ["messages[2].role"]


async def test_what_was_there_before_is_not_looked_at(house: House) -> None:
    messages = [t.Message(), user("q1")]
    reply = await house.client.after_turn(ref(), messages, pre_prompt_message_count=1)
    assert [item.index for item in reply.stored] == [1]


async def test_an_advancement_key_makes_it_exactly_once(house: House) -> None:
    request = t.AfterTurnRequest(
        session=ref(), messages=[user("q", id=""), assistant("a", id="")], advancement_key="k1"
    )
    first = await house.stub.AfterTurn(request)
    again = await house.stub.AfterTurn(request)
    assert (first.status, again.status) == (COMMITTED, DUPLICATE)
    assert again.stored == first.stored
    assert again.revision == first.revision
    await house.restart()
    assert (await house.stub.AfterTurn(request)).status == DUPLICATE
    assert len(await house.rows(ref())) == 2


async def test_the_key_decides_whatever_comes_with_it(house: House) -> None:
    await house.client.after_turn(
        ref(), [user("q")], advancement_key="k1", usage=t.Usage(input_tokens=10)
    )
    again = await house.client.after_turn(
        ref(), [user("another")], advancement_key="k1", usage=t.Usage(input_tokens=10)
    )
    assert again.status == DUPLICATE
    assert texts(await house.rows(ref())) == ["q"]
    # The entries are those of the turn that is stored, not of what came with the key this time.
    assert [one.content_hash for one in again.stored] == [
        row.content_hash for row in await house.rows(ref())
    ]
    assert (await house.client.get_status(ref())).total_usage.input_tokens == 10
    assert (
        await house.client.after_turn(ref(), [user("r")], advancement_key="k2")
    ).status == COMMITTED


async def test_a_key_is_spent_by_a_turn_that_brings_nothing_new(house: House) -> None:
    message = user("q", id="m1")
    await house.client.assemble(ref(), ingest=[message])
    await house.client.after_turn(ref(), [message], advancement_key="k1")
    again = await house.client.after_turn(ref(), [message, user("r")], advancement_key="k1")
    assert again.status == DUPLICATE
    assert texts(await house.rows(ref())) == ["q"]


async def test_an_empty_turn_with_a_key_is_committed_once(house: House) -> None:
    await house.client.ingest(ref(), user("q"))
    first = await house.client.after_turn(ref(), [], advancement_key="k1")
    again = await house.client.after_turn(ref(), [], advancement_key="k1")
    assert (first.status, again.status) == (COMMITTED, DUPLICATE)
    assert again.revision == first.revision


async def test_messages_that_are_all_known_are_a_duplicate(house: House) -> None:
    turn = [user("q", id="m1"), assistant("a", id="m2")]
    await house.client.assemble(ref(), ingest=turn)
    reply = await house.client.after_turn(ref(), turn)
    assert (reply.status, reply.revision) == (DUPLICATE, 1)


async def test_a_conflict_is_listed_and_the_rest_is_stored(house: House) -> None:
    await house.client.ingest(ref(), user("q", id="m1"))
    reply = await house.client.after_turn(ref(), [user("edited", id="m1"), assistant("a", id="m2")])
    conflict, new = reply.stored
    assert reply.status == COMMITTED
    assert conflict.disposition == t.StoredMessage.DISPOSITION_CONFLICT
    assert conflict.content_hash != conflict.conflicting_hash != b""
    assert new.disposition == t.StoredMessage.DISPOSITION_STORED
    assert texts(await house.rows(ref())) == ["q", "a"]


async def test_a_request_id_serves_where_there_is_no_key(house: House) -> None:
    request = t.AfterTurnRequest(session=ref(), messages=[user("q", id="")], request_id="r1")
    first = await house.stub.AfterTurn(request)
    again = await house.stub.AfterTurn(request)
    assert again.stored == first.stored
    assert len(await house.rows(ref())) == 1


async def test_usage_is_counted_once_and_summed(house: House) -> None:
    usage = t.Usage(
        input_tokens=100,
        output_tokens=20,
        cache_read_tokens=30,
        cache_write_tokens=5,
        cost_micro_usd=7,
    )
    await house.client.after_turn(ref(), [user("q")], usage=usage, advancement_key="k1")
    await house.client.after_turn(ref(), [user("q")], usage=usage, advancement_key="k1")
    await house.client.after_turn(ref(), [user("r")], usage=usage, advancement_key="k2")
    await house.restart()
    status = await house.client.get_status(ref())
    total = status.total_usage
    assert (total.input_tokens, total.output_tokens, total.cost_micro_usd) == (200, 40, 14)
    assert (total.cache_read_tokens, total.cache_write_tokens) == (60, 10)
    assert (status.last_prompt_tokens, status.last_completion_tokens, status.last_total_tokens) == (
        135,
        20,
        155,
    )


async def test_usage_alone_is_a_turn(house: House) -> None:
    await house.client.ingest(ref(), user("q"))
    reply = await house.client.after_turn(ref(), usage=t.Usage(input_tokens=9))
    assert (reply.status, reply.revision) == (COMMITTED, 2)
    assert (await house.client.get_status(ref())).last_prompt_tokens == 9


async def test_usage_of_an_assembly_teaches_the_factor(house: House) -> None:
    await house.client.update_model(ref(), model="some-model")
    assembly = await house.client.assemble(ref(), ingest=[user("words " * 4_000)])
    before = (await house.client.get_status(ref())).learned_factor
    await house.client.after_turn(
        ref(),
        [assistant("a")],
        usage=t.Usage(input_tokens=assembly.estimated_tokens * 2),
        assembly_id=assembly.assembly_id,
        other_tokens=0,
    )
    assert (await house.client.get_status(ref())).learned_factor > before


async def test_a_heartbeat_is_stored_like_any_turn(house: House) -> None:
    beat = user("are you there?")
    beat.is_heartbeat = True
    reply = await house.client.after_turn(ref(), [beat], is_heartbeat=True)
    assert reply.status == COMMITTED
    (row,) = await house.rows(ref())
    assert row.message.is_heartbeat
    assert texts((await house.client.assemble(ref())).items) == ["are you there?"]


async def test_an_impossible_budget_is_refused_before_anything_is_stored(house: House) -> None:
    await house.client.ingest(ref(), user("q"))
    impossible = t.Budget(window=t.WindowBudget(window=1_000, output_reserve=1_000))
    for call in (
        house.client.after_turn(ref(), [assistant("a")], budget=impossible),
        house.client.assemble(ref(), ingest=[assistant("a")], budget=impossible),
        house.client.assemble(ref(), ingest=[assistant("a")], budget=t.Budget(message_tokens=0)),
    ):
        with pytest.raises(ContextEngineError) as caught:
            await call
        assert problem(caught.value)[:2] == ("INVALID_ARGUMENT", "BUDGET_IMPOSSIBLE")
        assert caught.value.violations[0].field.startswith("budget.")
    assert (await house.client.get_status(ref())).revision == 1


async def test_a_turn_is_stored_whatever_the_sessions_own_window_is(house: House) -> None:
    await house.client.update_model(ref(), window=1)
    reply = await house.client.after_turn(ref(), [user("q")])
    assert reply.status == COMMITTED
    assert texts(await house.rows(ref())) == ["q"]


# at_least_revision


async def test_a_read_waits_for_the_revision_that_it_names(house: House) -> None:
    await house.client.ingest(ref(), user("one"))
    waiting = [
        asyncio.create_task(call)
        for call in (
            house.client.assemble(ref(), at_least_revision=2),
            house.client.get_status(ref(), at_least_revision=2),
            house.rows(ref(), at_least_revision=2),
        )
    ]
    await house.working(3)
    assert not any(task.done() for task in waiting)
    await house.client.ingest(ref(), user("two"))
    assembly, status, rows = await asyncio.gather(*waiting)
    assert texts(assembly.items) == texts(rows) == ["one", "two"]  # type: ignore[arg-type, attr-defined]
    assert status.revision == 2  # type: ignore[attr-defined]


async def test_it_waits_for_a_session_that_is_still_to_come(house: House) -> None:
    waiting = asyncio.create_task(house.client.assemble(ref(), at_least_revision=1))
    await house.working(1)
    await house.client.ingest(ref(), user("one"))
    assert texts((await waiting).items) == ["one"]


async def test_it_waits_no_longer_than_the_deadline(house: House) -> None:
    await house.client.ingest(ref(), user("one"))
    for call in (
        house.client.assemble(ref(), at_least_revision=9, timeout=0.2),
        house.client.get_status(ref(), at_least_revision=9, timeout=0.2),
        house.rows(ref(), at_least_revision=9, timeout=0.2),
    ):
        with pytest.raises(ContextEngineError) as caught:
            await call
        assert caught.value.code is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_a_revision_that_is_there_is_not_waited_for(house: House) -> None:
    await house.client.ingest(ref(), user("one"))
    for wanted in (0, 1):
        assert (await house.client.get_status(ref(), at_least_revision=wanted)).revision == 1
