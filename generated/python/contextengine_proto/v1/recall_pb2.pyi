import datetime

from contextengine_proto.v1 import message_pb2 as _message_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SearchScope(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SEARCH_SCOPE_UNSPECIFIED: _ClassVar[SearchScope]
    SEARCH_SCOPE_BOTH: _ClassVar[SearchScope]
    SEARCH_SCOPE_MESSAGES: _ClassVar[SearchScope]
    SEARCH_SCOPE_SUMMARIES: _ClassVar[SearchScope]
    SEARCH_SCOPE_MEMORY: _ClassVar[SearchScope]

class SearchMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SEARCH_MODE_UNSPECIFIED: _ClassVar[SearchMode]
    SEARCH_MODE_FULL_TEXT: _ClassVar[SearchMode]
    SEARCH_MODE_REGEX: _ClassVar[SearchMode]
SEARCH_SCOPE_UNSPECIFIED: SearchScope
SEARCH_SCOPE_BOTH: SearchScope
SEARCH_SCOPE_MESSAGES: SearchScope
SEARCH_SCOPE_SUMMARIES: SearchScope
SEARCH_SCOPE_MEMORY: SearchScope
SEARCH_MODE_UNSPECIFIED: SearchMode
SEARCH_MODE_FULL_TEXT: SearchMode
SEARCH_MODE_REGEX: SearchMode

class SearchRequest(_message.Message):
    __slots__ = ("session", "query", "scope", "mode", "limit", "page_token", "roles", "first_sequence", "last_sequence", "start_time", "end_time", "include_retired", "all_sessions", "at_least_revision", "spawn_token", "key_sessions", "first_message_id", "last_message_id")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_RETIRED_FIELD_NUMBER: _ClassVar[int]
    ALL_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    AT_LEAST_REVISION_FIELD_NUMBER: _ClassVar[int]
    SPAWN_TOKEN_FIELD_NUMBER: _ClassVar[int]
    KEY_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    FIRST_MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    query: str
    scope: SearchScope
    mode: SearchMode
    limit: int
    page_token: str
    roles: _containers.RepeatedScalarFieldContainer[_message_pb2.Role]
    first_sequence: int
    last_sequence: int
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    include_retired: bool
    all_sessions: bool
    at_least_revision: int
    spawn_token: str
    key_sessions: bool
    first_message_id: str
    last_message_id: str
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., query: _Optional[str] = ..., scope: _Optional[_Union[SearchScope, str]] = ..., mode: _Optional[_Union[SearchMode, str]] = ..., limit: _Optional[int] = ..., page_token: _Optional[str] = ..., roles: _Optional[_Iterable[_Union[_message_pb2.Role, str]]] = ..., first_sequence: _Optional[int] = ..., last_sequence: _Optional[int] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., include_retired: _Optional[bool] = ..., all_sessions: _Optional[bool] = ..., at_least_revision: _Optional[int] = ..., spawn_token: _Optional[str] = ..., key_sessions: _Optional[bool] = ..., first_message_id: _Optional[str] = ..., last_message_id: _Optional[str] = ...) -> None: ...

class SearchResponse(_message.Message):
    __slots__ = ("hits", "next_page_token", "total_count", "revision")
    class Hit(_message.Message):
        __slots__ = ("origin", "snippet", "score", "role", "time", "id", "session_id", "summary", "memory_id", "neighbour", "before", "after", "fact")
        ORIGIN_FIELD_NUMBER: _ClassVar[int]
        SNIPPET_FIELD_NUMBER: _ClassVar[int]
        SCORE_FIELD_NUMBER: _ClassVar[int]
        ROLE_FIELD_NUMBER: _ClassVar[int]
        TIME_FIELD_NUMBER: _ClassVar[int]
        ID_FIELD_NUMBER: _ClassVar[int]
        SESSION_ID_FIELD_NUMBER: _ClassVar[int]
        SUMMARY_FIELD_NUMBER: _ClassVar[int]
        MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
        NEIGHBOUR_FIELD_NUMBER: _ClassVar[int]
        BEFORE_FIELD_NUMBER: _ClassVar[int]
        AFTER_FIELD_NUMBER: _ClassVar[int]
        FACT_FIELD_NUMBER: _ClassVar[int]
        origin: _message_pb2.Origin
        snippet: str
        score: float
        role: _message_pb2.Role
        time: _timestamp_pb2.Timestamp
        id: str
        session_id: str
        summary: _message_pb2.SummaryInfo
        memory_id: str
        neighbour: bool
        before: SearchResponse.Turn
        after: SearchResponse.Turn
        fact: SearchResponse.Fact
        def __init__(self, origin: _Optional[_Union[_message_pb2.Origin, _Mapping]] = ..., snippet: _Optional[str] = ..., score: _Optional[float] = ..., role: _Optional[_Union[_message_pb2.Role, str]] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., id: _Optional[str] = ..., session_id: _Optional[str] = ..., summary: _Optional[_Union[_message_pb2.SummaryInfo, _Mapping]] = ..., memory_id: _Optional[str] = ..., neighbour: _Optional[bool] = ..., before: _Optional[_Union[SearchResponse.Turn, _Mapping]] = ..., after: _Optional[_Union[SearchResponse.Turn, _Mapping]] = ..., fact: _Optional[_Union[SearchResponse.Fact, _Mapping]] = ...) -> None: ...
    class Fact(_message.Message):
        __slots__ = ("kind", "value", "sources", "superseded_by")
        KIND_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        SOURCES_FIELD_NUMBER: _ClassVar[int]
        SUPERSEDED_BY_FIELD_NUMBER: _ClassVar[int]
        kind: str
        value: str
        sources: _containers.RepeatedCompositeFieldContainer[SearchResponse.Source]
        superseded_by: str
        def __init__(self, kind: _Optional[str] = ..., value: _Optional[str] = ..., sources: _Optional[_Iterable[_Union[SearchResponse.Source, _Mapping]]] = ..., superseded_by: _Optional[str] = ...) -> None: ...
    class Source(_message.Message):
        __slots__ = ("session_id", "sequence")
        SESSION_ID_FIELD_NUMBER: _ClassVar[int]
        SEQUENCE_FIELD_NUMBER: _ClassVar[int]
        session_id: str
        sequence: int
        def __init__(self, session_id: _Optional[str] = ..., sequence: _Optional[int] = ...) -> None: ...
    class Turn(_message.Message):
        __slots__ = ("sequence", "role", "snippet")
        SEQUENCE_FIELD_NUMBER: _ClassVar[int]
        ROLE_FIELD_NUMBER: _ClassVar[int]
        SNIPPET_FIELD_NUMBER: _ClassVar[int]
        sequence: int
        role: _message_pb2.Role
        snippet: str
        def __init__(self, sequence: _Optional[int] = ..., role: _Optional[_Union[_message_pb2.Role, str]] = ..., snippet: _Optional[str] = ...) -> None: ...
    HITS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_COUNT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    hits: _containers.RepeatedCompositeFieldContainer[SearchResponse.Hit]
    next_page_token: str
    total_count: int
    revision: int
    def __init__(self, hits: _Optional[_Iterable[_Union[SearchResponse.Hit, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total_count: _Optional[int] = ..., revision: _Optional[int] = ...) -> None: ...

class InspectRequest(_message.Message):
    __slots__ = ("session", "summary_id", "spawn_token")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_ID_FIELD_NUMBER: _ClassVar[int]
    SPAWN_TOKEN_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    summary_id: str
    spawn_token: str
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., summary_id: _Optional[str] = ..., spawn_token: _Optional[str] = ...) -> None: ...

class InspectResponse(_message.Message):
    __slots__ = ("summary", "text", "children", "messages_by_role", "tool_calls")
    class MessagesByRoleEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class ToolCallsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_BY_ROLE_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    summary: _message_pb2.SummaryInfo
    text: str
    children: _containers.RepeatedCompositeFieldContainer[_message_pb2.SummaryInfo]
    messages_by_role: _containers.ScalarMap[str, int]
    tool_calls: _containers.ScalarMap[str, int]
    def __init__(self, summary: _Optional[_Union[_message_pb2.SummaryInfo, _Mapping]] = ..., text: _Optional[str] = ..., children: _Optional[_Iterable[_Union[_message_pb2.SummaryInfo, _Mapping]]] = ..., messages_by_role: _Optional[_Mapping[str, int]] = ..., tool_calls: _Optional[_Mapping[str, int]] = ...) -> None: ...

class ExpandRequest(_message.Message):
    __slots__ = ("session", "summary_ids", "sequences", "max_tokens", "max_depth", "include_messages", "page_token", "spawn_token", "message_ids")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_IDS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCES_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_DEPTH_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SPAWN_TOKEN_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    summary_ids: _containers.RepeatedScalarFieldContainer[str]
    sequences: _containers.RepeatedScalarFieldContainer[int]
    max_tokens: int
    max_depth: int
    include_messages: bool
    page_token: str
    spawn_token: str
    message_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., summary_ids: _Optional[_Iterable[str]] = ..., sequences: _Optional[_Iterable[int]] = ..., max_tokens: _Optional[int] = ..., max_depth: _Optional[int] = ..., include_messages: _Optional[bool] = ..., page_token: _Optional[str] = ..., spawn_token: _Optional[str] = ..., message_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class ExpandResponse(_message.Message):
    __slots__ = ("items", "tokens", "truncated", "next_page_token", "missing_count")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    MISSING_COUNT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[_message_pb2.Item]
    tokens: int
    truncated: bool
    next_page_token: str
    missing_count: int
    def __init__(self, items: _Optional[_Iterable[_Union[_message_pb2.Item, _Mapping]]] = ..., tokens: _Optional[int] = ..., truncated: _Optional[bool] = ..., next_page_token: _Optional[str] = ..., missing_count: _Optional[int] = ...) -> None: ...
