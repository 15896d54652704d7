"""Import and Export: whole sessions in and out, all or none, byte for byte."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import grpc
import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.answers import answer_of
from contextengine.errors import from_rpc_error
from contextengine.exports import Tally
from contextengine.messages import assistant, tool_call, tool_result, user
from contextengine_server.api.sessions import PART_MESSAGES
from contextengine_server.context.scope import Scope
from contextengine_server.store.rows import Commit, SessionHead
from contextengine_server.testing.store.rows import message as message_row
from tests.integration.harness import PATIENCE_S, House, problem, ref, texts
from tests.integration.writing.messages import everything, result


def header(session: t.SessionRef, **more: Any) -> t.ImportRequest:
    return t.ImportRequest(header=t.ImportRequest.Header(session=session, **more))


def parts(messages: Iterable[t.Message]) -> list[t.ImportRequest]:
    return [t.ImportRequest(message=message) for message in messages]


def session_of(count: int = 30) -> list[t.Message]:
    said = []
    for n in range(count):
        said += [user(f"q{n}", id=f"q{n}"), assistant(f"a{n}", id=f"a{n}")]
    return [*said, user("go", id="go"), everything(), result()]


async def refused(house: House, requests: Iterable[t.ImportRequest]) -> ContextEngineError:
    with pytest.raises(grpc.RpcError) as caught:
        await answer_of(house.sessions.Import(iter(requests)))
    return from_rpc_error(caught.value)


async def test_what_is_exported_can_be_imported_elsewhere(house: House) -> None:
    await house.client.ingest_batch(ref(), session_of())
    rows = await house.rows(ref())
    copy = ref("copy", agent="another")
    reply = await house.client.sessions.import_session(copy, [row.message for row in rows])
    assert (reply.session_id, reply.stored_count, reply.duplicate_count) == ("copy", len(rows), 0)
    assert reply.revision == 1, "one import, one revision"
    again = await house.rows(copy)
    for row, other in zip(rows, again, strict=True):
        assert other.message == row.message
        assert (other.sequence, other.content_hash, other.tokens) == (
            row.sequence,
            row.content_hash,
            row.tokens,
        )
    assert reply.tokens == sum(row.tokens for row in rows)


async def test_an_import_names_the_model_in_the_same_revision(house: House) -> None:
    reply = await house.client.sessions.import_session(
        ref(), session_of(2), model="gpt-5", provider="openai"
    )
    assert reply.revision == 1
    status = await house.client.get_status(ref())
    assert (status.model, status.provider) == ("gpt-5", "openai")


async def test_the_very_same_again_is_no_error(house: House) -> None:
    said = session_of(3)
    first = await house.client.sessions.import_session(ref(), said, model="gpt-5")
    await house.restart()
    again = await house.client.sessions.import_session(ref(), said, model="gpt-5")
    assert (again.stored_count, again.duplicate_count) == (0, len(said))
    assert (again.revision, again.tokens) == (first.revision, first.tokens)


async def test_the_very_same_again_where_one_message_answers_several_steps(house: House) -> None:
    late = user([*tool_result("c1", "one").parts, *tool_result("c2", "two").parts])
    calling = [assistant(tool_calls=[tool_call(call, "run")]) for call in ("c1", "c2")]
    messages = [user("q"), *calling, user("wait"), late]
    await house.client.sessions.import_session(ref(), messages)
    again = await house.client.sessions.import_session(ref(), messages)
    assert (again.stored_count, again.duplicate_count) == (0, 5)


async def test_another_session_under_the_name_is_refused(house: House) -> None:
    await house.client.ingest(ref(), user("other"))
    error = await refused(house, [header(ref()), *parts(session_of(2))])
    assert problem(error)[:2] == ("ALREADY_EXISTS", "SESSION_EXISTS")
    assert error.metadata["session_id"] == "s1"
    assert texts(await house.rows(ref())) == ["other"]


async def test_a_session_that_has_no_messages_yet_takes_an_import(house: House) -> None:
    await house.client.bootstrap(ref("s1", key="main"))
    reply = await house.client.sessions.import_session(ref("", key="main"), [user("one")])
    assert (reply.session_id, reply.stored_count) == ("s1", 1)


async def test_an_import_of_nothing_makes_an_empty_session(house: House) -> None:
    reply = await house.client.sessions.import_session(ref(), [])
    assert (reply.stored_count, reply.revision) == (0, 1)
    assert (await house.client.sessions.get(ref())).session.message_count == 0


async def test_an_aborted_import_stores_nothing(house: House) -> None:
    reached = asyncio.Event()

    async def endless() -> AsyncIterator[t.ImportRequest]:
        yield header(ref())
        for message in session_of(10):
            yield t.ImportRequest(message=message)
        reached.set()
        await asyncio.Event().wait()

    call = house.sessions.Import(endless())
    await reached.wait()
    await house.working(1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await house.working(0)
    assert (await house.client.sessions.list()).sessions == []


async def test_an_import_past_its_deadline_stores_nothing(house: House) -> None:
    async def slow() -> AsyncIterator[t.ImportRequest]:
        yield header(ref())
        yield parts([user("one")])[0]
        await asyncio.Event().wait()

    with pytest.raises(grpc.RpcError) as caught:
        await house.sessions.Import(slow(), timeout=0.15)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    await house.working(0)
    assert (await house.client.sessions.list()).sessions == []


async def test_a_wrong_message_is_named_and_nothing_is_stored(house: House) -> None:
    for wrong, field in (
        ([user("one"), t.Message(id="m2")], "message[1].role"),
        ([user("one", id="m1"), user("two", id="m1")], "message[1].id"),
    ):
        error = await refused(house, [header(ref()), *parts(wrong)])
        assert problem(error)[2] == [field]
    assert (await house.client.sessions.list()).sessions == []


@pytest.mark.parametrize(
    ("requests", "field"),
    [
        ([], "header"),
        ([t.ImportRequest()], "header"),
        (parts([user("one")]), "header"),
        ([header(ref()), header(ref())], "header"),
        ([header(ref()), t.ImportRequest()], "message[0]"),
        ([header(ref("s1", agent=""))], "header.session.agent_id"),
        ([header(ref(""))], "header.session.session_id"),
    ],
)
async def test_a_stream_that_is_no_import(
    house: House, requests: list[t.ImportRequest], field: str
) -> None:
    error = await refused(house, requests)
    assert problem(error) == ("INVALID_ARGUMENT", "INVALID_FIELD", [field])
    assert (await house.client.sessions.list()).sessions == []


async def test_unnamed_messages_are_imported_as_they_are(house: House) -> None:
    said = [user("again", id=""), user("again", id="")]
    for _ in range(2):
        await house.sessions.Import(iter([header(ref()), *parts(said)]))
    assert [row.message for row in await house.rows(ref())] == said


# Export


async def test_first_the_session_then_messages_then_summaries(house: House) -> None:
    long = " and so on" * 100
    await house.client.ingest_batch(
        ref(), [user("one" + long), assistant("two" + long), user("three")]
    )
    change = t.RecordHostChangeRequest.HostCompaction(
        first_sequence=1, last_sequence=2, summary="short"
    )
    await house.client.record_host_change(ref(), compacted=change)
    kinds = [reply.WhichOneof("kind") async for reply in house.client.sessions.export(ref())]
    assert kinds == ["session", "message", "message", "message", "summary", "end"]


async def test_an_export_tells_what_it_holds_and_a_short_one_is_noticed(house: House) -> None:
    await house.client.ingest_batch(ref(), session_of(3))
    change = t.RecordHostChangeRequest.HostCompaction(
        first_sequence=1, last_sequence=2, summary="s"
    )
    await house.client.record_host_change(ref(), compacted=change)
    parts = [part async for part in house.client.sessions.export(ref())]
    for altered in (parts, parts[:-1], [*parts[:2], *parts[3:]], [*parts[:-2], parts[-1]]):
        tally = Tally()
        for part in altered:
            tally.add(part)
        if altered is parts:
            tally.check()
        else:
            with pytest.raises(ValueError, match=r"the export (ends|has)"):
                tally.check()
    tally = Tally()
    other = t.ExportResponse()
    other.CopyFrom(parts[1])
    other.message.content_hash = b"other"
    for part in (parts[0], other, *parts[2:]):
        tally.add(part)
    with pytest.raises(ValueError, match="are not those"):
        tally.check()
    with pytest.raises(ValueError, match="follows the end"):
        tally.add(parts[1])


@pytest.mark.parametrize("told", [0, 2, 4])
async def test_an_import_of_another_number_than_it_says_stores_nothing(
    house: House, told: int
) -> None:
    first = header(ref())
    first.header.message_count = told
    error = await refused(house, [first, *parts([user("a"), user("b"), user("c")])])
    assert error.violations[0].field == "header.message_count"
    with pytest.raises(ContextEngineError, match="SESSION_NOT_FOUND"):
        await house.client.sessions.get(ref())
    first.header.message_count = 3
    stored = await house.sessions.Import(iter([first, *parts([user("a"), user("b"), user("c")])]))
    assert stored.stored_count == 3


async def test_as_of_every_revision(house: House) -> None:
    await house.client.ingest(ref(), user("one"))  # 1
    await house.client.ingest(ref(), assistant(tool_calls=[tool_call("c1", "look")]))  # 2
    await house.client.ingest(ref(), tool_result("c1", "found"))  # 3
    rewind = t.RecordHostChangeRequest.Rewind(after_sequence=1)
    await house.client.record_host_change(ref(), rewind=rewind)  # 4
    await house.client.ingest(ref(), user("two"))  # 5
    await house.client.reset_session(ref())  # 6
    await house.client.ingest(ref(), user("three"))  # 7
    wanted = {
        0: [],
        1: ["one"],
        2: ["one", "call:look"],
        3: ["one", "call:look", "found"],
        4: ["one"],
        5: ["one", "two"],
        6: [],
        7: ["three"],
    }
    await house.restart()
    for revision, said in wanted.items():
        assert texts(await house.rows(ref(), as_of_revision=revision)) == said, revision
    every = await house.rows(ref(), include_retired=True)
    assert [(row.sequence, row.created_revision, row.retired_revision) for row in every] == [
        (1, 1, 6),
        (2, 2, 4),
        (3, 3, 4),
        (4, 5, 6),
        (5, 7, 0),
    ]


async def test_as_of_a_revision_with_what_had_left_the_view(house: House) -> None:
    """What came later is not shown, whatever else is."""
    await house.client.ingest_batch(ref(), [user("q1"), assistant("a1 " * 300), user("q2")])
    await house.client.record_host_change(
        ref(), rewind=t.RecordHostChangeRequest.Rewind(after_sequence=2)
    )
    await house.client.ingest(ref(), user("q3"))
    change = t.RecordHostChangeRequest.HostCompaction(
        first_sequence=1, last_sequence=2, summary="Done."
    )
    await house.client.record_host_change(ref(), compacted=change)
    for revision, sequences, summaries in (
        (1, [1, 2, 3], 0),
        (2, [1, 2, 3], 0),
        (3, [1, 2, 3, 4], 0),
        (4, [1, 2, 3, 4], 1),
    ):
        then = await house.export(ref(), as_of_revision=revision, include_retired=True)
        assert [row.sequence for row in then.messages] == sequences
        assert len(then.summaries) == summaries


@pytest.mark.parametrize(
    ("revision", "expected"),
    [
        (2, ("NOT_FOUND", "ROW_NOT_FOUND")),
        (2**63 - 1, ("NOT_FOUND", "ROW_NOT_FOUND")),
        (-1, ("INVALID_ARGUMENT", "INVALID_FIELD")),
        (-(2**63), ("INVALID_ARGUMENT", "INVALID_FIELD")),
    ],
)
async def test_as_of_a_revision_that_never_was(
    house: House, revision: int, expected: tuple[str, str]
) -> None:
    await house.client.ingest(ref(), user("one"))
    with pytest.raises(ContextEngineError) as caught:
        await house.rows(ref(), as_of_revision=revision)
    assert problem(caught.value) == (*expected, ["as_of_revision"])


async def test_an_import_of_several_parts(house: House) -> None:
    said = [user(f"q{n}", id=f"q{n}") for n in range(3 * PART_MESSAGES + 1)]
    done = await house.sessions.Import(iter([header(ref()), *parts(said)]))
    assert (done.stored_count, done.revision) == (len(said), 1)
    assert texts(await house.rows(ref())) == [f"q{n}" for n in range(len(said))]


async def test_half_an_import_is_seen_by_nobody_and_goes(house: House) -> None:
    """Whether its stream ends too soon, its client goes away or the server dies."""
    said = [user(f"q{n}", id=f"q{n}") for n in range(2 * PART_MESSAGES)]
    error = await refused(house, [header(ref(), message_count=1), *parts(said)])
    assert [one.field for one in error.violations] == ["header.message_count"]
    assert await house.app.core.store.staged(2**60, 9) == []

    waiting = asyncio.Event()

    async def endless() -> AsyncIterator[t.ImportRequest]:
        for request in [header(ref()), *parts(said)]:
            yield request
        await waiting.wait()

    call = house.sessions.Import(endless())
    await staged(house, 1)
    assert not (await house.client.sessions.list()).sessions
    call.cancel()
    await staged(house, 0)

    store = house.app.core.store
    left = SessionHead(Scope("default", "agent", "s1"), "of a dead server", 0, 1)
    await store.commit(Commit(left, 0, [message_row(1)]))
    await house.restart()
    await staged(house, 0)
    assert await house.app.core.store.messages(left.scope) == []


async def staged(house: House, number: int) -> None:
    """Waits until so many sessions are staged."""
    async with asyncio.timeout(PATIENCE_S):
        while len(await house.app.core.store.staged(2**60, 9)) != number:
            await asyncio.sleep(0.01)
