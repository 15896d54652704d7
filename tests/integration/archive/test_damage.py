"""What the archive does when it is in trouble: a bucket that does not answer, an object that is
damaged, gone or another's, credentials that are not taken. Nothing wrong is ever shown as good."""

from __future__ import annotations

import gzip

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.messages import user
from tests.integration.harness import Clock, House
from tests.object_server import Bucket, ObjectServer

from .colds import archive, asked, failed, is_archived, ref, scope, talk


async def refused(house: House, session: str = "s1") -> ContextEngineError:
    """Why a first touch is not answered, without a client that sends again."""
    return await failed(
        house.stub.Assemble(
            t.AssembleRequest(session=ref(session), budget=t.Budget(message_tokens=2_000))
        )
    )


async def test_a_bucket_that_does_not_answer_is_a_reason_to_try_again(
    cold: House, bucket: Bucket, clock: Clock, objects: ObjectServer
) -> None:
    await talk(cold)
    before = await asked(cold)
    assert await archive(cold, clock) == ["s1"]
    head = await cold.app.store.head(scope())
    objects.stop()
    for _ in range(2):
        error = await refused(cold)
        assert (error.code.name, error.reason) == ("UNAVAILABLE", "STORE_UNAVAILABLE")
        assert error.retry_after == 1.0
        assert "is in the archive" in str(error)
        assert objects.endpoint not in str(error)
    assert await cold.app.store.head(scope()) == head
    # Others are served, and what needs no rows as well.
    await talk(cold, "s2", turns=1)
    assert len((await cold.client.sessions.list()).sessions) == 2
    objects.start()
    assert await asked(cold) == before


@pytest.mark.parametrize("how", ["cut", "changed", "empty", "gone", "another's"])
async def test_an_object_that_is_not_what_was_written_is_never_shown(
    cold: House, bucket: Bucket, clock: Clock, how: str
) -> None:
    await talk(cold)
    before = await asked(cold)
    await talk(cold, "s2")
    assert sorted(await archive(cold, clock)) == ["s1", "s2"]
    head = await cold.app.store.head(scope())
    assert head is not None
    [name] = [one for one in bucket.names() if one.endswith(head.archived)]
    [other] = [one for one in bucket.names() if one != name]
    whole = bucket.read(name)
    match how:
        case "cut":
            bucket.write(name, whole[:-20])
        case "changed":
            bucket.write(
                name, gzip.compress(gzip.decompress(whole).replace(b"answer 3", b"answer 4"))
            )
        case "empty":
            bucket.write(name, b"")
        case "gone":
            bucket.erase(name)
        case _:
            bucket.write(name, bucket.read(other))
    error = await refused(cold)
    assert (error.code.name, error.reason) == ("DATA_LOSS", "CORRUPT_ROW")
    assert head.archived in str(error)
    assert "is not there" in str(error) if how == "gone" else "SHA-256" in str(error)
    assert await is_archived(cold)
    with pytest.raises(ContextEngineError, match="archive"):
        await cold.client.ingest(ref(), user("more", id="more"))
    assert (await cold.app.store.counts())["messages"] == 0
    # Put right, it comes back.
    bucket.write(name, whole)
    assert await asked(cold) == before


async def test_a_damaged_session_can_be_deleted(cold: House, bucket: Bucket, clock: Clock) -> None:
    await talk(cold)
    assert await archive(cold, clock) == ["s1"]
    [name] = bucket.names()
    bucket.write(name, b"nothing of it")
    gone = await cold.client.sessions.delete(session=ref())
    assert list(gone.session_ids) == ["s1"]
    assert bucket.names() == []


async def test_a_bucket_that_is_not_there_is_no_lost_session(cold: House, clock: Clock) -> None:
    await talk(cold)
    before = await asked(cold)
    assert await archive(cold, clock) == ["s1"]
    url = cold.settings["archive.url"]
    await cold.restart(**{"archive.url": "s3://no-such-bucket"})
    assert (await refused(cold)).reason == "STORE_UNAVAILABLE"
    await cold.restart(**{"archive.url": "", "archive.rules": []})
    assert (await refused(cold)).reason == "STORE_UNAVAILABLE"
    await cold.restart(**{"archive.url": url})
    assert await asked(cold) == before


async def test_erasing_a_tenant_is_over_when_the_objects_are_gone(
    cold: House, bucket: Bucket, clock: Clock, objects: ObjectServer
) -> None:
    await talk(cold)
    await talk(cold, "s2")
    await archive(cold, clock)
    everything = t.DeleteRequest.Everything(tenant="default", agent_id="main")
    objects.stop()
    error = await failed(cold.sessions.Delete(t.DeleteRequest(everything_of=everything)))
    assert (error.code.name, error.retry_after) == ("UNAVAILABLE", 1.0)
    assert "objects in the archive are not" in str(error)
    assert not (await cold.client.sessions.list()).sessions
    assert (await cold.app.store.archives.totals()).doomed == 2
    objects.start()
    assert len(bucket.names()) == 2
    done = await cold.client.sessions.delete(everything_of=everything)
    assert not done.more
    assert bucket.names() == []


async def test_objects_stay_for_backups_and_go_in_time(
    cold: House, bucket: Bucket, clock: Clock
) -> None:
    await talk(cold)
    await archive(cold, clock)
    [name] = bucket.names()
    await asked(cold)
    clock.advance(29 * 86_400)
    await cold.app.archive.clean()
    assert bucket.names() == [name]
    clock.advance(2 * 86_400)
    await cold.app.archive.clean()
    assert bucket.names() == []
    assert not await is_archived(cold)


async def test_the_doctor_says_how_the_archive_is(
    cold: House, bucket: Bucket, clock: Clock, objects: ObjectServer
) -> None:
    async def said() -> tuple[str, str]:
        report = await cold.client.engines.doctor()
        [check] = [one for one in report.checks if one.name == "archive"]
        return t.DoctorResponse.Status.Name(check.status), check.found

    await talk(cold)
    assert await archive(cold, clock) == ["s1"]
    status, found = await said()
    assert status == "STATUS_OK"
    assert "1 sessions" in found
    assert len(bucket.names()) == 1  # what was tried is gone
    objects.stop()
    status, found = await said()
    assert status == "STATUS_ERROR"
    assert "cannot be used" in found
    objects.start()
    bucket.erase(bucket.names()[0])
    await refused(cold)
    status, found = await said()
    assert status == "STATUS_WARNING"
    assert "missing" in found
    await cold.restart(**{"archive.url": "", "archive.rules": []})
    status, found = await said()
    assert status == "STATUS_ERROR"
    assert "archive.url is not set" in found
