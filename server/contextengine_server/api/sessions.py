"""Service Sessions: listing, moving, erasing and watching the sessions of the caller's tenant."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator
from hashlib import sha256

import orjson

from contextengine_proto.v1 import message_pb2
from contextengine_proto.v1 import sessions_pb2 as pb
from contextengine_server.api.messages import ReadLimits, incoming_one, ref_of, request_id
from contextengine_server.api.pipeline import audit
from contextengine_server.api.pipeline.auth import authorize
from contextengine_server.api.pipeline.call import Call
from contextengine_server.api.requests import not_negative, request_in
from contextengine_server.commands.services import SessionsCommands
from contextengine_server.commands.sessions.erase import DEFAULT_SESSIONS, MAX_SESSIONS
from contextengine_server.commands.sessions.import_ import Arrival
from contextengine_server.commands.sessions.list import Listed, Place
from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.context.scope import Scope
from contextengine_server.errors import (
    ContradictoryFields,
    InvalidField,
    PermissionDenied,
    TooLarge,
)
from contextengine_server.session.state import SessionState
from contextengine_server.store.rows import MessageRow, SessionHead
from contextengine_server.telemetry.events import Event, Watched
from contextengine_server.wire.damage import as_shown, gap, intact, readable
from contextengine_server.wire.message import Incoming
from contextengine_server.wire.slots import summary_info

DEFAULT_PAGE, MAX_PAGE = 50, 1_000

PART_BYTES, PART_MESSAGES = 1 << 20, 500
"""What is gathered of an import before it is stored: the sooner of them."""


class SessionsService:
    """Each method reads its request, runs the command of its name, and writes the reply."""

    def __init__(self, commands: SessionsCommands, limits: ReadLimits) -> None:
        self._commands, self._limits = commands, limits

    async def list(self, request: pb.SessionsListRequest, call: Call) -> pb.SessionsListResponse:
        """Lists sessions, newest write first."""
        size = min(not_negative(request.page_size, "page_size") or DEFAULT_PAGE, MAX_PAGE)
        page = await self._commands.list.run(
            call.caller.tenant,
            request_id(request.agent_id, "agent_id"),
            request_id(request.session_key, "session_key"),
            size,
            _place(request.page_token),
        )
        return pb.SessionsListResponse(
            sessions=[_info(one) for one in page.sessions],
            next_page_token=_token(page.next_place),
        )

    async def get(self, request: pb.SessionsGetRequest, call: Call) -> pb.SessionsGetResponse:
        """Answers one session."""
        found = await self._commands.get.run(call.caller.tenant, ref_of(request.session))
        return pb.SessionsGetResponse(session=_info(found))

    async def import_(
        self, requests: AsyncIterator[pb.ImportRequest], call: Call
    ) -> pb.ImportResponse:
        """Stores a whole session, all or none, in memory of a part of it."""
        header: pb.ImportRequest.Header | None = None
        arrival: Arrival | None = None
        messages: list[Incoming] = []
        count = size = 0
        try:
            async for request in requests:
                kind = request.WhichOneof("kind")
                if kind == "header":
                    if header is not None:
                        raise InvalidField("header", "came twice: one stream carries one session")
                    header = request.header
                    arrival = await self._arrival(header, call)
                elif arrival is None:
                    raise InvalidField(
                        "header", "must be the first message of the stream: it names the session"
                    )
                elif kind == "message":
                    field = f"message[{count}]"
                    messages.append(incoming_one(self._limits, request.message, field))
                    count, size = count + 1, size + call.counts
                    self._check_count(count)
                    if size >= PART_BYTES or len(messages) >= PART_MESSAGES:
                        if await arrival.add(messages):
                            call.give_back(size)
                        messages, size = [], 0
                else:
                    raise InvalidField(f"message[{count}]", "is empty: give a message")
            if header is None or arrival is None:
                raise InvalidField(
                    "header", "is required: the stream ended before the session was named"
                )
            if header.HasField("message_count") and header.message_count != count:
                raise InvalidField(
                    "header.message_count",
                    f"is {header.message_count}, and {count} messages came: the stream is not"
                    " whole; send it again",
                )
            done = await arrival.finish(messages)
        except BaseException:
            if arrival is not None:
                await arrival.give_up()
            raise
        return pb.ImportResponse(
            session_id=done.head.scope.session,
            stored_count=done.stored,
            duplicate_count=done.duplicates,
            tokens=done.head.message_tokens,
            revision=done.head.revision,
        )

    async def _arrival(self, header: pb.ImportRequest.Header, call: Call) -> Arrival:
        said = Introduction(
            model=request_id(header.model, "header.model"),
            provider=request_id(header.provider, "header.provider"),
        )
        ref = ref_of(header.session, "header.session")
        return await self._commands.import_.begin(call.caller.tenant, ref, said)

    def _check_count(self, count: int) -> None:
        limit = self._limits.max_session_messages
        if count > limit:
            raise TooLarge(
                f"message: the session has more than {limit} messages: import it as several"
                " sessions",
                metadata={"limit": str(limit)},
            )

    async def export(
        self, request: pb.ExportRequest, call: Call
    ) -> AsyncIterator[pb.ExportResponse]:
        """Answers a session's rows as they are stored."""
        done = await self._commands.export.run(
            call.caller.tenant,
            ref_of(request.session),
            as_of=request.as_of_revision if request.HasField("as_of_revision") else None,
            include_retired=request.include_retired,
            at_least_revision=not_negative(request.at_least_revision, "at_least_revision"),
        )
        yield pb.ExportResponse(session=_info(done.session))
        count, seen = 0, sha256()
        async for scope, row in done.messages():
            yield pb.ExportResponse(message=_exported(done.session.head, scope, row))
            count += 1
            seen.update(row.content_hash)
        summaries = as_shown(await done.summaries())
        for summary in summaries:
            yield pb.ExportResponse(
                summary=pb.ExportResponse.ExportedSummary(
                    info=summary_info(summary), text=summary.text, corrupt=not intact(summary)
                )
            )
        yield pb.ExportResponse(
            end=pb.ExportResponse.End(
                message_count=count,
                summary_count=len(summaries),
                messages_sha256=seen.digest(),
            )
        )

    async def delete(self, request: pb.DeleteRequest, call: Call) -> pb.DeleteResponse:
        """Erases a session and everything derived from it, or a part of an agent or tenant."""
        if request.HasField("everything_of"):
            return await self._erase(request, call)
        if not request.session.session_id:
            raise InvalidField(
                "session.session_id",
                "is required: a deletion names the session itself, never a key",
            )
        gone = await self._commands.delete.run(
            call.caller.tenant,
            ref_of(request.session),
            expected_revision=(
                request.expected_revision if request.HasField("expected_revision") else None
            ),
            cascade=request.cascade,
            request=request_in(request, "Delete"),
        )
        if gone.sessions:
            audit.deleted(call, request.session.session_id, len(gone.sessions))
        return pb.DeleteResponse(
            deleted=bool(gone.sessions),
            message_count=gone.messages,
            summary_count=gone.summaries,
            session_ids=gone.sessions,
        )

    async def _erase(self, request: pb.DeleteRequest, call: Call) -> pb.DeleteResponse:
        authorize(call.caller, call.rpc.method)
        asked, tenant = request.everything_of, call.caller.tenant
        for field in ("session", "expected_revision"):
            if request.HasField(field):
                raise ContradictoryFields(
                    [field, "everything_of"], "name a session, or everything of an agent or tenant"
                )
        request_id(request.request_id)
        if not asked.tenant:
            raise InvalidField("everything_of.tenant", "is required: name the tenant to erase")
        if asked.tenant != tenant:
            raise PermissionDenied(
                "everything_of.tenant: these credentials are another tenant's; who erases one needs"
                " credentials of its own"
            )
        agent = request_id(asked.agent_id, "everything_of.agent_id")
        most = not_negative(asked.max_sessions, "everything_of.max_sessions") or DEFAULT_SESSIONS
        gone = await self._commands.erase.run(tenant, agent, min(most, MAX_SESSIONS))
        audit.erased(call, agent, len(gone.sessions), gone.rows, more=gone.more)
        return pb.DeleteResponse(
            deleted=bool(gone.sessions or gone.rows),
            message_count=gone.messages,
            summary_count=gone.summaries,
            session_ids=gone.sessions,
            more=gone.more,
            other_row_count=gone.rows,
        )

    async def watch(self, request: pb.WatchRequest, call: Call) -> AsyncIterator[pb.WatchResponse]:
        """Streams what happens to sessions."""
        watched = Watched(
            call.caller.tenant,
            request_id(request.agent_id, "agent_id"),
            request_id(request.session_id, "session_id"),
            tuple(request.name_prefixes),
        )
        events = self._commands.watch.run(watched, request.resume_position)
        await call.opened()
        async for event in events:
            yield _said(event, self._commands.watch.position(event))


def _said(event: Event, position: str) -> pb.WatchResponse:
    said = pb.WatchResponse(
        position=position,
        name=event.name,
        agent_id=event.agent,
        session_id=event.session,
        revision=event.revision,
        counts=event.counts,
        attributes=event.attributes,
    )
    said.time.FromMilliseconds(event.time_ms)
    return said


def _info(listed: Listed) -> pb.SessionInfo:
    head, scope = listed.head, listed.head.scope
    info = pb.SessionInfo(
        agent_id=scope.agent,
        session_id=scope.session,
        session_key=head.session_key,
        current_for_key=listed.current_for_key,
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
        archived=bool(head.archived),
    )
    info.create_time.FromMilliseconds(head.created_ms)
    info.update_time.FromMilliseconds(head.updated_ms)
    if head.parent_session:
        info.continues.CopyFrom(
            message_pb2.SessionRef(agent_id=scope.agent, session_id=head.parent_session)
        )
    return info


def _exported(
    head: SessionHead, scope: Scope, row: MessageRow
) -> pb.ExportResponse.ExportedMessage:
    message = readable(row)
    return pb.ExportResponse.ExportedMessage(
        sequence=row.sequence,
        message=message or gap(row),
        corrupt=message is None,
        tokens=row.tokens,
        content_hash=row.content_hash,
        created_revision=row.created_revision,
        retired_revision=row.retired_revision,
        stored_in_session_id="" if scope == head.scope else scope.session,
    )


def _token(place: Place | None) -> str:
    return "" if place is None else base64.urlsafe_b64encode(orjson.dumps(place)).decode()


def _place(token: str) -> Place | None:
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
