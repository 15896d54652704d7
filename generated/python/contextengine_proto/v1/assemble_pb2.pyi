import datetime

from contextengine_proto.v1 import budget_pb2 as _budget_pb2
from contextengine_proto.v1 import host_pb2 as _host_pb2
from contextengine_proto.v1 import message_pb2 as _message_pb2
from contextengine_proto.v1 import projection_pb2 as _projection_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PromptAuthority(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROMPT_AUTHORITY_UNSPECIFIED: _ClassVar[PromptAuthority]
    PROMPT_AUTHORITY_ASSEMBLED: _ClassVar[PromptAuthority]
    PROMPT_AUTHORITY_PREASSEMBLY_MAY_OVERFLOW: _ClassVar[PromptAuthority]

class EpochCause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EPOCH_CAUSE_UNSPECIFIED: _ClassVar[EpochCause]
    EPOCH_CAUSE_CUT: _ClassVar[EpochCause]
    EPOCH_CAUSE_MASKED: _ClassVar[EpochCause]
    EPOCH_CAUSE_COMPACTED: _ClassVar[EpochCause]
    EPOCH_CAUSE_REWOUND: _ClassVar[EpochCause]
    EPOCH_CAUSE_RESET: _ClassVar[EpochCause]
    EPOCH_CAUSE_LATE_RESULT: _ClassVar[EpochCause]
    EPOCH_CAUSE_BUDGET: _ClassVar[EpochCause]
    EPOCH_CAUSE_ENGINE: _ClassVar[EpochCause]
    EPOCH_CAUSE_MODEL: _ClassVar[EpochCause]
    EPOCH_CAUSE_CONFIG: _ClassVar[EpochCause]
    EPOCH_CAUSE_UNKNOWN: _ClassVar[EpochCause]
PROMPT_AUTHORITY_UNSPECIFIED: PromptAuthority
PROMPT_AUTHORITY_ASSEMBLED: PromptAuthority
PROMPT_AUTHORITY_PREASSEMBLY_MAY_OVERFLOW: PromptAuthority
EPOCH_CAUSE_UNSPECIFIED: EpochCause
EPOCH_CAUSE_CUT: EpochCause
EPOCH_CAUSE_MASKED: EpochCause
EPOCH_CAUSE_COMPACTED: EpochCause
EPOCH_CAUSE_REWOUND: EpochCause
EPOCH_CAUSE_RESET: EpochCause
EPOCH_CAUSE_LATE_RESULT: EpochCause
EPOCH_CAUSE_BUDGET: EpochCause
EPOCH_CAUSE_ENGINE: EpochCause
EPOCH_CAUSE_MODEL: EpochCause
EPOCH_CAUSE_CONFIG: EpochCause
EPOCH_CAUSE_UNKNOWN: EpochCause

class AssembleRequest(_message.Message):
    __slots__ = ("session", "ingest", "live", "request_id", "budget", "model", "provider", "prompt", "current_message_id", "current_token_count", "available_tools", "tools", "citations_mode", "channel_type", "preamble", "workspace_files", "memory_sections", "cache_retention", "runtime_settings", "prompt_cache", "known_context_hash", "known_epoch", "at_least_revision", "explain", "projection", "objective")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    INGEST_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    CURRENT_MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    CURRENT_TOKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_TOOLS_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    CITATIONS_MODE_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_TYPE_FIELD_NUMBER: _ClassVar[int]
    PREAMBLE_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FILES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_SECTIONS_FIELD_NUMBER: _ClassVar[int]
    CACHE_RETENTION_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_SETTINGS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_CACHE_FIELD_NUMBER: _ClassVar[int]
    KNOWN_CONTEXT_HASH_FIELD_NUMBER: _ClassVar[int]
    KNOWN_EPOCH_FIELD_NUMBER: _ClassVar[int]
    AT_LEAST_REVISION_FIELD_NUMBER: _ClassVar[int]
    EXPLAIN_FIELD_NUMBER: _ClassVar[int]
    PROJECTION_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    ingest: _containers.RepeatedCompositeFieldContainer[_message_pb2.Message]
    live: LiveList
    request_id: str
    budget: _budget_pb2.Budget
    model: str
    provider: str
    prompt: _containers.RepeatedCompositeFieldContainer[_message_pb2.Part]
    current_message_id: str
    current_token_count: int
    available_tools: _containers.RepeatedScalarFieldContainer[str]
    tools: _containers.RepeatedCompositeFieldContainer[_budget_pb2.ToolDefinition]
    citations_mode: str
    channel_type: str
    preamble: _host_pb2.Preamble
    workspace_files: _containers.RepeatedCompositeFieldContainer[_host_pb2.WorkspaceFile]
    memory_sections: _containers.RepeatedCompositeFieldContainer[_host_pb2.MemorySection]
    cache_retention: _host_pb2.CacheRetention
    runtime_settings: _host_pb2.RuntimeSettings
    prompt_cache: _host_pb2.PromptCache
    known_context_hash: bytes
    known_epoch: str
    at_least_revision: int
    explain: bool
    projection: _projection_pb2.ProjectionOptions
    objective: str
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., ingest: _Optional[_Iterable[_Union[_message_pb2.Message, _Mapping]]] = ..., live: _Optional[_Union[LiveList, _Mapping]] = ..., request_id: _Optional[str] = ..., budget: _Optional[_Union[_budget_pb2.Budget, _Mapping]] = ..., model: _Optional[str] = ..., provider: _Optional[str] = ..., prompt: _Optional[_Iterable[_Union[_message_pb2.Part, _Mapping]]] = ..., current_message_id: _Optional[str] = ..., current_token_count: _Optional[int] = ..., available_tools: _Optional[_Iterable[str]] = ..., tools: _Optional[_Iterable[_Union[_budget_pb2.ToolDefinition, _Mapping]]] = ..., citations_mode: _Optional[str] = ..., channel_type: _Optional[str] = ..., preamble: _Optional[_Union[_host_pb2.Preamble, _Mapping]] = ..., workspace_files: _Optional[_Iterable[_Union[_host_pb2.WorkspaceFile, _Mapping]]] = ..., memory_sections: _Optional[_Iterable[_Union[_host_pb2.MemorySection, _Mapping]]] = ..., cache_retention: _Optional[_Union[_host_pb2.CacheRetention, str]] = ..., runtime_settings: _Optional[_Union[_host_pb2.RuntimeSettings, _Mapping]] = ..., prompt_cache: _Optional[_Union[_host_pb2.PromptCache, _Mapping]] = ..., known_context_hash: _Optional[bytes] = ..., known_epoch: _Optional[str] = ..., at_least_revision: _Optional[int] = ..., explain: _Optional[bool] = ..., projection: _Optional[_Union[_projection_pb2.ProjectionOptions, _Mapping]] = ..., objective: _Optional[str] = ...) -> None: ...

class LiveList(_message.Message):
    __slots__ = ("messages", "store_new", "takes_back")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    STORE_NEW_FIELD_NUMBER: _ClassVar[int]
    TAKES_BACK_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[_message_pb2.Message]
    store_new: bool
    takes_back: bool
    def __init__(self, messages: _Optional[_Iterable[_Union[_message_pb2.Message, _Mapping]]] = ..., store_new: _Optional[bool] = ..., takes_back: _Optional[bool] = ...) -> None: ...

class AssembleResponse(_message.Message):
    __slots__ = ("items", "outcome", "outcome_reason", "estimated_tokens", "system_prompt_addition", "preamble", "prompt_authority", "context_projection", "budget", "cache", "revision", "assembly_id", "engine_id", "biggest", "stored", "decisions", "metrics", "projection", "visible_tools", "suggested_max_output_tokens", "cache_retention", "cache_breakpoints", "context_hash", "engine_version")
    class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OUTCOME_UNSPECIFIED: _ClassVar[AssembleResponse.Outcome]
        OUTCOME_FITS: _ClassVar[AssembleResponse.Outcome]
        OUTCOME_OVER_BUDGET: _ClassVar[AssembleResponse.Outcome]
        OUTCOME_DEGRADED: _ClassVar[AssembleResponse.Outcome]
    OUTCOME_UNSPECIFIED: AssembleResponse.Outcome
    OUTCOME_FITS: AssembleResponse.Outcome
    OUTCOME_OVER_BUDGET: AssembleResponse.Outcome
    OUTCOME_DEGRADED: AssembleResponse.Outcome
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_REASON_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_PROMPT_ADDITION_FIELD_NUMBER: _ClassVar[int]
    PREAMBLE_FIELD_NUMBER: _ClassVar[int]
    PROMPT_AUTHORITY_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_PROJECTION_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    CACHE_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    ASSEMBLY_ID_FIELD_NUMBER: _ClassVar[int]
    ENGINE_ID_FIELD_NUMBER: _ClassVar[int]
    BIGGEST_FIELD_NUMBER: _ClassVar[int]
    STORED_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    PROJECTION_FIELD_NUMBER: _ClassVar[int]
    VISIBLE_TOOLS_FIELD_NUMBER: _ClassVar[int]
    SUGGESTED_MAX_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_RETENTION_FIELD_NUMBER: _ClassVar[int]
    CACHE_BREAKPOINTS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_HASH_FIELD_NUMBER: _ClassVar[int]
    ENGINE_VERSION_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[_message_pb2.Item]
    outcome: AssembleResponse.Outcome
    outcome_reason: str
    estimated_tokens: int
    system_prompt_addition: str
    preamble: str
    prompt_authority: PromptAuthority
    context_projection: ContextProjection
    budget: _budget_pb2.BudgetReport
    cache: CacheReport
    revision: int
    assembly_id: str
    engine_id: str
    biggest: _containers.RepeatedCompositeFieldContainer[BigItem]
    stored: _containers.RepeatedCompositeFieldContainer[_message_pb2.StoredMessage]
    decisions: _containers.RepeatedCompositeFieldContainer[Decision]
    metrics: AssembleMetrics
    projection: _projection_pb2.ProjectResponse
    visible_tools: _containers.RepeatedCompositeFieldContainer[_budget_pb2.ToolDefinition]
    suggested_max_output_tokens: int
    cache_retention: _host_pb2.CacheRetention
    cache_breakpoints: _containers.RepeatedScalarFieldContainer[int]
    context_hash: bytes
    engine_version: str
    def __init__(self, items: _Optional[_Iterable[_Union[_message_pb2.Item, _Mapping]]] = ..., outcome: _Optional[_Union[AssembleResponse.Outcome, str]] = ..., outcome_reason: _Optional[str] = ..., estimated_tokens: _Optional[int] = ..., system_prompt_addition: _Optional[str] = ..., preamble: _Optional[str] = ..., prompt_authority: _Optional[_Union[PromptAuthority, str]] = ..., context_projection: _Optional[_Union[ContextProjection, _Mapping]] = ..., budget: _Optional[_Union[_budget_pb2.BudgetReport, _Mapping]] = ..., cache: _Optional[_Union[CacheReport, _Mapping]] = ..., revision: _Optional[int] = ..., assembly_id: _Optional[str] = ..., engine_id: _Optional[str] = ..., biggest: _Optional[_Iterable[_Union[BigItem, _Mapping]]] = ..., stored: _Optional[_Iterable[_Union[_message_pb2.StoredMessage, _Mapping]]] = ..., decisions: _Optional[_Iterable[_Union[Decision, _Mapping]]] = ..., metrics: _Optional[_Union[AssembleMetrics, _Mapping]] = ..., projection: _Optional[_Union[_projection_pb2.ProjectResponse, _Mapping]] = ..., visible_tools: _Optional[_Iterable[_Union[_budget_pb2.ToolDefinition, _Mapping]]] = ..., suggested_max_output_tokens: _Optional[int] = ..., cache_retention: _Optional[_Union[_host_pb2.CacheRetention, str]] = ..., cache_breakpoints: _Optional[_Iterable[int]] = ..., context_hash: _Optional[bytes] = ..., engine_version: _Optional[str] = ...) -> None: ...

class ContextProjection(_message.Message):
    __slots__ = ("mode", "epoch", "fingerprint")
    class Mode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        MODE_UNSPECIFIED: _ClassVar[ContextProjection.Mode]
        MODE_PER_TURN: _ClassVar[ContextProjection.Mode]
        MODE_THREAD_BOOTSTRAP: _ClassVar[ContextProjection.Mode]
    MODE_UNSPECIFIED: ContextProjection.Mode
    MODE_PER_TURN: ContextProjection.Mode
    MODE_THREAD_BOOTSTRAP: ContextProjection.Mode
    MODE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    mode: ContextProjection.Mode
    epoch: str
    fingerprint: str
    def __init__(self, mode: _Optional[_Union[ContextProjection.Mode, str]] = ..., epoch: _Optional[str] = ..., fingerprint: _Optional[str] = ...) -> None: ...

class CacheReport(_message.Message):
    __slots__ = ("reused_count", "total_count", "first_changed_index", "delta", "epoch_cause", "reused_tokens")
    REUSED_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_COUNT_FIELD_NUMBER: _ClassVar[int]
    FIRST_CHANGED_INDEX_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    EPOCH_CAUSE_FIELD_NUMBER: _ClassVar[int]
    REUSED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    reused_count: int
    total_count: int
    first_changed_index: int
    delta: bool
    epoch_cause: EpochCause
    reused_tokens: int
    def __init__(self, reused_count: _Optional[int] = ..., total_count: _Optional[int] = ..., first_changed_index: _Optional[int] = ..., delta: _Optional[bool] = ..., epoch_cause: _Optional[_Union[EpochCause, str]] = ..., reused_tokens: _Optional[int] = ...) -> None: ...

class BigItem(_message.Message):
    __slots__ = ("index", "origin", "tokens", "rule")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    index: int
    origin: _message_pb2.Origin
    tokens: int
    rule: str
    def __init__(self, index: _Optional[int] = ..., origin: _Optional[_Union[_message_pb2.Origin, _Mapping]] = ..., tokens: _Optional[int] = ..., rule: _Optional[str] = ...) -> None: ...

class Decision(_message.Message):
    __slots__ = ("sequence", "kind", "rule", "tokens", "summary_id", "item_index", "synthetic_count", "id", "role", "form")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[Decision.Kind]
        KIND_KEPT: _ClassVar[Decision.Kind]
        KIND_PINNED: _ClassVar[Decision.Kind]
        KIND_MASKED: _ClassVar[Decision.Kind]
        KIND_EVICTED: _ClassVar[Decision.Kind]
        KIND_SUMMARIZED: _ClassVar[Decision.Kind]
        KIND_BOUNDED: _ClassVar[Decision.Kind]
        KIND_DROPPED: _ClassVar[Decision.Kind]
    KIND_UNSPECIFIED: Decision.Kind
    KIND_KEPT: Decision.Kind
    KIND_PINNED: Decision.Kind
    KIND_MASKED: Decision.Kind
    KIND_EVICTED: Decision.Kind
    KIND_SUMMARIZED: Decision.Kind
    KIND_BOUNDED: Decision.Kind
    KIND_DROPPED: Decision.Kind
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_ID_FIELD_NUMBER: _ClassVar[int]
    ITEM_INDEX_FIELD_NUMBER: _ClassVar[int]
    SYNTHETIC_COUNT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    FORM_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    kind: Decision.Kind
    rule: str
    tokens: int
    summary_id: str
    item_index: int
    synthetic_count: int
    id: str
    role: _message_pb2.Role
    form: _message_pb2.Form
    def __init__(self, sequence: _Optional[int] = ..., kind: _Optional[_Union[Decision.Kind, str]] = ..., rule: _Optional[str] = ..., tokens: _Optional[int] = ..., summary_id: _Optional[str] = ..., item_index: _Optional[int] = ..., synthetic_count: _Optional[int] = ..., id: _Optional[str] = ..., role: _Optional[_Union[_message_pb2.Role, str]] = ..., form: _Optional[_Union[_message_pb2.Form, str]] = ...) -> None: ...

class AssembleMetrics(_message.Message):
    __slots__ = ("tokens_loaded", "tokens_evicted", "tokens_masked", "tokens_compacted", "thinking_blocks_removed", "budget_utilization", "reread_count", "session_depth", "session_tool_results", "layer_count", "messages_evicted", "messages_compacted", "synthetic_results", "duration", "layer_tokens", "rehydrated")
    class LayerTokensEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class Rehydrated(_message.Message):
        __slots__ = ("sections", "files", "tokens", "stripped")
        SECTIONS_FIELD_NUMBER: _ClassVar[int]
        FILES_FIELD_NUMBER: _ClassVar[int]
        TOKENS_FIELD_NUMBER: _ClassVar[int]
        STRIPPED_FIELD_NUMBER: _ClassVar[int]
        sections: int
        files: int
        tokens: int
        stripped: str
        def __init__(self, sections: _Optional[int] = ..., files: _Optional[int] = ..., tokens: _Optional[int] = ..., stripped: _Optional[str] = ...) -> None: ...
    TOKENS_LOADED_FIELD_NUMBER: _ClassVar[int]
    TOKENS_EVICTED_FIELD_NUMBER: _ClassVar[int]
    TOKENS_MASKED_FIELD_NUMBER: _ClassVar[int]
    TOKENS_COMPACTED_FIELD_NUMBER: _ClassVar[int]
    THINKING_BLOCKS_REMOVED_FIELD_NUMBER: _ClassVar[int]
    BUDGET_UTILIZATION_FIELD_NUMBER: _ClassVar[int]
    REREAD_COUNT_FIELD_NUMBER: _ClassVar[int]
    SESSION_DEPTH_FIELD_NUMBER: _ClassVar[int]
    SESSION_TOOL_RESULTS_FIELD_NUMBER: _ClassVar[int]
    LAYER_COUNT_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_EVICTED_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_COMPACTED_FIELD_NUMBER: _ClassVar[int]
    SYNTHETIC_RESULTS_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    LAYER_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REHYDRATED_FIELD_NUMBER: _ClassVar[int]
    tokens_loaded: int
    tokens_evicted: int
    tokens_masked: int
    tokens_compacted: int
    thinking_blocks_removed: int
    budget_utilization: float
    reread_count: int
    session_depth: int
    session_tool_results: int
    layer_count: int
    messages_evicted: int
    messages_compacted: int
    synthetic_results: int
    duration: _duration_pb2.Duration
    layer_tokens: _containers.ScalarMap[str, int]
    rehydrated: AssembleMetrics.Rehydrated
    def __init__(self, tokens_loaded: _Optional[int] = ..., tokens_evicted: _Optional[int] = ..., tokens_masked: _Optional[int] = ..., tokens_compacted: _Optional[int] = ..., thinking_blocks_removed: _Optional[int] = ..., budget_utilization: _Optional[float] = ..., reread_count: _Optional[int] = ..., session_depth: _Optional[int] = ..., session_tool_results: _Optional[int] = ..., layer_count: _Optional[int] = ..., messages_evicted: _Optional[int] = ..., messages_compacted: _Optional[int] = ..., synthetic_results: _Optional[int] = ..., duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., layer_tokens: _Optional[_Mapping[str, int]] = ..., rehydrated: _Optional[_Union[AssembleMetrics.Rehydrated, _Mapping]] = ...) -> None: ...
