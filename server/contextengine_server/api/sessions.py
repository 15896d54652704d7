"""Service Sessions: listing, moving, erasing and watching the sessions of the caller's tenant."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator, Sequence

import orjson

from contextengine_proto.v1 import message_pb2
from contextengine_proto.v1 import sessions_pb2 as pb
from contextengine_server.api.call import Call
from contextengine_server.api.reading import incoming_one, not_negative, ref_of, request_id
from contextengine_server.commands.bootstrap import Introduction
from contextengine_server.context.scope import Scope
from contextengine_server.errors import (
    InvalidField,
    RowNotFound,
    SessionExists,
    TooLarge,
    Violation,
)
from contextengine_server.session.append import append, request_of
from contextengine_server.session.core import SessionCore, not_found
from contextengine_server.session.lifecycle import delete
from contextengine_server.session.load import lineage_rows, lineage_summaries
from contextengine_server.session.state import SessionState
from contextengine_server.store.rows import MessageRow, SessionHead
from contextengine_server.telemetry.events import Event, Watched
from contextengine_server.wire.reading import Incoming
from contextengine_server.wire.shaping import summary_info

DEFAULT_PAGE, MAX_PAGE = 50, 1_000


class SessionsService:
    """Thin: reads the request, asks the session core, writes the reply."""

    def __init__(self, core: SessionCore) -> None:
        self.core = core

    async def list(self, request: pb.SessionsListRequest, call: Call) -> pb.SessionsListResponse:
        """Lists sessions, newest write first."""
        size = min(not_negative(request.page_size, "page_size") or DEFAULT_PAGE, MAX_PAGE)
        heads = await self.core.store.list_sessions(
            call.caller.tenant,
            agent=request_id(request.agent_id, "agent_id"),
            session_key=request_id(request.session_key, "session_key"),
            limit=size + 1,
            after=_place(request.page_token),
        )
        page = heads[:size]
        token = _token(page[-1]) if len(heads) > size else ""
        return pb.SessionsListResponse(
            sessions=[await self._info(head) for head in page], next_page_token=token
        )

    async def get(self, request: pb.SessionsGetRequest, call: Call) -> pb.SessionsGetResponse:
        """Answers one session."""
        address = await self.core.address(call.caller.tenant, ref_of(request.session))
        head = await self.core.store.head(address.scope)
        if head is None:
            raise not_found(address.scope)
        return pb.SessionsGetResponse(session=await self._info(head))

    async def import_(
        self, requests: AsyncIterator[pb.ImportRequest], call: Call
    ) -> pb.ImportResponse:
        """Stores a whole session, all or none: nothing is written before the stream is complete."""
        core = self.core
        header: pb.ImportRequest.Header | None = None
        messages: list[Incoming] = []
        async for request in requests:
            kind = request.WhichOneof("kind")
            if kind == "header":
                if header is not None:
                    raise InvalidField("header", "came twice: one stream carries one session")
                header = request.header
                await core.address(call.caller.tenant, ref_of(header.session, "header.session"))
            elif header is None:
                raise InvalidField(
                    "header", "must be the first message of the stream: it names the session"
                )
            elif kind == "message":
                messages.append(incoming_one(core, request.message, f"message[{len(messages)}]"))
                if len(messages) > core.limits.max_session_messages:
                    limit = core.limits.max_session_messages
                    raise TooLarge(
                        f"message: the session has more than {limit} messages: import it as several"
                        " sessions",
                        metadata={"limit": str(limit)},
                    )
            else:
                raise InvalidField(f"message[{len(messages)}]", "is empty: give a message")
        if header is None:
            raise InvalidField(
                "header", "is required: the stream ended before the session was named"
            )
        return await self._store(call, header, messages)

    async def _store(
        self, call: Call, header: pb.ImportRequest.Header, messages: Sequence[Incoming]
    ) -> pb.ImportResponse:
        core = self.core
        address = await core.address(call.caller.tenant, ref_of(header.session, "header.session"))
        said = Introduction(
            model=request_id(header.model, "header.model"),
            provider=request_id(header.provider, "header.provider"),
        )
        count = len(messages)
        await core.count(messages)
        async with core.session(address.scope, None, lock=True) as session:
            if session.head is not None and session.view.last_sequence:
                held = [entry.hash for entry in session.view.entries()]
                if held != [message.hash for message in messages]:
                    raise SessionExists(
                        f"session {address.scope.session!r} holds other messages: import under"
                        " another id or delete it first",
                        metadata={"session_id": address.scope.session, "messages": str(len(held))},
                    )
                messages = []
            written = await append(
                core,
                session,
                address,
                messages,
                field_name="message",
                refuse_conflicts=True,
                edit=said.edit if said.news(core, session) else None,
            )
        stored = sum(1 for item in written.stored if item.disposition == 1)
        head = await core.store.head(address.scope)
        assert head is not None
        return pb.ImportResponse(
            session_id=address.scope.session,
            stored_count=stored,
            duplicate_count=count - stored,
            tokens=head.message_tokens,
            revision=head.revision,
        )

    async def export(
        self, request: pb.ExportRequest, call: Call
    ) -> AsyncIterator[pb.ExportResponse]:
        """Answers a session's rows as they are stored."""
        core = self.core
        address = await core.address(call.caller.tenant, ref_of(request.session))
        await core.reached(
            address.scope, not_negative(request.at_least_revision, "at_least_revision")
        )
        head = await core.store.head(address.scope)
        if head is None:
            raise not_found(address.scope)
        as_of = request.as_of_revision if request.HasField("as_of_revision") else None
        if as_of is not None and as_of < 0:
            raise InvalidField("as_of_revision", f"is {as_of}: give 0 to {head.revision}")
        if as_of is not None and as_of > head.revision:
            text = f"the session has revisions 1 to {head.revision}, not {as_of}"
            raise RowNotFound(
                f"as_of_revision: {text}", violations=[Violation("as_of_revision", text)]
            )
        yield pb.ExportResponse(session=await self._info(head))
        rows = await lineage_rows(core.store, head, as_of=as_of)
        newest = head.revision if as_of is None else as_of
        if request.include_retired:
            own = {row.sequence for scope, row in rows if scope == head.scope}
            every = await core.store.messages(head.scope, retired=True)
            left = [
                row for row in every if row.sequence not in own and row.created_revision <= newest
            ]
            rows += [(head.scope, row) for row in left]
            rows.sort(key=_sequence)
        for scope, row in rows:
            yield pb.ExportResponse(message=_exported(head, scope, row))
        if request.include_retired:
            every_summary = await core.store.summaries(head.scope, retired=True)
            summaries = [row for row in every_summary if row.created_revision <= newest]
        else:
            summaries = await lineage_summaries(core.store, head, as_of=as_of)
        for summary in summaries:
            yield pb.ExportResponse(
                summary=pb.ExportResponse.ExportedSummary(
                    info=summary_info(summary), text=summary.text
                )
            )

    async def delete(self, request: pb.DeleteRequest, call: Call) -> pb.DeleteResponse:
        """Erases a session and everything derived from it."""
        asked = request_of(
            request_id(request.request_id),
            "Delete",
            (),
            request.SerializeToString(deterministic=True),
        )
        if not request.session.session_id:
            raise InvalidField(
                "session.session_id",
                "is required: a deletion names the session itself, never a key",
            )
        address = await self.core.address(call.caller.tenant, ref_of(request.session))
        there = await self.core.store.head(address.scope) is not None
        expected = (
            request.expected_revision if there and request.HasField("expected_revision") else None
        )
        gone = await delete(
            self.core,
            address.scope,
            expected_revision=expected,
            cascade=request.cascade,
            request=asked,
        )
        return pb.DeleteResponse(
            deleted=bool(gone.sessions),
            message_count=gone.messages,
            summary_count=gone.summaries,
            session_ids=gone.sessions,
        )

    async def watch(self, request: pb.WatchRequest, call: Call) -> AsyncIterator[pb.WatchResponse]:
        """Streams what happens to sessions."""
        watched = Watched(
            call.caller.tenant,
            request_id(request.agent_id, "agent_id"),
            request_id(request.session_id, "session_id"),
            tuple(request.name_prefixes),
        )
        events = self.core.events.watch(watched, request.resume_position)
        await call.opened()
        async for event in events:
            yield self._event(event)

    def _event(self, event: Event) -> pb.WatchResponse:
        said = pb.WatchResponse(
            position=self.core.events.position(event.number),
            name=event.name,
            agent_id=event.agent,
            session_id=event.session,
            revision=event.revision,
            counts=event.counts,
            attributes=event.attributes,
        )
        said.time.FromMilliseconds(event.time_ms)
        return said

    async def _info(self, head: SessionHead) -> pb.SessionInfo:
        scope = head.scope
        current = False
        if head.session_key:
            current = (
                await self.core.store.current_session(scope.tenant, scope.agent, head.session_key)
                == scope.session
            )
        info = pb.SessionInfo(
            agent_id=scope.agent,
            session_id=scope.session,
            session_key=head.session_key,
            current_for_key=current,
            revision=head.revision,
            message_count=head.message_count,
            last_sequence=head.last_sequence,
            message_tokens=head.message_tokens,
            summary_count=head.summary_count,
            ended=head.ended,
            model=head.model,
            provider=head.provider,
            incarnation=head.incarnation,
            encoding=SessionState.decode(head.state).encoding,
            generation=head.generation,
        )
        info.create_time.FromMilliseconds(head.created_ms)
        info.update_time.FromMilliseconds(head.updated_ms)
        if head.parent_session:
            info.continues.CopyFrom(
                message_pb2.SessionRef(agent_id=scope.agent, session_id=head.parent_session)
            )
        return info


def _sequence(row: tuple[Scope, MessageRow]) -> int:
    return row[1].sequence


def _exported(
    head: SessionHead, scope: Scope, row: MessageRow
) -> pb.ExportResponse.ExportedMessage:
    return pb.ExportResponse.ExportedMessage(
        sequence=row.sequence,
        message=message_pb2.Message.FromString(row.body),
        tokens=row.tokens,
        content_hash=row.content_hash,
        created_revision=row.created_revision,
        retired_revision=row.retired_revision,
        stored_in_session_id="" if scope == head.scope else scope.session,
    )


def _token(head: SessionHead) -> str:
    raw = orjson.dumps([head.updated_ms, head.scope.agent, head.scope.session])
    return base64.urlsafe_b64encode(raw).decode()


def _place(token: str) -> tuple[int, str, str] | None:
    if not token:
        return None
    try:
        match orjson.loads(base64.urlsafe_b64decode(token.encode())):
            case [int(updated), str(agent), str(session)] if (
                type(updated) is int and abs(updated) < 2**63
            ):
                return updated, agent, session
    except (ValueError, binascii.Error):
        pass
    raise InvalidField("page_token", "is not one of this service's: give next_page_token as it was")
