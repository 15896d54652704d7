import datetime

from contextengine_proto.v1 import message_pb2 as _message_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SessionInfo(_message.Message):
    __slots__ = ("agent_id", "session_id", "session_key", "current_for_key", "revision", "message_count", "last_sequence", "message_tokens", "summary_count", "ended", "create_time", "update_time", "model", "provider", "continues", "incarnation", "encoding", "generation", "archived")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    CURRENT_FOR_KEY_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_COUNT_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    CONTINUES_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    session_key: str
    current_for_key: bool
    revision: int
    message_count: int
    last_sequence: int
    message_tokens: int
    summary_count: int
    ended: bool
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    model: str
    provider: str
    continues: _message_pb2.SessionRef
    incarnation: str
    encoding: str
    generation: int
    archived: bool
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., session_key: _Optional[str] = ..., current_for_key: _Optional[bool] = ..., revision: _Optional[int] = ..., message_count: _Optional[int] = ..., last_sequence: _Optional[int] = ..., message_tokens: _Optional[int] = ..., summary_count: _Optional[int] = ..., ended: _Optional[bool] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., model: _Optional[str] = ..., provider: _Optional[str] = ..., continues: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., incarnation: _Optional[str] = ..., encoding: _Optional[str] = ..., generation: _Optional[int] = ..., archived: _Optional[bool] = ...) -> None: ...

class SessionsListRequest(_message.Message):
    __slots__ = ("agent_id", "session_key", "page_size", "page_token")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_key: str
    page_size: int
    page_token: str
    def __init__(self, agent_id: _Optional[str] = ..., session_key: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class SessionsListResponse(_message.Message):
    __slots__ = ("sessions", "next_page_token")
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[SessionInfo]
    next_page_token: str
    def __init__(self, sessions: _Optional[_Iterable[_Union[SessionInfo, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class SessionsGetRequest(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ...) -> None: ...

class SessionsGetResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: SessionInfo
    def __init__(self, session: _Optional[_Union[SessionInfo, _Mapping]] = ...) -> None: ...

class ImportRequest(_message.Message):
    __slots__ = ("header", "message")
    class Header(_message.Message):
        __slots__ = ("session", "model", "provider", "message_count")
        SESSION_FIELD_NUMBER: _ClassVar[int]
        MODEL_FIELD_NUMBER: _ClassVar[int]
        PROVIDER_FIELD_NUMBER: _ClassVar[int]
        MESSAGE_COUNT_FIELD_NUMBER: _ClassVar[int]
        session: _message_pb2.SessionRef
        model: str
        provider: str
        message_count: int
        def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., model: _Optional[str] = ..., provider: _Optional[str] = ..., message_count: _Optional[int] = ...) -> None: ...
    HEADER_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    header: ImportRequest.Header
    message: _message_pb2.Message
    def __init__(self, header: _Optional[_Union[ImportRequest.Header, _Mapping]] = ..., message: _Optional[_Union[_message_pb2.Message, _Mapping]] = ...) -> None: ...

class ImportResponse(_message.Message):
    __slots__ = ("session_id", "stored_count", "duplicate_count", "tokens", "revision")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    STORED_COUNT_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    stored_count: int
    duplicate_count: int
    tokens: int
    revision: int
    def __init__(self, session_id: _Optional[str] = ..., stored_count: _Optional[int] = ..., duplicate_count: _Optional[int] = ..., tokens: _Optional[int] = ..., revision: _Optional[int] = ...) -> None: ...

class ExportRequest(_message.Message):
    __slots__ = ("session", "as_of_revision", "include_retired", "at_least_revision")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    AS_OF_REVISION_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_RETIRED_FIELD_NUMBER: _ClassVar[int]
    AT_LEAST_REVISION_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    as_of_revision: int
    include_retired: bool
    at_least_revision: int
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., as_of_revision: _Optional[int] = ..., include_retired: _Optional[bool] = ..., at_least_revision: _Optional[int] = ...) -> None: ...

class ExportResponse(_message.Message):
    __slots__ = ("session", "message", "summary", "end")
    class End(_message.Message):
        __slots__ = ("message_count", "summary_count", "messages_sha256")
        MESSAGE_COUNT_FIELD_NUMBER: _ClassVar[int]
        SUMMARY_COUNT_FIELD_NUMBER: _ClassVar[int]
        MESSAGES_SHA256_FIELD_NUMBER: _ClassVar[int]
        message_count: int
        summary_count: int
        messages_sha256: bytes
        def __init__(self, message_count: _Optional[int] = ..., summary_count: _Optional[int] = ..., messages_sha256: _Optional[bytes] = ...) -> None: ...
    class ExportedMessage(_message.Message):
        __slots__ = ("sequence", "message", "tokens", "content_hash", "created_revision", "retired_revision", "stored_in_session_id", "corrupt")
        SEQUENCE_FIELD_NUMBER: _ClassVar[int]
        MESSAGE_FIELD_NUMBER: _ClassVar[int]
        TOKENS_FIELD_NUMBER: _ClassVar[int]
        CONTENT_HASH_FIELD_NUMBER: _ClassVar[int]
        CREATED_REVISION_FIELD_NUMBER: _ClassVar[int]
        RETIRED_REVISION_FIELD_NUMBER: _ClassVar[int]
        STORED_IN_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
        CORRUPT_FIELD_NUMBER: _ClassVar[int]
        sequence: int
        message: _message_pb2.Message
        tokens: int
        content_hash: bytes
        created_revision: int
        retired_revision: int
        stored_in_session_id: str
        corrupt: bool
        def __init__(self, sequence: _Optional[int] = ..., message: _Optional[_Union[_message_pb2.Message, _Mapping]] = ..., tokens: _Optional[int] = ..., content_hash: _Optional[bytes] = ..., created_revision: _Optional[int] = ..., retired_revision: _Optional[int] = ..., stored_in_session_id: _Optional[str] = ..., corrupt: _Optional[bool] = ...) -> None: ...
    class ExportedSummary(_message.Message):
        __slots__ = ("info", "text", "corrupt")
        INFO_FIELD_NUMBER: _ClassVar[int]
        TEXT_FIELD_NUMBER: _ClassVar[int]
        CORRUPT_FIELD_NUMBER: _ClassVar[int]
        info: _message_pb2.SummaryInfo
        text: str
        corrupt: bool
        def __init__(self, info: _Optional[_Union[_message_pb2.SummaryInfo, _Mapping]] = ..., text: _Optional[str] = ..., corrupt: _Optional[bool] = ...) -> None: ...
    SESSION_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    session: SessionInfo
    message: ExportResponse.ExportedMessage
    summary: ExportResponse.ExportedSummary
    end: ExportResponse.End
    def __init__(self, session: _Optional[_Union[SessionInfo, _Mapping]] = ..., message: _Optional[_Union[ExportResponse.ExportedMessage, _Mapping]] = ..., summary: _Optional[_Union[ExportResponse.ExportedSummary, _Mapping]] = ..., end: _Optional[_Union[ExportResponse.End, _Mapping]] = ...) -> None: ...

class DeleteRequest(_message.Message):
    __slots__ = ("session", "request_id", "expected_revision", "cascade", "everything_of")
    class Everything(_message.Message):
        __slots__ = ("tenant", "agent_id", "max_sessions")
        TENANT_FIELD_NUMBER: _ClassVar[int]
        AGENT_ID_FIELD_NUMBER: _ClassVar[int]
        MAX_SESSIONS_FIELD_NUMBER: _ClassVar[int]
        tenant: str
        agent_id: str
        max_sessions: int
        def __init__(self, tenant: _Optional[str] = ..., agent_id: _Optional[str] = ..., max_sessions: _Optional[int] = ...) -> None: ...
    SESSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    CASCADE_FIELD_NUMBER: _ClassVar[int]
    EVERYTHING_OF_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    request_id: str
    expected_revision: int
    cascade: bool
    everything_of: DeleteRequest.Everything
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., request_id: _Optional[str] = ..., expected_revision: _Optional[int] = ..., cascade: _Optional[bool] = ..., everything_of: _Optional[_Union[DeleteRequest.Everything, _Mapping]] = ...) -> None: ...

class DeleteResponse(_message.Message):
    __slots__ = ("deleted", "message_count", "summary_count", "session_ids", "more", "other_row_count")
    DELETED_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_COUNT_FIELD_NUMBER: _ClassVar[int]
    SESSION_IDS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    OTHER_ROW_COUNT_FIELD_NUMBER: _ClassVar[int]
    deleted: bool
    message_count: int
    summary_count: int
    session_ids: _containers.RepeatedScalarFieldContainer[str]
    more: bool
    other_row_count: int
    def __init__(self, deleted: _Optional[bool] = ..., message_count: _Optional[int] = ..., summary_count: _Optional[int] = ..., session_ids: _Optional[_Iterable[str]] = ..., more: _Optional[bool] = ..., other_row_count: _Optional[int] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("agent_id", "session_id", "resume_position", "name_prefixes")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    RESUME_POSITION_FIELD_NUMBER: _ClassVar[int]
    NAME_PREFIXES_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    resume_position: str
    name_prefixes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., resume_position: _Optional[str] = ..., name_prefixes: _Optional[_Iterable[str]] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("position", "name", "time", "agent_id", "session_id", "revision", "counts", "attributes")
    class CountsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class AttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    POSITION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    position: str
    name: str
    time: _timestamp_pb2.Timestamp
    agent_id: str
    session_id: str
    revision: int
    counts: _containers.ScalarMap[str, int]
    attributes: _containers.ScalarMap[str, str]
    def __init__(self, position: _Optional[str] = ..., name: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., revision: _Optional[int] = ..., counts: _Optional[_Mapping[str, int]] = ..., attributes: _Optional[_Mapping[str, str]] = ...) -> None: ...
