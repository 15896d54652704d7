import datetime

from contextengine_proto.v1 import message_pb2 as _message_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ContextMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONTEXT_MODE_UNSPECIFIED: _ClassVar[ContextMode]
    CONTEXT_MODE_ISOLATED: _ClassVar[ContextMode]
    CONTEXT_MODE_FORK: _ClassVar[ContextMode]

class SubagentEndReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SUBAGENT_END_REASON_UNSPECIFIED: _ClassVar[SubagentEndReason]
    SUBAGENT_END_REASON_COMPLETED: _ClassVar[SubagentEndReason]
    SUBAGENT_END_REASON_DELETED: _ClassVar[SubagentEndReason]
    SUBAGENT_END_REASON_RELEASED: _ClassVar[SubagentEndReason]
    SUBAGENT_END_REASON_SWEPT: _ClassVar[SubagentEndReason]
CONTEXT_MODE_UNSPECIFIED: ContextMode
CONTEXT_MODE_ISOLATED: ContextMode
CONTEXT_MODE_FORK: ContextMode
SUBAGENT_END_REASON_UNSPECIFIED: SubagentEndReason
SUBAGENT_END_REASON_COMPLETED: SubagentEndReason
SUBAGENT_END_REASON_DELETED: SubagentEndReason
SUBAGENT_END_REASON_RELEASED: SubagentEndReason
SUBAGENT_END_REASON_SWEPT: SubagentEndReason

class PrepareSubagentSpawnRequest(_message.Message):
    __slots__ = ("parent", "child", "context_mode", "parent_transcript", "child_transcript", "ttl", "objective", "grant", "request_id", "fork_after_sequence", "fork_after_message_id")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    CHILD_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_MODE_FIELD_NUMBER: _ClassVar[int]
    PARENT_TRANSCRIPT_FIELD_NUMBER: _ClassVar[int]
    CHILD_TRANSCRIPT_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    GRANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    FORK_AFTER_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    FORK_AFTER_MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    parent: _message_pb2.SessionRef
    child: _message_pb2.SessionRef
    context_mode: ContextMode
    parent_transcript: TranscriptRef
    child_transcript: TranscriptRef
    ttl: _duration_pb2.Duration
    objective: str
    grant: RecallGrant
    request_id: str
    fork_after_sequence: int
    fork_after_message_id: str
    def __init__(self, parent: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., child: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., context_mode: _Optional[_Union[ContextMode, str]] = ..., parent_transcript: _Optional[_Union[TranscriptRef, _Mapping]] = ..., child_transcript: _Optional[_Union[TranscriptRef, _Mapping]] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., objective: _Optional[str] = ..., grant: _Optional[_Union[RecallGrant, _Mapping]] = ..., request_id: _Optional[str] = ..., fork_after_sequence: _Optional[int] = ..., fork_after_message_id: _Optional[str] = ...) -> None: ...

class TranscriptRef(_message.Message):
    __slots__ = ("id", "file")
    ID_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    id: str
    file: str
    def __init__(self, id: _Optional[str] = ..., file: _Optional[str] = ...) -> None: ...

class RecallGrant(_message.Message):
    __slots__ = ("max_tokens", "max_depth", "expire_time")
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_DEPTH_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    max_tokens: int
    max_depth: int
    expire_time: _timestamp_pb2.Timestamp
    def __init__(self, max_tokens: _Optional[int] = ..., max_depth: _Optional[int] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class PrepareSubagentSpawnResponse(_message.Message):
    __slots__ = ("spawn_token", "context_mode", "note", "parent_revision", "expire_time", "depth", "inherited_tokens")
    SPAWN_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_MODE_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    PARENT_REVISION_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    INHERITED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    spawn_token: str
    context_mode: ContextMode
    note: str
    parent_revision: int
    expire_time: _timestamp_pb2.Timestamp
    depth: int
    inherited_tokens: int
    def __init__(self, spawn_token: _Optional[str] = ..., context_mode: _Optional[_Union[ContextMode, str]] = ..., note: _Optional[str] = ..., parent_revision: _Optional[int] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., depth: _Optional[int] = ..., inherited_tokens: _Optional[int] = ...) -> None: ...

class RollbackSubagentSpawnRequest(_message.Message):
    __slots__ = ("spawn_token", "parent")
    SPAWN_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    spawn_token: str
    parent: _message_pb2.SessionRef
    def __init__(self, spawn_token: _Optional[str] = ..., parent: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ...) -> None: ...

class RollbackSubagentSpawnResponse(_message.Message):
    __slots__ = ("rolled_back",)
    ROLLED_BACK_FIELD_NUMBER: _ClassVar[int]
    rolled_back: bool
    def __init__(self, rolled_back: _Optional[bool] = ...) -> None: ...

class EndSubagentRequest(_message.Message):
    __slots__ = ("child", "reason", "spawn_token")
    CHILD_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SPAWN_TOKEN_FIELD_NUMBER: _ClassVar[int]
    child: _message_pb2.SessionRef
    reason: SubagentEndReason
    spawn_token: str
    def __init__(self, child: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., reason: _Optional[_Union[SubagentEndReason, str]] = ..., spawn_token: _Optional[str] = ...) -> None: ...

class EndSubagentResponse(_message.Message):
    __slots__ = ("ended",)
    ENDED_FIELD_NUMBER: _ClassVar[int]
    ended: bool
    def __init__(self, ended: _Optional[bool] = ...) -> None: ...

class SpawnStatus(_message.Message):
    __slots__ = ("parent", "context_mode", "depth", "parent_revision", "objective", "grant", "used_tokens", "expire_time", "ended", "parent_transcript", "child_transcript")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_MODE_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    PARENT_REVISION_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    GRANT_FIELD_NUMBER: _ClassVar[int]
    USED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    PARENT_TRANSCRIPT_FIELD_NUMBER: _ClassVar[int]
    CHILD_TRANSCRIPT_FIELD_NUMBER: _ClassVar[int]
    parent: _message_pb2.SessionRef
    context_mode: ContextMode
    depth: int
    parent_revision: int
    objective: str
    grant: RecallGrant
    used_tokens: int
    expire_time: _timestamp_pb2.Timestamp
    ended: str
    parent_transcript: TranscriptRef
    child_transcript: TranscriptRef
    def __init__(self, parent: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., context_mode: _Optional[_Union[ContextMode, str]] = ..., depth: _Optional[int] = ..., parent_revision: _Optional[int] = ..., objective: _Optional[str] = ..., grant: _Optional[_Union[RecallGrant, _Mapping]] = ..., used_tokens: _Optional[int] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended: _Optional[str] = ..., parent_transcript: _Optional[_Union[TranscriptRef, _Mapping]] = ..., child_transcript: _Optional[_Union[TranscriptRef, _Mapping]] = ...) -> None: ...
