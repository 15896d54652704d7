"""Reset empties the view, End says that a conversation is over for now, Dispose frees memory; none
of them erases."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.messages import user
from tests.integration.harness import PATIENCE_S, Clock, House, house, problem, ref, texts


async def say(house: House, *said: str) -> None:
    await house.client.ingest_batch(ref(), [user(text) for text in said])


async def shown(house: House) -> list[str]:
    return texts((await house.client.assemble(ref())).items)


# ResetSession


async def test_reset_empties_the_view_and_keeps_the_rows(house: House) -> None:
    await say(house, "one", "two")
    before = await house.rows(ref())
    reply = await house.client.reset_session(ref())
    assert (reply.revision, reply.retired_count) == (2, 2)
    assert await shown(house) == []
    assert await house.rows(ref()) == []
    assert await house.rows(ref(), as_of_revision=1) == [retired(row, 2) for row in before]
    assert await house.rows(ref(), include_retired=True) == [retired(row, 2) for row in before]


def retired(
    row: t.ExportResponse.ExportedMessage, revision: int
) -> t.ExportResponse.ExportedMessage:
    copy = t.ExportResponse.ExportedMessage()
    copy.CopyFrom(row)
    copy.retired_revision = revision
    return copy


async def test_sequences_go_on_behind_a_reset(house: House) -> None:
    await say(house, "one", "two")
    await house.client.reset_session(ref())
    assert (await house.client.ingest(ref(), user("three"))).stored.sequence == 3
    await house.restart()
    assert await shown(house) == ["three"]


async def test_the_epoch_says_reset(house: House) -> None:
    await say(house, "one")
    before = await house.client.assemble(ref())
    await house.client.reset_session(ref())
    await say(house, "one")
    after = await house.client.assemble(
        ref(), known_context_hash=before.context_hash, known_epoch=before.context_projection.epoch
    )
    assert after.cache.epoch_cause == t.EPOCH_CAUSE_RESET


async def test_a_message_of_before_the_reset_is_stored_anew(house: House) -> None:
    message = user("one", id="m1")
    await house.client.ingest(ref(), message)
    await house.client.reset_session(ref())
    stored = (await house.client.ingest(ref(), message)).stored
    assert (stored.disposition, stored.sequence) == (t.StoredMessage.DISPOSITION_STORED, 2)


async def test_a_reset_request_is_answered_once(house: House) -> None:
    await say(house, "one", "two")
    first = await house.client.reset_session(ref(), request_id="r1")
    await say(house, "three")
    await house.restart()
    again = await house.client.reset_session(ref(), request_id="r1")
    assert again == first
    assert await shown(house) == ["three"]


# EndSession


async def test_end_is_not_the_end_of_writing(house: House) -> None:
    await say(house, "one")
    assert (await house.client.end_session(ref())).ended
    assert (await house.client.get_status(ref())).ended
    assert await shown(house) == ["one"]
    await say(house, "two")
    assert not (await house.client.get_status(ref())).ended
    assert await shown(house) == ["one", "two"]


async def test_a_session_ends_once(house: House) -> None:
    await say(house, "one")
    first = await house.client.end_session(ref())
    again = await house.client.end_session(ref())
    assert (again.revision, again.ended) == (first.revision, False)


async def test_an_end_request_is_answered_once(house: House) -> None:
    await say(house, "one")
    first = await house.client.end_session(ref(), request_id="r1")
    await say(house, "two")
    assert await house.client.end_session(ref(), request_id="r1") == first
    assert not (await house.client.get_status(ref())).ended


async def test_an_ended_session_is_ended_after_a_restart(house: House) -> None:
    await say(house, "one")
    await house.client.end_session(ref())
    await house.restart()
    assert (await house.client.get_status(ref())).ended
    assert (await house.client.sessions.get(ref())).session.ended


# What all of them have in common


@pytest.mark.parametrize("call", ["reset_session", "end_session", "compact"])
async def test_another_revision_than_expected_changes_nothing(house: House, call: str) -> None:
    await say(house, "one")
    await say(house, "two")
    for expected in (0, 1, 3, -1, 2**63 - 1):
        with pytest.raises(ContextEngineError) as caught:
            await getattr(house.client, call)(ref(), expected_revision=expected)
        assert problem(caught.value) == (
            "FAILED_PRECONDITION",
            "REVISION_MISMATCH",
            ["expected_revision"],
        )
        assert caught.value.metadata == {"expected": str(expected), "actual": "2"}
    assert (await house.client.get_status(ref())).revision == 2
    await getattr(house.client, call)(ref(), expected_revision=2)


@pytest.mark.parametrize("call", ["reset_session", "end_session"])
async def test_a_known_request_is_answered_whatever_the_revision_is_by_now(
    house: House, call: str
) -> None:
    await say(house, "one")
    first = await getattr(house.client, call)(ref(), request_id="r1", expected_revision=1)
    await say(house, "two")
    again = await getattr(house.client, call)(ref(), request_id="r1", expected_revision=1)
    assert again == first


@pytest.mark.parametrize("call", ["reset_session", "end_session"])
async def test_another_request_under_the_same_id_is_refused(house: House, call: str) -> None:
    await say(house, "one")
    await getattr(house.client, call)(ref(), request_id="r1")
    with pytest.raises(ContextEngineError) as caught:
        await getattr(house.client, call)(ref(), request_id="r1", expected_revision=7)
    assert problem(caught.value) == ("ALREADY_EXISTS", "REQUEST_ID_REUSED", ["request_id"])


async def test_one_id_serves_requests_of_different_rpcs(house: House) -> None:
    await say(house, "one")
    await house.client.end_session(ref(), request_id="r1")
    assert (await house.client.reset_session(ref(), request_id="r1")).retired_count == 1


# DisposeSession


async def test_dispose_only_frees_memory(house: House) -> None:
    await say(house, "one")
    before = await house.client.assemble(ref())
    assert (await house.client.dispose_session(ref())).disposed
    assert len(house.app.core.cache) == 0
    assert not (await house.client.dispose_session(ref())).disposed
    assert await house.client.assemble(ref()) == before


async def test_disposing_of_what_never_was_creates_nothing(house: House) -> None:
    assert not (await house.client.dispose_session(ref("none"))).disposed
    assert (await house.client.sessions.list()).sessions == []


async def test_asking_for_sessions_that_are_not_there_holds_no_memory(house: House) -> None:
    for index in range(20):
        with pytest.raises(ContextEngineError):
            await house.client.get_status(ref(f"none-{index}"))
        await house.client.assemble(ref(f"none-{index}"))
    assert len(house.app.core.cache) == 0


# Idle sessions


async def ended(house: House, session: t.SessionRef) -> bool:
    """Waits until it is."""
    async with asyncio.timeout(PATIENCE_S):
        while not (await house.client.get_status(session)).ended:
            await asyncio.sleep(0.05)
    return True


async def test_idle_sessions_end_by_themselves(tmp_path: Path, clock: Clock) -> None:
    async with house(tmp_path, clock=clock, **{"sessions.idle_end": "1s"}) as idle:
        await idle.client.ingest(ref("quiet"), user("one"))
        await idle.client.ingest(ref("busy"), user("one"))
        clock.advance(0.9)
        await idle.client.ingest(ref("busy"), user("two"))
        clock.advance(0.2)
        assert await ended(idle, ref("quiet"))
        assert not (await idle.client.get_status(ref("busy"))).ended
        status = await idle.client.get_status(ref("quiet"))
        clock.advance(60)
        assert await ended(idle, ref("busy"))
        assert (await idle.client.get_status(ref("quiet"))).revision == status.revision, (
            "a session ends once"
        )
        await idle.client.ingest(ref("quiet"), user("two"))
        assert not (await idle.client.get_status(ref("quiet"))).ended, "a write opens it again"


async def test_by_default_no_session_ends_by_itself(clocked: House, clock: Clock) -> None:
    await clocked.client.ingest(ref(), user("one"))
    clock.advance(10 * 365 * 86_400)
    await asyncio.sleep(0.4)
    assert not (await clocked.client.get_status(ref())).ended
