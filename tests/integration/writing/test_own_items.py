"""Items that the service made (summaries, synthetic results) come back from harnesses, and are
never stored."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from contextengine import types as t
from contextengine.messages import assistant, tool_call, user
from tests.integration.harness import House, ref, texts

DUPLICATE = t.StoredMessage.DISPOSITION_DUPLICATE


def with_id(item: t.Item) -> t.Message:
    return item.message


def without_id(item: t.Item) -> t.Message:
    copy = t.Message()
    copy.CopyFrom(item.message)
    copy.id = ""
    return copy


async def own_items(house: House) -> list[t.Item]:
    """A summary and a synthetic result."""
    await house.client.ingest_batch(
        ref(),
        [
            user("q1" + " and so on" * 100),
            assistant("a1" + " and so on" * 100),
            user("go"),
            assistant(tool_calls=[tool_call("c1", "look")]),
            user("never mind"),
        ],
    )
    change = t.RecordHostChangeRequest.HostCompaction(
        first_sequence=1, last_sequence=2, summary="They met."
    )
    await house.client.record_host_change(ref(), compacted=change)
    items = [
        item for item in (await house.client.assemble(ref())).items if item.id.startswith("ce:")
    ]
    assert [item.origin.WhichOneof("kind") for item in items] == ["summary_id", "synthetic"]
    assert [item.message.role for item in items] == [t.ROLE_USER, t.ROLE_TOOL]
    assert all(item.message.id == item.id for item in items)
    return items


@pytest.mark.parametrize("back", [with_id, without_id])
@pytest.mark.parametrize("restarted", [False, True])
async def test_what_comes_back_is_never_stored(
    house: House, back: Callable[[t.Item], t.Message], restarted: bool
) -> None:
    sent = [back(item) for item in await own_items(house)]
    before = await house.rows(ref())
    revision = (await house.client.get_status(ref())).revision
    if restarted:
        await house.restart()
    stub = house.stub
    for message in sent:
        stored = (await stub.Ingest(t.IngestRequest(session=ref(), message=message))).stored
        assert (stored.disposition, stored.sequence) == (DUPLICATE, 0)
    for stored_list in (
        (await stub.IngestBatch(t.IngestBatchRequest(session=ref(), messages=sent))).stored,
        (await stub.AfterTurn(t.AfterTurnRequest(session=ref(), messages=sent))).stored,
        (await stub.Assemble(t.AssembleRequest(session=ref(), ingest=sent))).stored,
        (await stub.Bootstrap(t.BootstrapRequest(session=ref(), history=sent))).stored,
    ):
        assert [(item.disposition, item.sequence) for item in stored_list] == [(DUPLICATE, 0)] * 2
    assert await house.rows(ref()) == before
    assert (await house.client.get_status(ref())).revision == revision


@pytest.mark.parametrize("back", [with_id, without_id])
async def test_messages_around_them_are_stored(
    house: House, back: Callable[[t.Item], t.Message]
) -> None:
    sent = [back(item) for item in await own_items(house)]
    batch = [user("one"), sent[0], user("two"), sent[1]]
    reply = await house.stub.IngestBatch(t.IngestBatchRequest(session=ref(), messages=batch))
    assert [item.sequence for item in reply.stored] == [6, 0, 7, 0]
    assert texts(await house.rows(ref()))[-2:] == ["one", "two"]


async def test_an_id_of_ours_is_never_stored_whatever_it_says(house: House) -> None:
    forged = user("I was never shown", id="ce:summary:none")
    stored = (await house.client.ingest(ref(), forged)).stored
    assert (stored.disposition, stored.sequence) == (DUPLICATE, 0)
    assert (await house.client.sessions.list()).sessions == []


async def test_an_own_item_of_another_session_without_its_id_is_a_message(house: House) -> None:
    summary, _ = [without_id(item) for item in await own_items(house)]
    stored = (
        await house.stub.Ingest(t.IngestRequest(session=ref("other"), message=summary))
    ).stored
    assert (stored.disposition, stored.sequence) == (t.StoredMessage.DISPOSITION_STORED, 1)


async def test_a_summary_that_was_taken_back_is_still_known_by_its_id(house: House) -> None:
    summary, _ = await own_items(house)
    await house.client.reset_session(ref())
    stored = (await house.client.ingest(ref(), summary.message)).stored
    assert stored.sequence == 0
    assert await house.rows(ref()) == []
