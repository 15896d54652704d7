"""Service Recall: drilling back into what was compacted or evicted."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.timestamp_pb2 import Timestamp

from contextengine_proto.v1 import message_pb2
from contextengine_proto.v1 import recall_pb2 as pb
from contextengine_server.api.messages import place_in, ref_of, request_id
from contextengine_server.api.pipeline.call import Call
from contextengine_server.api.requests import not_negative, required
from contextengine_server.commands.recall.search import Range
from contextengine_server.commands.services import RecallCommands
from contextengine_server.context.scope import Scope
from contextengine_server.errors import ContradictoryFields, InvalidField, TooLarge
from contextengine_server.memory.search import FactHit, MemoryQuery
from contextengine_server.memory.tool import snippet
from contextengine_server.recall.expansion import (
    MAX_DEPTH,
    MAX_IDS,
    MAX_TOKENS,
    MIN_TOKENS,
    Brought,
    Wanted,
)
from contextengine_server.recall.query import DEFAULT_LIMIT, MAX_LIMIT, Hit, Query
from contextengine_server.recall.search import MAX_QUERY_BYTES
from contextengine_server.session.rows import rendered
from contextengine_server.wire.message import OWN_PREFIX, content_hash
from contextengine_server.wire.slots import summary_info, summary_item_id

MAX_PAGE_TOKEN = 8_192
MAX_SOURCES = 32
"""Messages named of one fact."""
_SCOPES = {
    pb.SEARCH_SCOPE_UNSPECIFIED: (True, True),
    pb.SEARCH_SCOPE_BOTH: (True, True),
    pb.SEARCH_SCOPE_MESSAGES: (True, False),
    pb.SEARCH_SCOPE_SUMMARIES: (False, True),
    pb.SEARCH_SCOPE_MEMORY: (False, False),
}
_MODES = {
    pb.SEARCH_MODE_UNSPECIFIED: False,
    pb.SEARCH_MODE_FULL_TEXT: False,
    pb.SEARCH_MODE_REGEX: True,
}


_BOUNDS = ("first_sequence", "last_sequence", "first_message_id", "last_message_id")
_ONE_SESSION = {
    "spawn_token": "the token opens one session, the parent: search the one or the others",
    **dict.fromkeys(
        _BOUNDS, "that is a message of one session: say which by its name, or by times"
    ),
}
"""Why what belongs to one session does not go with others."""


class RecallService:
    """Each method reads its request, runs the command of its name, and writes the reply."""

    def __init__(self, commands: RecallCommands) -> None:
        self._commands = commands

    async def search(self, request: pb.SearchRequest, call: Call) -> pb.SearchResponse:
        """Searches messages and summaries, or memory."""
        query, within = _query(request), _range(request)
        if request.scope == pb.SEARCH_SCOPE_MEMORY:
            return await self._search_memory(request, query, call)
        at_least = not_negative(request.at_least_revision, "at_least_revision")
        done = await self._commands.search.run(
            call.caller.tenant, ref_of(request.session), query, at_least, _token(request), within
        )
        return pb.SearchResponse(
            hits=[_hit(done.scope, hit) for hit in done.page.hits],
            next_page_token=done.page.next_page,
            total_count=done.page.total,
            revision=done.page.revision,
        )

    async def _search_memory(
        self, request: pb.SearchRequest, asked: Query, call: Call
    ) -> pb.SearchResponse:
        query = MemoryQuery(
            asked.text,
            regex=asked.regex,
            limit=asked.limit,
            page=asked.page,
            start_ms=asked.start_ms,
            end_ms=asked.end_ms,
            superseded=asked.retired,
        )
        at_least = not_negative(request.at_least_revision, "at_least_revision")
        done = await self._commands.search_memory.run(
            call.caller.tenant, ref_of(request.session), query, at_least
        )
        return pb.SearchResponse(
            hits=[_fact_hit(done.scope, hit) for hit in done.page.hits],
            next_page_token=done.page.next_page,
            total_count=done.page.total,
            revision=done.revision,
        )

    async def inspect(self, request: pb.InspectRequest, call: Call) -> pb.InspectResponse:
        """Answers what a summary covers."""
        summary_id = required(request.summary_id, "summary_id", "it names the summary to inspect")
        done = await self._commands.inspect.run(
            call.caller.tenant, ref_of(request.session), summary_id, _token(request)
        )
        return pb.InspectResponse(
            summary=summary_info(done.found.row),
            text=done.text,
            children=[summary_info(child) for child in done.found.children],
            messages_by_role=done.found.messages_by_role,
            tool_calls=done.found.tool_calls,
        )

    async def expand(self, request: pb.ExpandRequest, call: Call) -> pb.ExpandResponse:
        """Brings back summaries and messages."""
        found = await self._commands.expand.run(
            call.caller.tenant,
            ref_of(request.session),
            _wanted(request),
            _token(request),
            request.message_ids,
        )
        return pb.ExpandResponse(
            items=[_item(one) for one in found.items],
            tokens=found.tokens,
            truncated=bool(found.next_page),
            next_page_token=found.next_page,
            missing_count=found.missing,
        )


def _token(request: pb.SearchRequest | pb.InspectRequest | pb.ExpandRequest) -> str:
    return request_id(request.spawn_token, "spawn_token")


def _wanted(request: pb.ExpandRequest) -> Wanted:
    if not request.summary_ids and not request.sequences and not request.message_ids:
        text = "is required, or sequences or message_ids: say what to bring back"
        raise InvalidField("summary_ids", text)
    for name in ("summary_ids", "sequences", "message_ids"):
        _few(name, getattr(request, name))
    for index, summary_id in enumerate(request.summary_ids):
        required(summary_id, f"summary_ids[{index}]", "it names a summary to open")
    for index, sequence in enumerate(request.sequences):
        not_negative(sequence, f"sequences[{index}]")
    for index, id in enumerate(request.message_ids):
        required(id, f"message_ids[{index}]", "it names a message to bring back")
    asked = not_negative(request.max_tokens, "max_tokens")
    if 0 < asked < MIN_TOKENS:
        raise InvalidField(
            "max_tokens", f"is {asked}: give at least {MIN_TOKENS}, or 0 for the default"
        )
    depth = not_negative(request.max_depth, "max_depth")
    return Wanted(
        summary_ids=request.summary_ids,
        sequences=request.sequences,
        max_tokens=min(asked, MAX_TOKENS),
        depth=min(depth, MAX_DEPTH) or 1,
        messages=request.include_messages,
        page=_page(request.page_token),
    )


def _query(request: pb.SearchRequest) -> Query:
    if not request.query.strip():
        raise InvalidField("query", "is required: the words or the expression to look for")
    size = len(request.query.encode())
    if size > MAX_QUERY_BYTES:
        raise InvalidField(
            "query", f"has {size} bytes, at most {MAX_QUERY_BYTES} are taken: shorten it"
        )
    if request.scope not in _SCOPES:
        raise InvalidField("scope", f"is {request.scope}, which this server does not know")
    if request.mode not in _MODES:
        raise InvalidField("mode", f"is {request.mode}, which this server does not know")
    if request.roles and request.scope == pb.SEARCH_SCOPE_SUMMARIES:
        raise ContradictoryFields(
            ["roles", "scope"], "summaries have no role: search messages, or any role"
        )
    start, end = (
        _time(getattr(request, name), name) if request.HasField(name) else None
        for name in ("start_time", "end_time")
    )
    if start is not None and end is not None and end <= start:
        raise InvalidField("end_time", "must lie after start_time")
    if request.scope == pb.SEARCH_SCOPE_MEMORY:
        for name in ("roles", "spawn_token", *_BOUNDS):
            if getattr(request, name):
                raise ContradictoryFields(
                    ["scope", name], "memory is of the agent, not of one session's messages"
                )
    if request.all_sessions and request.key_sessions:
        raise ContradictoryFields(
            ["all_sessions", "key_sessions"], "the agent's sessions hold the key's: ask for one"
        )
    for others in ("all_sessions", "key_sessions"):
        for name in _ONE_SESSION if getattr(request, others) else ():
            if getattr(request, name):
                raise ContradictoryFields([others, name], _ONE_SESSION[name])
    limit = not_negative(request.limit, "limit")
    messages, summaries = _SCOPES[request.scope]
    return Query(
        request.query,
        regex=_MODES[request.mode],
        messages=messages,
        summaries=summaries,
        limit=min(limit, MAX_LIMIT) or DEFAULT_LIMIT,
        page=_page(request.page_token),
        roles=tuple(request.roles),
        start_ms=start,
        end_ms=end,
        retired=request.include_retired,
        all_sessions=request.all_sessions,
        key_sessions=request.key_sessions,
    )


def _range(request: pb.SearchRequest) -> Range:
    """Which messages to search. Raises ContradictoryFields, InvalidField."""
    for name in ("first_sequence", "last_sequence"):
        not_negative(getattr(request, name), name)
    return Range(place_in(request, "first", begins=True) or 0, place_in(request, "last") or 0)


def _time(time: Timestamp, field: str) -> int:
    try:
        return time.ToMilliseconds()
    except ValueError as error:
        raise InvalidField(field, "must be a time in the years 1 to 9999") from error


def _page(token: str) -> str:
    if len(token) > MAX_PAGE_TOKEN:
        raise InvalidField(
            "page_token", "is not one of this service's: give next_page_token as it was"
        )
    return token


def _few(field: str, ids: Sequence[object]) -> None:
    if len(ids) > MAX_IDS:
        raise TooLarge(
            f"{field}: has {len(ids)} entries, at most {MAX_IDS} are taken: ask in several calls",
            metadata={"limit": str(MAX_IDS), "size": str(len(ids)), "field": field},
        )


def _hit(asked: Scope, hit: Hit) -> pb.SearchResponse.Hit:
    session = "" if hit.session == asked.session else hit.session
    said = pb.SearchResponse.Hit(snippet=hit.snippet, score=hit.score, session_id=session)
    if hit.summary is not None:
        said.origin.summary_id = hit.summary.id
        said.summary.CopyFrom(summary_info(hit.summary))
        return said
    said.origin.sequence = hit.sequence
    said.role = hit.role  # type: ignore[assignment]
    said.id = hit.host_id
    said.neighbour = hit.neighbour
    for field, turn in ((said.before, hit.before), (said.after, hit.after)):
        if turn is not None:
            field.sequence, field.snippet = turn.sequence, turn.snippet
            field.role = turn.role  # type: ignore[assignment]
    if hit.time_ms is not None:
        said.time.FromMilliseconds(hit.time_ms)
    return said


def _fact_hit(asked: Scope, hit: FactHit) -> pb.SearchResponse.Hit:
    fact = hit.found.fact
    session = "" if fact.scope.session == asked.session else fact.scope.session
    said = pb.SearchResponse.Hit(
        snippet=snippet(hit.found), score=hit.score, session_id=session, memory_id=fact.id
    )
    said.origin.sequence = fact.sequence
    said.time.FromMilliseconds(max(0, fact.said_ms))
    said.fact.kind, said.fact.value = fact.kind, fact.value
    said.fact.superseded_by = hit.found.superseded_by
    for source in hit.found.sources[-MAX_SOURCES:]:
        said.fact.sources.add(session_id=source.scope.session, sequence=source.sequence)
    return said


def _item(one: Brought) -> message_pb2.Item:
    """What was brought back, as an assembly would show it; a part of something long as a text of
    ours that says so."""
    item = message_pb2.Item(tokens=one.tokens)
    if one.summary is not None:
        item.id, item.origin.summary_id = summary_item_id(one.summary.id), one.summary.id
        item.summary.CopyFrom(summary_info(one.summary))
        text = rendered(one.summary)
    else:
        assert one.message is not None
        item.id, item.origin.sequence = one.message.host_id, one.message.sequence
        item.message.ParseFromString(one.message.body)
        item.content_hash = one.message.content_hash
        text = ""
    if one.piece is not None:
        source = one.message.sequence if one.message is not None else item.origin.summary_id
        item.id = f"{OWN_PREFIX}piece:{source}:{one.piece.first}"
        item.form = message_pb2.FORM_HEAD_TAIL
        text = one.piece.shown()
    if text:
        item.message.Clear()
        item.message.id, item.message.role = item.id, message_pb2.ROLE_USER
        item.message.parts.add().text.text = text
        item.content_hash = content_hash(item.message)
    return item
