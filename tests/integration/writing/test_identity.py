"""Which messages are the same: by host id and content, by request id, or not at all."""

from __future__ import annotations

from datetime import UTC, datetime

import grpc
import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.errors import from_rpc_error
from contextengine.messages import assistant, parts_of, user
from tests.integration.harness import House, problem, ref, texts

STORED = t.StoredMessage.DISPOSITION_STORED
DUPLICATE = t.StoredMessage.DISPOSITION_DUPLICATE
CONFLICT = t.StoredMessage.DISPOSITION_CONFLICT


def bare(text: str) -> t.Message:
    """A message without an id."""
    return user(text, id="")


async def revision(house: House) -> int:
    return (await house.client.get_status(ref())).revision


async def test_the_same_id_and_content_is_a_duplicate(house: House) -> None:
    first = await house.client.ingest(ref(), user("one", id="m1"))
    again = await house.client.ingest(ref(), user("one", id="m1"))
    assert first.stored.disposition == STORED
    assert again.stored.disposition == DUPLICATE
    assert (again.stored.sequence, again.stored.content_hash, again.stored.tokens) == (
        first.stored.sequence,
        first.stored.content_hash,
        first.stored.tokens,
    )
    assert again.revision == first.revision == 1, "nothing new, nothing changed"


async def test_it_is_still_one_after_a_restart_and_an_eviction(house: House) -> None:
    await house.client.ingest(ref(), user("one", id="m1"))
    await house.restart()
    assert (await house.client.ingest(ref(), user("one", id="m1"))).stored.disposition == DUPLICATE
    house.forget()
    assert (await house.client.ingest(ref(), user("one", id="m1"))).stored.disposition == DUPLICATE


async def test_it_is_one_however_far_back_it_lies(house: House) -> None:
    first = user("the first", id="m1")
    await house.client.ingest_batch(
        ref(), [first, *(user(f"filler {n} " + "x " * 400) for n in range(400))]
    )
    house.forget()
    await house.client.assemble(ref(), budget=t.Budget(message_tokens=2_000))
    stored = (await house.client.ingest(ref(), first)).stored
    assert (stored.disposition, stored.sequence) == (DUPLICATE, 1)


async def test_the_same_id_with_other_content_is_a_conflict(house: House) -> None:
    first = (await house.client.ingest(ref(), user("one", id="m1"))).stored
    with pytest.raises(ContextEngineError) as caught:
        await house.client.ingest(ref(), user("two", id="m1"))
    assert problem(caught.value) == ("ALREADY_EXISTS", "MESSAGE_CONFLICT", ["message[0].id"])
    said = caught.value.metadata
    assert (said["index"], said["id"], said["stored_hash"]) == ("0", "m1", first.content_hash.hex())
    assert said["sent_hash"] not in ("", said["stored_hash"])
    other = (await house.client.ingest(ref("s2"), user("two", id="m1"))).stored
    assert said["sent_hash"] == other.content_hash.hex()
    assert texts(await house.rows(ref())) == ["one"]


def varied() -> list[tuple[str, t.Message]]:
    """A message, and others that differ from it in one thing that is content."""
    tool = t.Part(tool_call=t.ToolCallPart(call_id="c", name="look", arguments_json=b'{"a":1}'))
    base = t.Message(
        id="m1", role=t.ROLE_ASSISTANT, parts=[*parts_of("text"), tool, *parts_of("more")]
    )

    def other(**fields) -> t.Message:
        copy = t.Message()
        copy.CopyFrom(base)
        for name, value in fields.items():
            if name == "parts":
                del copy.parts[:]
                copy.parts.extend(value)
            else:
                setattr(copy, name, value)
        return copy

    arguments = t.Part(
        tool_call=t.ToolCallPart(call_id="c", name="look", arguments_json=b'{"a": 1}')
    )
    signed = t.Part(text=t.TextPart(text="text"), thought_signature=b"signed")
    return [
        ("base", base),
        ("role", other(role=t.ROLE_USER)),
        ("name", other(name="bob")),
        ("text", other(parts=[*parts_of("Text"), tool, *parts_of("more")])),
        ("order", other(parts=[tool, *parts_of("text"), *parts_of("more")])),
        ("one part less", other(parts=[*parts_of("text"), tool])),
        ("the bytes of arguments", other(parts=[*parts_of("text"), arguments, *parts_of("more")])),
        ("a signature", other(parts=[signed, tool, *parts_of("more")])),
    ]


@pytest.mark.parametrize(("what", "changed"), varied()[1:])
async def test_role_name_and_parts_are_content(house: House, what: str, changed: t.Message) -> None:
    await house.client.ingest(ref(), varied()[0][1])
    with pytest.raises(ContextEngineError) as caught:
        await house.client.ingest(ref(), changed)
    assert caught.value.reason == "MESSAGE_CONFLICT", what


async def test_the_name_of_a_custom_role_is_content(house: House) -> None:
    def custom(role: str) -> t.Message:
        return t.Message(id="m1", role=t.ROLE_CUSTOM, custom_role=role, parts=parts_of("x"))

    await house.client.ingest(ref(), custom("critic"))
    with pytest.raises(ContextEngineError) as caught:
        await house.client.ingest(ref(), custom("judge"))
    assert caught.value.reason == "MESSAGE_CONFLICT"


async def test_times_usage_and_labels_are_not_content(house: House) -> None:
    first = assistant("one", id="m1", labels={"a": "1"}, timestamp=datetime(2025, 1, 1, tzinfo=UTC))
    await house.client.ingest(ref(), first)
    later = assistant(
        "one",
        id="m1",
        labels={"b": "2"},
        timestamp=datetime(2026, 1, 1, tzinfo=UTC),
        usage=t.Usage(input_tokens=7),
        stop_reason="stop",
        model="another",
    )
    later.native.format, later.native.json = "pi", b'{"other":"form"}'
    assert (await house.client.ingest(ref(), later)).stored.disposition == DUPLICATE
    (row,) = await house.rows(ref())
    assert row.message == first, "the stored copy stays as it came"


async def test_without_any_id_the_same_is_appended_twice(house: House) -> None:
    for _ in range(2):
        await house.stub.Ingest(t.IngestRequest(session=ref(), message=bare("again")))
    await house.stub.IngestBatch(t.IngestBatchRequest(session=ref(), messages=[bare("again")] * 2))
    assert texts(await house.rows(ref())) == ["again"] * 4


async def test_with_a_request_id_the_same_request_is_answered_as_before(house: House) -> None:
    request = t.IngestBatchRequest(
        session=ref(), messages=[bare("one"), bare("one")], request_id="r1"
    )
    first = await house.stub.IngestBatch(request)
    await house.client.ingest(ref(), user("between"))
    await house.restart()
    again = await house.stub.IngestBatch(request)
    assert again == first
    assert texts(await house.rows(ref())) == ["one", "one", "between"]


async def test_it_is_answered_as_before_even_if_its_messages_left_the_view(house: House) -> None:
    request = t.IngestRequest(session=ref(), message=bare("one"), request_id="r1")
    first = await house.stub.Ingest(request)
    await house.client.reset_session(ref())
    assert await house.stub.Ingest(request) == first
    assert await house.rows(ref()) == []


async def test_another_request_under_a_known_id_is_refused(house: House) -> None:
    await house.stub.Ingest(t.IngestRequest(session=ref(), message=bare("one"), request_id="r1"))
    with pytest.raises(grpc.RpcError) as caught:
        await house.stub.Ingest(
            t.IngestRequest(session=ref(), message=bare("two"), request_id="r1")
        )
    assert problem(from_rpc_error(caught.value)) == (
        "ALREADY_EXISTS",
        "REQUEST_ID_REUSED",
        ["request_id"],
    )
    assert texts(await house.rows(ref())) == ["one"]


async def test_a_request_id_belongs_to_its_session(house: House) -> None:
    for session in (ref("s1"), ref("s2"), ref("s1", agent="another")):
        stored = await house.stub.Ingest(
            t.IngestRequest(session=session, message=bare(session.session_id), request_id="r1")
        )
        assert stored.stored.sequence == 1


async def test_duplicates_inside_a_batch(house: House) -> None:
    reply = await house.client.ingest_batch(
        ref(), [user("one", id="m1"), user("two", id="m2"), user("one", id="m1")]
    )
    assert [(item.index, item.sequence, item.disposition) for item in reply.stored] == [
        (0, 1, STORED),
        (1, 2, STORED),
        (2, 1, DUPLICATE),
    ]
    assert texts(await house.rows(ref())) == ["one", "two"]


async def test_a_conflict_inside_a_batch(house: House) -> None:
    with pytest.raises(ContextEngineError) as caught:
        await house.client.ingest_batch(ref(), [user("one", id="m1"), user("two", id="m1")])
    assert problem(caught.value) == ("ALREADY_EXISTS", "MESSAGE_CONFLICT", ["messages[1].id"])
    assert caught.value.metadata["index"] == "1"
    assert (await house.client.sessions.list()).sessions == []


async def test_a_batch_is_all_or_nothing(house: House) -> None:
    await house.client.ingest(ref(), user("one", id="m1"))
    with pytest.raises(ContextEngineError):
        await house.client.ingest_batch(ref(), [user("two", id="m2"), user("other", id="m1")])
    with pytest.raises(ContextEngineError) as caught:
        await house.client.ingest_batch(ref(), [user("two", id="m2"), t.Message(id="m3")])
    assert problem(caught.value)[2] == ["messages[1].role"]
    assert texts(await house.rows(ref())) == ["one"]
    assert await revision(house) == 1


async def test_known_and_new_messages_in_one_batch(house: House) -> None:
    await house.client.ingest(ref(), user("one", id="m1"))
    reply = await house.client.ingest_batch(ref(), [user("one", id="m1"), user("two", id="m2")])
    assert [item.disposition for item in reply.stored] == [DUPLICATE, STORED]
    assert [item.sequence for item in reply.stored] == [1, 2]
    assert reply.revision == 2


async def test_one_call_raises_the_revision_by_one_at_most(house: House) -> None:
    reply = await house.client.ingest_batch(ref(), [user(str(n)) for n in range(50)])
    assert reply.revision == 1
    assembly = await house.client.assemble(ref(), ingest=[user(str(n)) for n in range(50)])
    assert assembly.revision == 2
    turn = await house.client.after_turn(
        ref(), [user(str(n)) for n in range(3)], usage=t.Usage(input_tokens=5), advancement_key="k"
    )
    assert turn.revision == 3
    assert (await house.client.assemble(ref())).revision == 3, "reading changes nothing"


async def test_a_conflict_in_ingest_of_assemble_is_listed_and_the_rest_is_stored(
    house: House,
) -> None:
    stored = (await house.client.ingest(ref(), user("one", id="m1"))).stored
    reply = await house.client.assemble(
        ref(), ingest=[user("edited", id="m1"), user("two", id="m2")]
    )
    conflict, new = reply.stored
    assert (conflict.index, conflict.id, conflict.sequence, conflict.disposition) == (
        0,
        "m1",
        1,
        CONFLICT,
    )
    assert conflict.content_hash == stored.content_hash
    assert conflict.conflicting_hash not in (b"", stored.content_hash)
    assert (new.index, new.sequence, new.disposition) == (1, 2, STORED)
    assert texts(reply.items) == ["one", "two"], "the stored copy wins"


async def test_what_is_stored_counts_the_same_everywhere(house: House) -> None:
    stored = (await house.client.ingest(ref(), user("some words to count", id="m1"))).stored
    (row,) = await house.rows(ref())
    (item,) = (await house.client.assemble(ref())).items
    assert stored.tokens == row.tokens == item.tokens > 3
    assert stored.content_hash == row.content_hash == item.content_hash
