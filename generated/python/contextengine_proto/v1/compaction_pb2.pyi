import datetime

from contextengine_proto.v1 import budget_pb2 as _budget_pb2
from contextengine_proto.v1 import host_pb2 as _host_pb2
from contextengine_proto.v1 import message_pb2 as _message_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CompactionTarget(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COMPACTION_TARGET_UNSPECIFIED: _ClassVar[CompactionTarget]
    COMPACTION_TARGET_BUDGET: _ClassVar[CompactionTarget]
    COMPACTION_TARGET_THRESHOLD: _ClassVar[CompactionTarget]
COMPACTION_TARGET_UNSPECIFIED: CompactionTarget
COMPACTION_TARGET_BUDGET: CompactionTarget
COMPACTION_TARGET_THRESHOLD: CompactionTarget

class CompactRequest(_message.Message):
    __slots__ = ("session", "request_id", "expected_revision", "target", "budget", "force", "force_reason", "current_token_count", "focus", "live", "propose_only", "return_list", "undo_to_generation", "no_wait", "runtime_settings", "trigger", "redo", "memory_context")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    FORCE_REASON_FIELD_NUMBER: _ClassVar[int]
    CURRENT_TOKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    FOCUS_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    PROPOSE_ONLY_FIELD_NUMBER: _ClassVar[int]
    RETURN_LIST_FIELD_NUMBER: _ClassVar[int]
    UNDO_TO_GENERATION_FIELD_NUMBER: _ClassVar[int]
    NO_WAIT_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_SETTINGS_FIELD_NUMBER: _ClassVar[int]
    TRIGGER_FIELD_NUMBER: _ClassVar[int]
    REDO_FIELD_NUMBER: _ClassVar[int]
    MEMORY_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    request_id: str
    expected_revision: int
    target: CompactionTarget
    budget: _budget_pb2.Budget
    force: bool
    force_reason: str
    current_token_count: int
    focus: str
    live: LiveCompaction
    propose_only: bool
    return_list: bool
    undo_to_generation: int
    no_wait: bool
    runtime_settings: _host_pb2.RuntimeSettings
    trigger: str
    redo: bool
    memory_context: str
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., request_id: _Optional[str] = ..., expected_revision: _Optional[int] = ..., target: _Optional[_Union[CompactionTarget, str]] = ..., budget: _Optional[_Union[_budget_pb2.Budget, _Mapping]] = ..., force: _Optional[bool] = ..., force_reason: _Optional[str] = ..., current_token_count: _Optional[int] = ..., focus: _Optional[str] = ..., live: _Optional[_Union[LiveCompaction, _Mapping]] = ..., propose_only: _Optional[bool] = ..., return_list: _Optional[bool] = ..., undo_to_generation: _Optional[int] = ..., no_wait: _Optional[bool] = ..., runtime_settings: _Optional[_Union[_host_pb2.RuntimeSettings, _Mapping]] = ..., trigger: _Optional[str] = ..., redo: _Optional[bool] = ..., memory_context: _Optional[str] = ...) -> None: ...

class LiveCompaction(_message.Message):
    __slots__ = ("messages", "store_new", "takes_back")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    STORE_NEW_FIELD_NUMBER: _ClassVar[int]
    TAKES_BACK_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[_message_pb2.Message]
    store_new: bool
    takes_back: bool
    def __init__(self, messages: _Optional[_Iterable[_Union[_message_pb2.Message, _Mapping]]] = ..., store_new: _Optional[bool] = ..., takes_back: _Optional[bool] = ...) -> None: ...

class CompactResponse(_message.Message):
    __slots__ = ("compacted", "reason", "tokens_before", "tokens_after", "summaries", "generation", "revision", "delegation", "proposal_id", "proposal_expire_time", "items", "changed", "first_kept_sequence", "first_kept_message_id", "passes", "ok", "system_prompt_addition", "summary_text")
    COMPACTED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TOKENS_BEFORE_FIELD_NUMBER: _ClassVar[int]
    TOKENS_AFTER_FIELD_NUMBER: _ClassVar[int]
    SUMMARIES_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DELEGATION_FIELD_NUMBER: _ClassVar[int]
    PROPOSAL_ID_FIELD_NUMBER: _ClassVar[int]
    PROPOSAL_EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    FIRST_KEPT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    FIRST_KEPT_MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    PASSES_FIELD_NUMBER: _ClassVar[int]
    OK_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_PROMPT_ADDITION_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_TEXT_FIELD_NUMBER: _ClassVar[int]
    compacted: bool
    reason: str
    tokens_before: int
    tokens_after: int
    summaries: _containers.RepeatedCompositeFieldContainer[_message_pb2.SummaryInfo]
    generation: int
    revision: int
    delegation: Delegation
    proposal_id: str
    proposal_expire_time: _timestamp_pb2.Timestamp
    items: _containers.RepeatedCompositeFieldContainer[_message_pb2.Item]
    changed: bool
    first_kept_sequence: int
    first_kept_message_id: str
    passes: int
    ok: bool
    system_prompt_addition: str
    summary_text: str
    def __init__(self, compacted: _Optional[bool] = ..., reason: _Optional[str] = ..., tokens_before: _Optional[int] = ..., tokens_after: _Optional[int] = ..., summaries: _Optional[_Iterable[_Union[_message_pb2.SummaryInfo, _Mapping]]] = ..., generation: _Optional[int] = ..., revision: _Optional[int] = ..., delegation: _Optional[_Union[Delegation, _Mapping]] = ..., proposal_id: _Optional[str] = ..., proposal_expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., items: _Optional[_Iterable[_Union[_message_pb2.Item, _Mapping]]] = ..., changed: _Optional[bool] = ..., first_kept_sequence: _Optional[int] = ..., first_kept_message_id: _Optional[str] = ..., passes: _Optional[int] = ..., ok: _Optional[bool] = ..., system_prompt_addition: _Optional[str] = ..., summary_text: _Optional[str] = ...) -> None: ...

class Delegation(_message.Message):
    __slots__ = ("first_sequence", "last_sequence", "instructions", "target_tokens", "first_message_id", "last_message_id")
    FIRST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTIONS_FIELD_NUMBER: _ClassVar[int]
    TARGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    FIRST_MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    first_sequence: int
    last_sequence: int
    instructions: str
    target_tokens: int
    first_message_id: str
    last_message_id: str
    def __init__(self, first_sequence: _Optional[int] = ..., last_sequence: _Optional[int] = ..., instructions: _Optional[str] = ..., target_tokens: _Optional[int] = ..., first_message_id: _Optional[str] = ..., last_message_id: _Optional[str] = ...) -> None: ...

class CommitCompactionRequest(_message.Message):
    __slots__ = ("session", "proposal_id", "accept", "refuse_reason")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    PROPOSAL_ID_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_FIELD_NUMBER: _ClassVar[int]
    REFUSE_REASON_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    proposal_id: str
    accept: bool
    refuse_reason: str
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., proposal_id: _Optional[str] = ..., accept: _Optional[bool] = ..., refuse_reason: _Optional[str] = ...) -> None: ...

class CommitCompactionResponse(_message.Message):
    __slots__ = ("committed", "reason", "generation", "revision")
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    committed: bool
    reason: str
    generation: int
    revision: int
    def __init__(self, committed: _Optional[bool] = ..., reason: _Optional[str] = ..., generation: _Optional[int] = ..., revision: _Optional[int] = ...) -> None: ...

class ShouldCompactRequest(_message.Message):
    __slots__ = ("session", "prompt_tokens", "budget", "live", "preflight")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    PREFLIGHT_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    prompt_tokens: int
    budget: _budget_pb2.Budget
    live: LiveCompaction
    preflight: bool
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., prompt_tokens: _Optional[int] = ..., budget: _Optional[_Union[_budget_pb2.Budget, _Mapping]] = ..., live: _Optional[_Union[LiveCompaction, _Mapping]] = ..., preflight: _Optional[bool] = ...) -> None: ...

class ShouldCompactResponse(_message.Message):
    __slots__ = ("should_compact", "reason", "tokens", "threshold_tokens", "has_content", "awaiting_usage")
    SHOULD_COMPACT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_TOKENS_FIELD_NUMBER: _ClassVar[int]
    HAS_CONTENT_FIELD_NUMBER: _ClassVar[int]
    AWAITING_USAGE_FIELD_NUMBER: _ClassVar[int]
    should_compact: bool
    reason: str
    tokens: int
    threshold_tokens: int
    has_content: bool
    awaiting_usage: bool
    def __init__(self, should_compact: _Optional[bool] = ..., reason: _Optional[str] = ..., tokens: _Optional[int] = ..., threshold_tokens: _Optional[int] = ..., has_content: _Optional[bool] = ..., awaiting_usage: _Optional[bool] = ...) -> None: ...
