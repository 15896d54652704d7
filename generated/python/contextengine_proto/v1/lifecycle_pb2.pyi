import datetime

from contextengine_proto.v1 import budget_pb2 as _budget_pb2
from contextengine_proto.v1 import engine_info_pb2 as _engine_info_pb2
from contextengine_proto.v1 import host_pb2 as _host_pb2
from contextengine_proto.v1 import message_pb2 as _message_pb2
from contextengine_proto.v1 import quota_pb2 as _quota_pb2
from contextengine_proto.v1 import runtime_pb2 as _runtime_pb2
from contextengine_proto.v1 import subagent_pb2 as _subagent_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BootstrapRequest(_message.Message):
    __slots__ = ("session", "host", "continues", "history", "model", "provider", "window", "workspace_files", "runtime_settings", "request_id", "spawn_token")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    CONTINUES_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FILES_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_SETTINGS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SPAWN_TOKEN_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    host: _host_pb2.HostInfo
    continues: _message_pb2.SessionRef
    history: _containers.RepeatedCompositeFieldContainer[_message_pb2.Message]
    model: str
    provider: str
    window: int
    workspace_files: _containers.RepeatedCompositeFieldContainer[_host_pb2.WorkspaceFile]
    runtime_settings: _host_pb2.RuntimeSettings
    request_id: str
    spawn_token: str
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., host: _Optional[_Union[_host_pb2.HostInfo, _Mapping]] = ..., continues: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., history: _Optional[_Iterable[_Union[_message_pb2.Message, _Mapping]]] = ..., model: _Optional[str] = ..., provider: _Optional[str] = ..., window: _Optional[int] = ..., workspace_files: _Optional[_Iterable[_Union[_host_pb2.WorkspaceFile, _Mapping]]] = ..., runtime_settings: _Optional[_Union[_host_pb2.RuntimeSettings, _Mapping]] = ..., request_id: _Optional[str] = ..., spawn_token: _Optional[str] = ...) -> None: ...

class BootstrapResponse(_message.Message):
    __slots__ = ("engine", "session_id", "revision", "created", "rotated", "stored", "last_sequence", "encoding", "last_message_id")
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    ROTATED_FIELD_NUMBER: _ClassVar[int]
    STORED_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    LAST_MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    engine: _engine_info_pb2.EngineInfo
    session_id: str
    revision: int
    created: bool
    rotated: bool
    stored: _containers.RepeatedCompositeFieldContainer[_message_pb2.StoredMessage]
    last_sequence: int
    encoding: str
    last_message_id: str
    def __init__(self, engine: _Optional[_Union[_engine_info_pb2.EngineInfo, _Mapping]] = ..., session_id: _Optional[str] = ..., revision: _Optional[int] = ..., created: _Optional[bool] = ..., rotated: _Optional[bool] = ..., stored: _Optional[_Iterable[_Union[_message_pb2.StoredMessage, _Mapping]]] = ..., last_sequence: _Optional[int] = ..., encoding: _Optional[str] = ..., last_message_id: _Optional[str] = ...) -> None: ...

class IngestRequest(_message.Message):
    __slots__ = ("session", "message", "request_id")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    message: _message_pb2.Message
    request_id: str
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., message: _Optional[_Union[_message_pb2.Message, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class IngestResponse(_message.Message):
    __slots__ = ("stored", "revision", "ingested")
    STORED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    INGESTED_FIELD_NUMBER: _ClassVar[int]
    stored: _message_pb2.StoredMessage
    revision: int
    ingested: bool
    def __init__(self, stored: _Optional[_Union[_message_pb2.StoredMessage, _Mapping]] = ..., revision: _Optional[int] = ..., ingested: _Optional[bool] = ...) -> None: ...

class IngestBatchRequest(_message.Message):
    __slots__ = ("session", "messages", "request_id")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    messages: _containers.RepeatedCompositeFieldContainer[_message_pb2.Message]
    request_id: str
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., messages: _Optional[_Iterable[_Union[_message_pb2.Message, _Mapping]]] = ..., request_id: _Optional[str] = ...) -> None: ...

class IngestBatchResponse(_message.Message):
    __slots__ = ("stored", "revision", "ingested_count")
    STORED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    INGESTED_COUNT_FIELD_NUMBER: _ClassVar[int]
    stored: _containers.RepeatedCompositeFieldContainer[_message_pb2.StoredMessage]
    revision: int
    ingested_count: int
    def __init__(self, stored: _Optional[_Iterable[_Union[_message_pb2.StoredMessage, _Mapping]]] = ..., revision: _Optional[int] = ..., ingested_count: _Optional[int] = ...) -> None: ...

class AfterTurnRequest(_message.Message):
    __slots__ = ("session", "messages", "pre_prompt_message_count", "advancement_key", "usage", "is_heartbeat", "budget", "auto_compaction_summary", "runtime_settings", "prompt_cache", "current_token_count", "request_id", "assembly_id", "other_tokens")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    PRE_PROMPT_MESSAGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    ADVANCEMENT_KEY_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    IS_HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    AUTO_COMPACTION_SUMMARY_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_SETTINGS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_CACHE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_TOKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ASSEMBLY_ID_FIELD_NUMBER: _ClassVar[int]
    OTHER_TOKENS_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    messages: _containers.RepeatedCompositeFieldContainer[_message_pb2.Message]
    pre_prompt_message_count: int
    advancement_key: str
    usage: _message_pb2.Usage
    is_heartbeat: bool
    budget: _budget_pb2.Budget
    auto_compaction_summary: str
    runtime_settings: _host_pb2.RuntimeSettings
    prompt_cache: _host_pb2.PromptCache
    current_token_count: int
    request_id: str
    assembly_id: str
    other_tokens: int
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., messages: _Optional[_Iterable[_Union[_message_pb2.Message, _Mapping]]] = ..., pre_prompt_message_count: _Optional[int] = ..., advancement_key: _Optional[str] = ..., usage: _Optional[_Union[_message_pb2.Usage, _Mapping]] = ..., is_heartbeat: _Optional[bool] = ..., budget: _Optional[_Union[_budget_pb2.Budget, _Mapping]] = ..., auto_compaction_summary: _Optional[str] = ..., runtime_settings: _Optional[_Union[_host_pb2.RuntimeSettings, _Mapping]] = ..., prompt_cache: _Optional[_Union[_host_pb2.PromptCache, _Mapping]] = ..., current_token_count: _Optional[int] = ..., request_id: _Optional[str] = ..., assembly_id: _Optional[str] = ..., other_tokens: _Optional[int] = ...) -> None: ...

class AfterTurnResponse(_message.Message):
    __slots__ = ("status", "stored", "revision", "compaction_queued", "job_wait")
    class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATUS_UNSPECIFIED: _ClassVar[AfterTurnResponse.Status]
        STATUS_COMMITTED: _ClassVar[AfterTurnResponse.Status]
        STATUS_DUPLICATE: _ClassVar[AfterTurnResponse.Status]
    STATUS_UNSPECIFIED: AfterTurnResponse.Status
    STATUS_COMMITTED: AfterTurnResponse.Status
    STATUS_DUPLICATE: AfterTurnResponse.Status
    STATUS_FIELD_NUMBER: _ClassVar[int]
    STORED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    COMPACTION_QUEUED_FIELD_NUMBER: _ClassVar[int]
    JOB_WAIT_FIELD_NUMBER: _ClassVar[int]
    status: AfterTurnResponse.Status
    stored: _containers.RepeatedCompositeFieldContainer[_message_pb2.StoredMessage]
    revision: int
    compaction_queued: bool
    job_wait: _duration_pb2.Duration
    def __init__(self, status: _Optional[_Union[AfterTurnResponse.Status, str]] = ..., stored: _Optional[_Iterable[_Union[_message_pb2.StoredMessage, _Mapping]]] = ..., revision: _Optional[int] = ..., compaction_queued: _Optional[bool] = ..., job_wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class RecordHostChangeRequest(_message.Message):
    __slots__ = ("session", "change_id", "rewind", "compacted", "native_compacted")
    class Rewind(_message.Message):
        __slots__ = ("after_sequence", "after_message_id")
        AFTER_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
        AFTER_MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
        after_sequence: int
        after_message_id: str
        def __init__(self, after_sequence: _Optional[int] = ..., after_message_id: _Optional[str] = ...) -> None: ...
    class HostCompaction(_message.Message):
        __slots__ = ("first_sequence", "last_sequence", "summary", "first_message_id", "last_message_id", "first_kept_message_id")
        FIRST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
        LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
        SUMMARY_FIELD_NUMBER: _ClassVar[int]
        FIRST_MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
        LAST_MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
        FIRST_KEPT_MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
        first_sequence: int
        last_sequence: int
        summary: str
        first_message_id: str
        last_message_id: str
        first_kept_message_id: str
        def __init__(self, first_sequence: _Optional[int] = ..., last_sequence: _Optional[int] = ..., summary: _Optional[str] = ..., first_message_id: _Optional[str] = ..., last_message_id: _Optional[str] = ..., first_kept_message_id: _Optional[str] = ...) -> None: ...
    class NativeCompaction(_message.Message):
        __slots__ = ("thread_id",)
        THREAD_ID_FIELD_NUMBER: _ClassVar[int]
        thread_id: str
        def __init__(self, thread_id: _Optional[str] = ...) -> None: ...
    SESSION_FIELD_NUMBER: _ClassVar[int]
    CHANGE_ID_FIELD_NUMBER: _ClassVar[int]
    REWIND_FIELD_NUMBER: _ClassVar[int]
    COMPACTED_FIELD_NUMBER: _ClassVar[int]
    NATIVE_COMPACTED_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    change_id: str
    rewind: RecordHostChangeRequest.Rewind
    compacted: RecordHostChangeRequest.HostCompaction
    native_compacted: RecordHostChangeRequest.NativeCompaction
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., change_id: _Optional[str] = ..., rewind: _Optional[_Union[RecordHostChangeRequest.Rewind, _Mapping]] = ..., compacted: _Optional[_Union[RecordHostChangeRequest.HostCompaction, _Mapping]] = ..., native_compacted: _Optional[_Union[RecordHostChangeRequest.NativeCompaction, _Mapping]] = ...) -> None: ...

class RecordHostChangeResponse(_message.Message):
    __slots__ = ("recorded", "revision", "summary", "retired_count")
    RECORDED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    RETIRED_COUNT_FIELD_NUMBER: _ClassVar[int]
    recorded: bool
    revision: int
    summary: _message_pb2.SummaryInfo
    retired_count: int
    def __init__(self, recorded: _Optional[bool] = ..., revision: _Optional[int] = ..., summary: _Optional[_Union[_message_pb2.SummaryInfo, _Mapping]] = ..., retired_count: _Optional[int] = ...) -> None: ...

class MaintainRequest(_message.Message):
    __slots__ = ("session", "reason", "lend", "completions", "wait")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    LEND_FIELD_NUMBER: _ClassVar[int]
    COMPLETIONS_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    reason: str
    lend: _runtime_pb2.AttachRequest.Hello
    completions: _containers.RepeatedCompositeFieldContainer[_runtime_pb2.AttachRequest.Completion]
    wait: _duration_pb2.Duration
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., reason: _Optional[str] = ..., lend: _Optional[_Union[_runtime_pb2.AttachRequest.Hello, _Mapping]] = ..., completions: _Optional[_Iterable[_Union[_runtime_pb2.AttachRequest.Completion, _Mapping]]] = ..., wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class MaintainResponse(_message.Message):
    __slots__ = ("changed", "rewrites", "reason", "jobs", "receipts", "more_jobs")
    class Rewrite(_message.Message):
        __slots__ = ("sequence", "id", "replacement")
        SEQUENCE_FIELD_NUMBER: _ClassVar[int]
        ID_FIELD_NUMBER: _ClassVar[int]
        REPLACEMENT_FIELD_NUMBER: _ClassVar[int]
        sequence: int
        id: str
        replacement: _message_pb2.Message
        def __init__(self, sequence: _Optional[int] = ..., id: _Optional[str] = ..., replacement: _Optional[_Union[_message_pb2.Message, _Mapping]] = ...) -> None: ...
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    REWRITES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    RECEIPTS_FIELD_NUMBER: _ClassVar[int]
    MORE_JOBS_FIELD_NUMBER: _ClassVar[int]
    changed: bool
    rewrites: _containers.RepeatedCompositeFieldContainer[MaintainResponse.Rewrite]
    reason: str
    jobs: _containers.RepeatedCompositeFieldContainer[_runtime_pb2.AttachResponse.Job]
    receipts: _containers.RepeatedCompositeFieldContainer[_runtime_pb2.AttachResponse.Receipt]
    more_jobs: bool
    def __init__(self, changed: _Optional[bool] = ..., rewrites: _Optional[_Iterable[_Union[MaintainResponse.Rewrite, _Mapping]]] = ..., reason: _Optional[str] = ..., jobs: _Optional[_Iterable[_Union[_runtime_pb2.AttachResponse.Job, _Mapping]]] = ..., receipts: _Optional[_Iterable[_Union[_runtime_pb2.AttachResponse.Receipt, _Mapping]]] = ..., more_jobs: _Optional[bool] = ...) -> None: ...

class ReportUsageRequest(_message.Message):
    __slots__ = ("session", "assembly_id", "usage", "model", "overflow", "request_id", "stop_reason", "other_tokens")
    class Overflow(_message.Message):
        __slots__ = ("observed_tokens", "limit_tokens", "text")
        OBSERVED_TOKENS_FIELD_NUMBER: _ClassVar[int]
        LIMIT_TOKENS_FIELD_NUMBER: _ClassVar[int]
        TEXT_FIELD_NUMBER: _ClassVar[int]
        observed_tokens: int
        limit_tokens: int
        text: str
        def __init__(self, observed_tokens: _Optional[int] = ..., limit_tokens: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...
    SESSION_FIELD_NUMBER: _ClassVar[int]
    ASSEMBLY_ID_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    OVERFLOW_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    STOP_REASON_FIELD_NUMBER: _ClassVar[int]
    OTHER_TOKENS_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    assembly_id: str
    usage: _message_pb2.Usage
    model: str
    overflow: ReportUsageRequest.Overflow
    request_id: str
    stop_reason: str
    other_tokens: int
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., assembly_id: _Optional[str] = ..., usage: _Optional[_Union[_message_pb2.Usage, _Mapping]] = ..., model: _Optional[str] = ..., overflow: _Optional[_Union[ReportUsageRequest.Overflow, _Mapping]] = ..., request_id: _Optional[str] = ..., stop_reason: _Optional[str] = ..., other_tokens: _Optional[int] = ...) -> None: ...

class ReportUsageResponse(_message.Message):
    __slots__ = ("estimated_tokens", "learned_factor", "served_window", "revision")
    ESTIMATED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    LEARNED_FACTOR_FIELD_NUMBER: _ClassVar[int]
    SERVED_WINDOW_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    estimated_tokens: int
    learned_factor: float
    served_window: int
    revision: int
    def __init__(self, estimated_tokens: _Optional[int] = ..., learned_factor: _Optional[float] = ..., served_window: _Optional[int] = ..., revision: _Optional[int] = ...) -> None: ...

class UpdateModelRequest(_message.Message):
    __slots__ = ("session", "model", "provider", "window", "max_output_tokens", "request_id")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    model: str
    provider: str
    window: int
    max_output_tokens: int
    request_id: str
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., model: _Optional[str] = ..., provider: _Optional[str] = ..., window: _Optional[int] = ..., max_output_tokens: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class UpdateModelResponse(_message.Message):
    __slots__ = ("model", "provider", "window", "model_factor", "revision")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    MODEL_FACTOR_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    model: str
    provider: str
    window: int
    model_factor: float
    revision: int
    def __init__(self, model: _Optional[str] = ..., provider: _Optional[str] = ..., window: _Optional[int] = ..., model_factor: _Optional[float] = ..., revision: _Optional[int] = ...) -> None: ...

class GetStatusRequest(_message.Message):
    __slots__ = ("session", "at_least_revision", "with_disk_bytes")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    AT_LEAST_REVISION_FIELD_NUMBER: _ClassVar[int]
    WITH_DISK_BYTES_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    at_least_revision: int
    with_disk_bytes: bool
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., at_least_revision: _Optional[int] = ..., with_disk_bytes: _Optional[bool] = ...) -> None: ...

class GetStatusResponse(_message.Message):
    __slots__ = ("session_id", "revision", "engine", "engine_source", "engine_failure", "message_count", "last_sequence", "message_tokens", "summary_count", "max_depth", "view_tokens", "generation", "compaction_count", "model", "provider", "window", "window_assumed", "threshold_tokens", "model_factor", "learned_factor", "estimate_method", "last_prompt_tokens", "last_completion_tokens", "last_total_tokens", "total_usage", "usage_percent", "jobs", "session_key", "current_for_key", "continues", "ended", "create_time", "update_time", "engine_status_json", "pending_calls", "abandoned_calls", "host", "summarizers", "spawn", "live_child_count", "disk_bytes", "treatment", "cost", "agent_cost", "tenant_cost", "agent_cost_by_model", "token_guard", "last_message_id", "execution_cost", "cost_by_channel", "tenant_usage")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    ENGINE_SOURCE_FIELD_NUMBER: _ClassVar[int]
    ENGINE_FAILURE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_COUNT_FIELD_NUMBER: _ClassVar[int]
    MAX_DEPTH_FIELD_NUMBER: _ClassVar[int]
    VIEW_TOKENS_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    COMPACTION_COUNT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    WINDOW_ASSUMED_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FACTOR_FIELD_NUMBER: _ClassVar[int]
    LEARNED_FACTOR_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_METHOD_FIELD_NUMBER: _ClassVar[int]
    LAST_PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    LAST_COMPLETION_TOKENS_FIELD_NUMBER: _ClassVar[int]
    LAST_TOTAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_USAGE_FIELD_NUMBER: _ClassVar[int]
    USAGE_PERCENT_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    CURRENT_FOR_KEY_FIELD_NUMBER: _ClassVar[int]
    CONTINUES_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    ENGINE_STATUS_JSON_FIELD_NUMBER: _ClassVar[int]
    PENDING_CALLS_FIELD_NUMBER: _ClassVar[int]
    ABANDONED_CALLS_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    SUMMARIZERS_FIELD_NUMBER: _ClassVar[int]
    SPAWN_FIELD_NUMBER: _ClassVar[int]
    LIVE_CHILD_COUNT_FIELD_NUMBER: _ClassVar[int]
    DISK_BYTES_FIELD_NUMBER: _ClassVar[int]
    TREATMENT_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    AGENT_COST_FIELD_NUMBER: _ClassVar[int]
    TENANT_COST_FIELD_NUMBER: _ClassVar[int]
    AGENT_COST_BY_MODEL_FIELD_NUMBER: _ClassVar[int]
    TOKEN_GUARD_FIELD_NUMBER: _ClassVar[int]
    LAST_MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_COST_FIELD_NUMBER: _ClassVar[int]
    COST_BY_CHANNEL_FIELD_NUMBER: _ClassVar[int]
    TENANT_USAGE_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    revision: int
    engine: _engine_info_pb2.EngineInfo
    engine_source: str
    engine_failure: EngineFailure
    message_count: int
    last_sequence: int
    message_tokens: int
    summary_count: int
    max_depth: int
    view_tokens: int
    generation: int
    compaction_count: int
    model: str
    provider: str
    window: int
    window_assumed: bool
    threshold_tokens: int
    model_factor: float
    learned_factor: float
    estimate_method: str
    last_prompt_tokens: int
    last_completion_tokens: int
    last_total_tokens: int
    total_usage: _message_pb2.Usage
    usage_percent: float
    jobs: _containers.RepeatedCompositeFieldContainer[BackgroundJob]
    session_key: str
    current_for_key: bool
    continues: _message_pb2.SessionRef
    ended: bool
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    engine_status_json: bytes
    pending_calls: int
    abandoned_calls: int
    host: _host_pb2.HostInfo
    summarizers: SummarizerStatus
    spawn: _subagent_pb2.SpawnStatus
    live_child_count: int
    disk_bytes: int
    treatment: str
    cost: CostReport
    agent_cost: CostReport
    tenant_cost: CostReport
    agent_cost_by_model: _containers.RepeatedCompositeFieldContainer[CostReport]
    token_guard: TokenGuardStatus
    last_message_id: str
    execution_cost: CostReport
    cost_by_channel: _containers.RepeatedCompositeFieldContainer[ChannelCost]
    tenant_usage: _quota_pb2.TenantUsage
    def __init__(self, session_id: _Optional[str] = ..., revision: _Optional[int] = ..., engine: _Optional[_Union[_engine_info_pb2.EngineInfo, _Mapping]] = ..., engine_source: _Optional[str] = ..., engine_failure: _Optional[_Union[EngineFailure, _Mapping]] = ..., message_count: _Optional[int] = ..., last_sequence: _Optional[int] = ..., message_tokens: _Optional[int] = ..., summary_count: _Optional[int] = ..., max_depth: _Optional[int] = ..., view_tokens: _Optional[int] = ..., generation: _Optional[int] = ..., compaction_count: _Optional[int] = ..., model: _Optional[str] = ..., provider: _Optional[str] = ..., window: _Optional[int] = ..., window_assumed: _Optional[bool] = ..., threshold_tokens: _Optional[int] = ..., model_factor: _Optional[float] = ..., learned_factor: _Optional[float] = ..., estimate_method: _Optional[str] = ..., last_prompt_tokens: _Optional[int] = ..., last_completion_tokens: _Optional[int] = ..., last_total_tokens: _Optional[int] = ..., total_usage: _Optional[_Union[_message_pb2.Usage, _Mapping]] = ..., usage_percent: _Optional[float] = ..., jobs: _Optional[_Iterable[_Union[BackgroundJob, _Mapping]]] = ..., session_key: _Optional[str] = ..., current_for_key: _Optional[bool] = ..., continues: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., ended: _Optional[bool] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., engine_status_json: _Optional[bytes] = ..., pending_calls: _Optional[int] = ..., abandoned_calls: _Optional[int] = ..., host: _Optional[_Union[_host_pb2.HostInfo, _Mapping]] = ..., summarizers: _Optional[_Union[SummarizerStatus, _Mapping]] = ..., spawn: _Optional[_Union[_subagent_pb2.SpawnStatus, _Mapping]] = ..., live_child_count: _Optional[int] = ..., disk_bytes: _Optional[int] = ..., treatment: _Optional[str] = ..., cost: _Optional[_Union[CostReport, _Mapping]] = ..., agent_cost: _Optional[_Union[CostReport, _Mapping]] = ..., tenant_cost: _Optional[_Union[CostReport, _Mapping]] = ..., agent_cost_by_model: _Optional[_Iterable[_Union[CostReport, _Mapping]]] = ..., token_guard: _Optional[_Union[TokenGuardStatus, _Mapping]] = ..., last_message_id: _Optional[str] = ..., execution_cost: _Optional[_Union[CostReport, _Mapping]] = ..., cost_by_channel: _Optional[_Iterable[_Union[ChannelCost, _Mapping]]] = ..., tenant_usage: _Optional[_Union[_quota_pb2.TenantUsage, _Mapping]] = ...) -> None: ...

class ChannelCost(_message.Message):
    __slots__ = ("channel_type", "cost")
    CHANNEL_TYPE_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    channel_type: str
    cost: CostReport
    def __init__(self, channel_type: _Optional[str] = ..., cost: _Optional[_Union[CostReport, _Mapping]] = ...) -> None: ...

class TokenGuardStatus(_message.Message):
    __slots__ = ("execution_tokens", "max_execution_tokens", "tokens_last_hour", "max_tokens_per_hour", "tokens_last_day", "max_tokens_per_day")
    EXECUTION_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_EXECUTION_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_LAST_HOUR_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_PER_HOUR_FIELD_NUMBER: _ClassVar[int]
    TOKENS_LAST_DAY_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_PER_DAY_FIELD_NUMBER: _ClassVar[int]
    execution_tokens: int
    max_execution_tokens: int
    tokens_last_hour: int
    max_tokens_per_hour: int
    tokens_last_day: int
    max_tokens_per_day: int
    def __init__(self, execution_tokens: _Optional[int] = ..., max_execution_tokens: _Optional[int] = ..., tokens_last_hour: _Optional[int] = ..., max_tokens_per_hour: _Optional[int] = ..., tokens_last_day: _Optional[int] = ..., max_tokens_per_day: _Optional[int] = ...) -> None: ...

class CostReport(_message.Message):
    __slots__ = ("provider", "model", "call_count", "unpriced_call_count", "usage", "cost_micro_usd", "saved_micro_usd", "cache_hit_share")
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    CALL_COUNT_FIELD_NUMBER: _ClassVar[int]
    UNPRICED_CALL_COUNT_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    COST_MICRO_USD_FIELD_NUMBER: _ClassVar[int]
    SAVED_MICRO_USD_FIELD_NUMBER: _ClassVar[int]
    CACHE_HIT_SHARE_FIELD_NUMBER: _ClassVar[int]
    provider: str
    model: str
    call_count: int
    unpriced_call_count: int
    usage: _message_pb2.Usage
    cost_micro_usd: int
    saved_micro_usd: int
    cache_hit_share: float
    def __init__(self, provider: _Optional[str] = ..., model: _Optional[str] = ..., call_count: _Optional[int] = ..., unpriced_call_count: _Optional[int] = ..., usage: _Optional[_Union[_message_pb2.Usage, _Mapping]] = ..., cost_micro_usd: _Optional[int] = ..., saved_micro_usd: _Optional[int] = ..., cache_hit_share: _Optional[float] = ...) -> None: ...

class SummarizerStatus(_message.Message):
    __slots__ = ("breaker_state", "breaker_failures", "breaker_retry_time", "tokens_last_hour", "max_tokens_per_hour", "tokens_last_day", "max_tokens_per_day", "attached_harness_count", "open_job_count")
    BREAKER_STATE_FIELD_NUMBER: _ClassVar[int]
    BREAKER_FAILURES_FIELD_NUMBER: _ClassVar[int]
    BREAKER_RETRY_TIME_FIELD_NUMBER: _ClassVar[int]
    TOKENS_LAST_HOUR_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_PER_HOUR_FIELD_NUMBER: _ClassVar[int]
    TOKENS_LAST_DAY_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_PER_DAY_FIELD_NUMBER: _ClassVar[int]
    ATTACHED_HARNESS_COUNT_FIELD_NUMBER: _ClassVar[int]
    OPEN_JOB_COUNT_FIELD_NUMBER: _ClassVar[int]
    breaker_state: str
    breaker_failures: int
    breaker_retry_time: _timestamp_pb2.Timestamp
    tokens_last_hour: int
    max_tokens_per_hour: int
    tokens_last_day: int
    max_tokens_per_day: int
    attached_harness_count: int
    open_job_count: int
    def __init__(self, breaker_state: _Optional[str] = ..., breaker_failures: _Optional[int] = ..., breaker_retry_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., tokens_last_hour: _Optional[int] = ..., max_tokens_per_hour: _Optional[int] = ..., tokens_last_day: _Optional[int] = ..., max_tokens_per_day: _Optional[int] = ..., attached_harness_count: _Optional[int] = ..., open_job_count: _Optional[int] = ...) -> None: ...

class EngineFailure(_message.Message):
    __slots__ = ("engine_id", "operation", "reason", "time", "count")
    ENGINE_ID_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    engine_id: str
    operation: str
    reason: str
    time: _timestamp_pb2.Timestamp
    count: int
    def __init__(self, engine_id: _Optional[str] = ..., operation: _Optional[str] = ..., reason: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., count: _Optional[int] = ...) -> None: ...

class BackgroundJob(_message.Message):
    __slots__ = ("kind", "state", "queue_time", "attempts", "last_error")
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_TIME_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    kind: str
    state: str
    queue_time: _timestamp_pb2.Timestamp
    attempts: int
    last_error: str
    def __init__(self, kind: _Optional[str] = ..., state: _Optional[str] = ..., queue_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., attempts: _Optional[int] = ..., last_error: _Optional[str] = ...) -> None: ...

class ListToolsRequest(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ...) -> None: ...

class ListToolsResponse(_message.Message):
    __slots__ = ("tools",)
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    tools: _containers.RepeatedCompositeFieldContainer[_budget_pb2.ToolDefinition]
    def __init__(self, tools: _Optional[_Iterable[_Union[_budget_pb2.ToolDefinition, _Mapping]]] = ...) -> None: ...

class CallToolRequest(_message.Message):
    __slots__ = ("session", "name", "arguments_json", "spawn_token", "tools")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    SPAWN_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    name: str
    arguments_json: bytes
    spawn_token: str
    tools: _containers.RepeatedCompositeFieldContainer[_budget_pb2.ToolDefinition]
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., name: _Optional[str] = ..., arguments_json: _Optional[bytes] = ..., spawn_token: _Optional[str] = ..., tools: _Optional[_Iterable[_Union[_budget_pb2.ToolDefinition, _Mapping]]] = ...) -> None: ...

class CallToolResponse(_message.Message):
    __slots__ = ("result_json", "is_error", "tokens")
    RESULT_JSON_FIELD_NUMBER: _ClassVar[int]
    IS_ERROR_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    result_json: bytes
    is_error: bool
    tokens: int
    def __init__(self, result_json: _Optional[bytes] = ..., is_error: _Optional[bool] = ..., tokens: _Optional[int] = ...) -> None: ...

class ResetSessionRequest(_message.Message):
    __slots__ = ("session", "request_id", "expected_revision")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    request_id: str
    expected_revision: int
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., request_id: _Optional[str] = ..., expected_revision: _Optional[int] = ...) -> None: ...

class ResetSessionResponse(_message.Message):
    __slots__ = ("revision", "retired_count")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    RETIRED_COUNT_FIELD_NUMBER: _ClassVar[int]
    revision: int
    retired_count: int
    def __init__(self, revision: _Optional[int] = ..., retired_count: _Optional[int] = ...) -> None: ...

class EndSessionRequest(_message.Message):
    __slots__ = ("session", "request_id", "expected_revision", "reason")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    request_id: str
    expected_revision: int
    reason: str
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., request_id: _Optional[str] = ..., expected_revision: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class EndSessionResponse(_message.Message):
    __slots__ = ("revision", "ended")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    revision: int
    ended: bool
    def __init__(self, revision: _Optional[int] = ..., ended: _Optional[bool] = ...) -> None: ...

class DisposeSessionRequest(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ...) -> None: ...

class DisposeSessionResponse(_message.Message):
    __slots__ = ("disposed",)
    DISPOSED_FIELD_NUMBER: _ClassVar[int]
    disposed: bool
    def __init__(self, disposed: _Optional[bool] = ...) -> None: ...
