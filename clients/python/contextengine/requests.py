"""From keyword arguments to a request that is safe to send twice. Pure but for the ids, which are
new."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from google.protobuf.message import Message as ProtoMessage

from .ids import new_id
from .types import (
    AfterTurnRequest,
    AssembleRequest,
    ImportRequest,
    IngestBatchRequest,
    IngestRequest,
    Message,
    RecordHostChangeRequest,
    SessionRef,
)

Request = TypeVar("Request", bound=ProtoMessage)


def build(kind: type[Request], fields: Mapping[str, object]) -> Request:
    """The request of `kind` with these fields, its ids set. Copies what it is given. Raises
    TypeError for a bad field."""
    try:
        request = kind(**fields)
    except (TypeError, ValueError):
        raise TypeError(_culprit(kind, fields)) from None
    set_ids(request)
    return request


def import_requests(
    session: SessionRef, messages: Iterable[Message], header: Mapping[str, object]
) -> list[ImportRequest]:
    """The stream of an import. A list, so that an error of `messages` is raised before anything is
    sent."""
    rest = [ImportRequest(message=message) for message in messages]
    named = {"session": session, "message_count": len(rest), **header}
    return [ImportRequest(header=build(ImportRequest.Header, named)), *rest]


def _culprit(kind: type[ProtoMessage], fields: Mapping[str, object]) -> str:
    """Which of the fields `kind` does not take, and why. protobuf itself does not say."""
    for name, value in fields.items():
        try:
            kind(**{name: value})
        except (TypeError, ValueError) as error:
            return f"{kind.DESCRIPTOR.name}.{name} cannot be {value!r:.80}: {error}"
    return f"{kind.DESCRIPTOR.name} does not take these fields together"


def named(message_id: str) -> str:
    """A host id that names a message. Raises ValueError for an empty one, which would mean the
    beginning."""
    if not message_id:
        raise ValueError("the host id of a message is empty: give one that was stored")
    return message_id


def set_ids(request: ProtoMessage) -> None:
    """Gives new messages without an id a new one, and the request its `request_id` or `change_id`.

    Messages of `live` lists keep none: they are aligned by ids, and another id at each call would
    align with nothing. Neither do those of an import, which is the same again only with the same
    ids.
    """
    for message in _new_messages(request):
        if not message.id:
            message.id = new_id()
    if isinstance(request, RecordHostChangeRequest):
        request.change_id = request.change_id or new_id()
    elif _wants_request_id(request):
        request.request_id = request.request_id or new_id()  # type: ignore[attr-defined]


def _new_messages(request: ProtoMessage) -> Iterable[Message]:
    """The messages that the request stores as new."""
    match request:
        case IngestRequest():
            return [request.message] if request.HasField("message") else []
        case IngestBatchRequest():
            return request.messages
        case AssembleRequest():
            return request.ingest
        case AfterTurnRequest():
            return request.messages[max(request.pre_prompt_message_count, 0) :]
    return []


def _wants_request_id(request: ProtoMessage) -> bool:
    """Whether the request has the field and its messages' ids do not make it safe already."""
    if isinstance(request, AssembleRequest):
        return request.live.store_new
    if isinstance(request, IngestRequest | IngestBatchRequest):
        return False
    return "request_id" in request.DESCRIPTOR.fields_by_name
