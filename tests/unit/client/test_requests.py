"""Ids are set so that sending twice is safe, and the caller's own messages stay as they are."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from contextengine import assistant, new_id, user, with_ids
from contextengine.requests import build, import_requests
from contextengine.types import (
    AfterTurnRequest,
    AssembleRequest,
    BootstrapRequest,
    CompactRequest,
    GetStatusRequest,
    IngestBatchRequest,
    IngestRequest,
    LiveList,
    Message,
    RecordHostChangeRequest,
    SessionRef,
)

REF = SessionRef(agent_id="a", session_id="s")


def nameless(text: str) -> Message:
    return user(text, id="")


def test_ids_are_version_7_and_rise() -> None:
    ids = [new_id() for _ in range(10_000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
    parsed = uuid.UUID(ids[0])
    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        (IngestBatchRequest, "messages"),
        (AssembleRequest, "ingest"),
        (AfterTurnRequest, "messages"),
    ],
)
def test_new_messages_get_ids_and_the_callers_stay_as_they_are(kind: type[Any], field: str) -> None:
    mine = [nameless("a"), user("b", id="b-1")]
    request = build(kind, {"session": REF, field: mine})
    first, second = getattr(request, field)
    assert uuid.UUID(first.id).version == 7
    assert second.id == "b-1"
    assert [message.id for message in mine] == ["", "b-1"]


def test_a_single_message_gets_its_id_too() -> None:
    mine = nameless("a")
    assert uuid.UUID(build(IngestRequest, {"message": mine}).message.id)
    assert not mine.id
    assert not build(IngestRequest, {}).HasField("message")


def test_after_a_turn_only_what_is_new_gets_ids() -> None:
    messages = [nameless("old"), nameless("old too"), nameless("new")]
    request = build(AfterTurnRequest, {"messages": messages, "pre_prompt_message_count": 2})
    assert [bool(message.id) for message in request.messages] == [False, False, True]


def test_a_history_keeps_its_ids_so_that_it_is_known_again() -> None:
    request = build(BootstrapRequest, {"history": [nameless("a")]})
    assert not request.history[0].id
    assert request.request_id


def test_a_live_list_keeps_its_ids_and_gets_a_request_id_where_it_is_stored() -> None:
    shown = build(AssembleRequest, {"live": LiveList(messages=[nameless("a")])})
    assert (shown.live.messages[0].id, shown.request_id) == ("", "")
    stored = build(AssembleRequest, {"live": LiveList(messages=[nameless("a")], store_new=True)})
    assert stored.live.messages[0].id == ""
    assert stored.request_id


def test_calls_that_change_state_get_ids_and_given_ids_stay() -> None:
    assert build(CompactRequest, {}).request_id != build(CompactRequest, {}).request_id
    assert build(CompactRequest, {"request_id": "mine"}).request_id == "mine"
    assert uuid.UUID(build(RecordHostChangeRequest, {}).change_id)
    assert build(RecordHostChangeRequest, {"change_id": "mine"}).change_id == "mine"
    assert build(GetStatusRequest, {"session": REF}) == GetStatusRequest(session=REF)


def test_an_import_keeps_messages_as_they_are() -> None:
    header, message = import_requests(REF, [nameless("a")], {"model": "m"})
    assert (header.header.session, header.header.model) == (REF, "m")
    assert message.message == nameless("a")


def test_with_ids_copies() -> None:
    mine = [nameless("a"), assistant("b", id="b-1")]
    named = with_ids(mine)
    assert named[0].id
    assert named[1] == mine[1]
    assert mine[0].id == ""


def test_a_bad_field_is_named() -> None:
    with pytest.raises(TypeError, match=r"CompactRequest\.focus cannot be 7"):
        build(CompactRequest, {"force": True, "focus": 7})
    with pytest.raises(TypeError, match=r"CompactRequest\.colour"):
        build(CompactRequest, {"colour": "red"})
