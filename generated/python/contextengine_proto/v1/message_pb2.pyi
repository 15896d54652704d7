import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_UNSPECIFIED: _ClassVar[Role]
    ROLE_USER: _ClassVar[Role]
    ROLE_ASSISTANT: _ClassVar[Role]
    ROLE_TOOL: _ClassVar[Role]
    ROLE_SYSTEM: _ClassVar[Role]
    ROLE_DEVELOPER: _ClassVar[Role]
    ROLE_CUSTOM: _ClassVar[Role]

class Form(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FORM_UNSPECIFIED: _ClassVar[Form]
    FORM_HEAD_TAIL: _ClassVar[Form]
    FORM_PLACEHOLDER: _ClassVar[Form]
    FORM_STRIPPED_TAGS: _ClassVar[Form]
    FORM_WITHOUT_REASONING: _ClassVar[Form]
    FORM_SOME_PARTS: _ClassVar[Form]
    FORM_NOTE: _ClassVar[Form]
ROLE_UNSPECIFIED: Role
ROLE_USER: Role
ROLE_ASSISTANT: Role
ROLE_TOOL: Role
ROLE_SYSTEM: Role
ROLE_DEVELOPER: Role
ROLE_CUSTOM: Role
FORM_UNSPECIFIED: Form
FORM_HEAD_TAIL: Form
FORM_PLACEHOLDER: Form
FORM_STRIPPED_TAGS: Form
FORM_WITHOUT_REASONING: Form
FORM_SOME_PARTS: Form
FORM_NOTE: Form

class Message(_message.Message):
    __slots__ = ("id", "role", "custom_role", "name", "parts", "timestamp", "stop_reason", "usage", "labels", "idempotency_key", "is_heartbeat", "native", "provider", "model", "api")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_ROLE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    STOP_REASON_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    IS_HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    NATIVE_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    API_FIELD_NUMBER: _ClassVar[int]
    id: str
    role: Role
    custom_role: str
    name: str
    parts: _containers.RepeatedCompositeFieldContainer[Part]
    timestamp: _timestamp_pb2.Timestamp
    stop_reason: str
    usage: Usage
    labels: _containers.ScalarMap[str, str]
    idempotency_key: str
    is_heartbeat: bool
    native: Native
    provider: str
    model: str
    api: str
    def __init__(self, id: _Optional[str] = ..., role: _Optional[_Union[Role, str]] = ..., custom_role: _Optional[str] = ..., name: _Optional[str] = ..., parts: _Optional[_Iterable[_Union[Part, _Mapping]]] = ..., timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., stop_reason: _Optional[str] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ..., idempotency_key: _Optional[str] = ..., is_heartbeat: _Optional[bool] = ..., native: _Optional[_Union[Native, _Mapping]] = ..., provider: _Optional[str] = ..., model: _Optional[str] = ..., api: _Optional[str] = ...) -> None: ...

class Native(_message.Message):
    __slots__ = ("format", "json")
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    JSON_FIELD_NUMBER: _ClassVar[int]
    format: str
    json: bytes
    def __init__(self, format: _Optional[str] = ..., json: _Optional[bytes] = ...) -> None: ...

class Part(_message.Message):
    __slots__ = ("text", "reasoning", "tool_call", "tool_result", "image", "file", "opaque", "thought_signature", "provider_metadata_json")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_FIELD_NUMBER: _ClassVar[int]
    TOOL_RESULT_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    OPAQUE_FIELD_NUMBER: _ClassVar[int]
    THOUGHT_SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_METADATA_JSON_FIELD_NUMBER: _ClassVar[int]
    text: TextPart
    reasoning: ReasoningPart
    tool_call: ToolCallPart
    tool_result: ToolResultPart
    image: ImagePart
    file: FilePart
    opaque: OpaquePart
    thought_signature: bytes
    provider_metadata_json: bytes
    def __init__(self, text: _Optional[_Union[TextPart, _Mapping]] = ..., reasoning: _Optional[_Union[ReasoningPart, _Mapping]] = ..., tool_call: _Optional[_Union[ToolCallPart, _Mapping]] = ..., tool_result: _Optional[_Union[ToolResultPart, _Mapping]] = ..., image: _Optional[_Union[ImagePart, _Mapping]] = ..., file: _Optional[_Union[FilePart, _Mapping]] = ..., opaque: _Optional[_Union[OpaquePart, _Mapping]] = ..., thought_signature: _Optional[bytes] = ..., provider_metadata_json: _Optional[bytes] = ...) -> None: ...

class TextPart(_message.Message):
    __slots__ = ("text",)
    TEXT_FIELD_NUMBER: _ClassVar[int]
    text: str
    def __init__(self, text: _Optional[str] = ...) -> None: ...

class ReasoningPart(_message.Message):
    __slots__ = ("text", "signature", "redacted_data", "item_id")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    REDACTED_DATA_FIELD_NUMBER: _ClassVar[int]
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    text: str
    signature: bytes
    redacted_data: bytes
    item_id: str
    def __init__(self, text: _Optional[str] = ..., signature: _Optional[bytes] = ..., redacted_data: _Optional[bytes] = ..., item_id: _Optional[str] = ...) -> None: ...

class ToolCallPart(_message.Message):
    __slots__ = ("call_id", "name", "arguments_json", "item_id", "namespace")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    name: str
    arguments_json: bytes
    item_id: str
    namespace: str
    def __init__(self, call_id: _Optional[str] = ..., name: _Optional[str] = ..., arguments_json: _Optional[bytes] = ..., item_id: _Optional[str] = ..., namespace: _Optional[str] = ...) -> None: ...

class ToolResultPart(_message.Message):
    __slots__ = ("call_id", "name", "parts", "is_error", "details_json")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    IS_ERROR_FIELD_NUMBER: _ClassVar[int]
    DETAILS_JSON_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    name: str
    parts: _containers.RepeatedCompositeFieldContainer[Part]
    is_error: bool
    details_json: bytes
    def __init__(self, call_id: _Optional[str] = ..., name: _Optional[str] = ..., parts: _Optional[_Iterable[_Union[Part, _Mapping]]] = ..., is_error: _Optional[bool] = ..., details_json: _Optional[bytes] = ...) -> None: ...

class ImagePart(_message.Message):
    __slots__ = ("data", "uri", "mime_type", "width", "height", "detail")
    DATA_FIELD_NUMBER: _ClassVar[int]
    URI_FIELD_NUMBER: _ClassVar[int]
    MIME_TYPE_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    uri: str
    mime_type: str
    width: int
    height: int
    detail: str
    def __init__(self, data: _Optional[bytes] = ..., uri: _Optional[str] = ..., mime_type: _Optional[str] = ..., width: _Optional[int] = ..., height: _Optional[int] = ..., detail: _Optional[str] = ...) -> None: ...

class FilePart(_message.Message):
    __slots__ = ("data", "uri", "mime_type", "name", "size_bytes")
    DATA_FIELD_NUMBER: _ClassVar[int]
    URI_FIELD_NUMBER: _ClassVar[int]
    MIME_TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    uri: str
    mime_type: str
    name: str
    size_bytes: int
    def __init__(self, data: _Optional[bytes] = ..., uri: _Optional[str] = ..., mime_type: _Optional[str] = ..., name: _Optional[str] = ..., size_bytes: _Optional[int] = ...) -> None: ...

class OpaquePart(_message.Message):
    __slots__ = ("format", "type", "json")
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    JSON_FIELD_NUMBER: _ClassVar[int]
    format: str
    type: str
    json: bytes
    def __init__(self, format: _Optional[str] = ..., type: _Optional[str] = ..., json: _Optional[bytes] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_1h_tokens", "reasoning_tokens", "total_tokens", "cost_micro_usd")
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_READ_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_WRITE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_WRITE_1H_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REASONING_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_MICRO_USD_FIELD_NUMBER: _ClassVar[int]
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cache_write_1h_tokens: int
    reasoning_tokens: int
    total_tokens: int
    cost_micro_usd: int
    def __init__(self, input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cache_read_tokens: _Optional[int] = ..., cache_write_tokens: _Optional[int] = ..., cache_write_1h_tokens: _Optional[int] = ..., reasoning_tokens: _Optional[int] = ..., total_tokens: _Optional[int] = ..., cost_micro_usd: _Optional[int] = ...) -> None: ...

class Origin(_message.Message):
    __slots__ = ("sequence", "summary_id", "synthetic", "live_index")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_ID_FIELD_NUMBER: _ClassVar[int]
    SYNTHETIC_FIELD_NUMBER: _ClassVar[int]
    LIVE_INDEX_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    summary_id: str
    synthetic: str
    live_index: int
    def __init__(self, sequence: _Optional[int] = ..., summary_id: _Optional[str] = ..., synthetic: _Optional[str] = ..., live_index: _Optional[int] = ...) -> None: ...

class Item(_message.Message):
    __slots__ = ("id", "origin", "content_hash", "tokens", "form", "message", "summary")
    ID_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    CONTENT_HASH_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    FORM_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    id: str
    origin: Origin
    content_hash: bytes
    tokens: int
    form: Form
    message: Message
    summary: SummaryInfo
    def __init__(self, id: _Optional[str] = ..., origin: _Optional[_Union[Origin, _Mapping]] = ..., content_hash: _Optional[bytes] = ..., tokens: _Optional[int] = ..., form: _Optional[_Union[Form, str]] = ..., message: _Optional[_Union[Message, _Mapping]] = ..., summary: _Optional[_Union[SummaryInfo, _Mapping]] = ...) -> None: ...

class SummaryInfo(_message.Message):
    __slots__ = ("id", "depth", "first_sequence", "last_sequence", "message_count", "source_tokens", "tokens", "start_time", "end_time", "summarizer", "fallback", "generation", "children", "created_revision", "retired_revision", "wanted", "remakes")
    ID_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    SUMMARIZER_FIELD_NUMBER: _ClassVar[int]
    FALLBACK_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    CREATED_REVISION_FIELD_NUMBER: _ClassVar[int]
    RETIRED_REVISION_FIELD_NUMBER: _ClassVar[int]
    WANTED_FIELD_NUMBER: _ClassVar[int]
    REMAKES_FIELD_NUMBER: _ClassVar[int]
    id: str
    depth: int
    first_sequence: int
    last_sequence: int
    message_count: int
    source_tokens: int
    tokens: int
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    summarizer: str
    fallback: bool
    generation: int
    children: _containers.RepeatedScalarFieldContainer[str]
    created_revision: int
    retired_revision: int
    wanted: str
    remakes: str
    def __init__(self, id: _Optional[str] = ..., depth: _Optional[int] = ..., first_sequence: _Optional[int] = ..., last_sequence: _Optional[int] = ..., message_count: _Optional[int] = ..., source_tokens: _Optional[int] = ..., tokens: _Optional[int] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., summarizer: _Optional[str] = ..., fallback: _Optional[bool] = ..., generation: _Optional[int] = ..., children: _Optional[_Iterable[str]] = ..., created_revision: _Optional[int] = ..., retired_revision: _Optional[int] = ..., wanted: _Optional[str] = ..., remakes: _Optional[str] = ...) -> None: ...

class SessionRef(_message.Message):
    __slots__ = ("agent_id", "session_id", "session_key")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    session_key: str
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., session_key: _Optional[str] = ...) -> None: ...

class StoredMessage(_message.Message):
    __slots__ = ("index", "id", "sequence", "disposition", "content_hash", "tokens", "conflicting_hash")
    class Disposition(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        DISPOSITION_UNSPECIFIED: _ClassVar[StoredMessage.Disposition]
        DISPOSITION_STORED: _ClassVar[StoredMessage.Disposition]
        DISPOSITION_DUPLICATE: _ClassVar[StoredMessage.Disposition]
        DISPOSITION_CONFLICT: _ClassVar[StoredMessage.Disposition]
    DISPOSITION_UNSPECIFIED: StoredMessage.Disposition
    DISPOSITION_STORED: StoredMessage.Disposition
    DISPOSITION_DUPLICATE: StoredMessage.Disposition
    DISPOSITION_CONFLICT: StoredMessage.Disposition
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    DISPOSITION_FIELD_NUMBER: _ClassVar[int]
    CONTENT_HASH_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    CONFLICTING_HASH_FIELD_NUMBER: _ClassVar[int]
    index: int
    id: str
    sequence: int
    disposition: StoredMessage.Disposition
    content_hash: bytes
    tokens: int
    conflicting_hash: bytes
    def __init__(self, index: _Optional[int] = ..., id: _Optional[str] = ..., sequence: _Optional[int] = ..., disposition: _Optional[_Union[StoredMessage.Disposition, str]] = ..., content_hash: _Optional[bytes] = ..., tokens: _Optional[int] = ..., conflicting_hash: _Optional[bytes] = ...) -> None: ...
