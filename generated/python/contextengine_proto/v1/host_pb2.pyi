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

class CacheRetention(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CACHE_RETENTION_UNSPECIFIED: _ClassVar[CacheRetention]
    CACHE_RETENTION_NONE: _ClassVar[CacheRetention]
    CACHE_RETENTION_SHORT: _ClassVar[CacheRetention]
    CACHE_RETENTION_LONG: _ClassVar[CacheRetention]
CACHE_RETENTION_UNSPECIFIED: CacheRetention
CACHE_RETENTION_NONE: CacheRetention
CACHE_RETENTION_SHORT: CacheRetention
CACHE_RETENTION_LONG: CacheRetention

class HostInfo(_message.Message):
    __slots__ = ("host_id", "version", "capabilities", "renders", "locator")
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    RENDERS_FIELD_NUMBER: _ClassVar[int]
    LOCATOR_FIELD_NUMBER: _ClassVar[int]
    host_id: str
    version: str
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    renders: _containers.RepeatedScalarFieldContainer[str]
    locator: str
    def __init__(self, host_id: _Optional[str] = ..., version: _Optional[str] = ..., capabilities: _Optional[_Iterable[str]] = ..., renders: _Optional[_Iterable[str]] = ..., locator: _Optional[str] = ...) -> None: ...

class RuntimeSettings(_message.Message):
    __slots__ = ("schema_version", "host", "mode", "harness_id", "runtime_id", "requested_model", "resolved_model", "provider", "model_family", "selected_engine", "selection_source", "prompt_token_budget", "max_output_tokens", "fallback_reason", "degraded_reason", "extra_json")
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    HARNESS_ID_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_ID_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_MODEL_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_MODEL_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FAMILY_FIELD_NUMBER: _ClassVar[int]
    SELECTED_ENGINE_FIELD_NUMBER: _ClassVar[int]
    SELECTION_SOURCE_FIELD_NUMBER: _ClassVar[int]
    PROMPT_TOKEN_BUDGET_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    FALLBACK_REASON_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_REASON_FIELD_NUMBER: _ClassVar[int]
    EXTRA_JSON_FIELD_NUMBER: _ClassVar[int]
    schema_version: int
    host: str
    mode: str
    harness_id: str
    runtime_id: str
    requested_model: str
    resolved_model: str
    provider: str
    model_family: str
    selected_engine: str
    selection_source: str
    prompt_token_budget: int
    max_output_tokens: int
    fallback_reason: str
    degraded_reason: str
    extra_json: bytes
    def __init__(self, schema_version: _Optional[int] = ..., host: _Optional[str] = ..., mode: _Optional[str] = ..., harness_id: _Optional[str] = ..., runtime_id: _Optional[str] = ..., requested_model: _Optional[str] = ..., resolved_model: _Optional[str] = ..., provider: _Optional[str] = ..., model_family: _Optional[str] = ..., selected_engine: _Optional[str] = ..., selection_source: _Optional[str] = ..., prompt_token_budget: _Optional[int] = ..., max_output_tokens: _Optional[int] = ..., fallback_reason: _Optional[str] = ..., degraded_reason: _Optional[str] = ..., extra_json: _Optional[bytes] = ...) -> None: ...

class PromptCache(_message.Message):
    __slots__ = ("retention", "last_call_usage", "broke", "previous_cache_read_tokens", "changes", "last_touch_time", "expire_time", "context_tokens")
    class Change(_message.Message):
        __slots__ = ("code", "detail")
        CODE_FIELD_NUMBER: _ClassVar[int]
        DETAIL_FIELD_NUMBER: _ClassVar[int]
        code: str
        detail: str
        def __init__(self, code: _Optional[str] = ..., detail: _Optional[str] = ...) -> None: ...
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    LAST_CALL_USAGE_FIELD_NUMBER: _ClassVar[int]
    BROKE_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_CACHE_READ_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    LAST_TOUCH_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    retention: str
    last_call_usage: _message_pb2.Usage
    broke: bool
    previous_cache_read_tokens: int
    changes: _containers.RepeatedCompositeFieldContainer[PromptCache.Change]
    last_touch_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    context_tokens: int
    def __init__(self, retention: _Optional[str] = ..., last_call_usage: _Optional[_Union[_message_pb2.Usage, _Mapping]] = ..., broke: _Optional[bool] = ..., previous_cache_read_tokens: _Optional[int] = ..., changes: _Optional[_Iterable[_Union[PromptCache.Change, _Mapping]]] = ..., last_touch_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., context_tokens: _Optional[int] = ...) -> None: ...

class WorkspaceFile(_message.Message):
    __slots__ = ("path", "text")
    PATH_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    path: str
    text: str
    def __init__(self, path: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class MemorySection(_message.Message):
    __slots__ = ("source", "title", "text", "citation")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CITATION_FIELD_NUMBER: _ClassVar[int]
    source: str
    title: str
    text: str
    citation: str
    def __init__(self, source: _Optional[str] = ..., title: _Optional[str] = ..., text: _Optional[str] = ..., citation: _Optional[str] = ...) -> None: ...

class Preamble(_message.Message):
    __slots__ = ("date_time", "inbound_metadata", "channel_context", "retrieval_results", "active_skills", "sender_trust")
    DATE_TIME_FIELD_NUMBER: _ClassVar[int]
    INBOUND_METADATA_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    RETRIEVAL_RESULTS_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_SKILLS_FIELD_NUMBER: _ClassVar[int]
    SENDER_TRUST_FIELD_NUMBER: _ClassVar[int]
    date_time: str
    inbound_metadata: str
    channel_context: str
    retrieval_results: str
    active_skills: str
    sender_trust: str
    def __init__(self, date_time: _Optional[str] = ..., inbound_metadata: _Optional[str] = ..., channel_context: _Optional[str] = ..., retrieval_results: _Optional[str] = ..., active_skills: _Optional[str] = ..., sender_trust: _Optional[str] = ...) -> None: ...
