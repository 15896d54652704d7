from contextengine_proto.v1 import budget_pb2 as _budget_pb2
from contextengine_proto.v1 import message_pb2 as _message_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ProjectionTarget(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROJECTION_TARGET_UNSPECIFIED: _ClassVar[ProjectionTarget]
    PROJECTION_TARGET_CODEX: _ClassVar[ProjectionTarget]
    PROJECTION_TARGET_OPENAI_CHAT: _ClassVar[ProjectionTarget]
    PROJECTION_TARGET_OPENAI_RESPONSES: _ClassVar[ProjectionTarget]
    PROJECTION_TARGET_ANTHROPIC: _ClassVar[ProjectionTarget]
    PROJECTION_TARGET_GEMINI: _ClassVar[ProjectionTarget]

class PayloadMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PAYLOAD_MODE_UNSPECIFIED: _ClassVar[PayloadMode]
    PAYLOAD_MODE_PRESERVE: _ClassVar[PayloadMode]
    PAYLOAD_MODE_SHAPE: _ClassVar[PayloadMode]
    PAYLOAD_MODE_ELIDE: _ClassVar[PayloadMode]

class ProjectionMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROJECTION_MODE_UNSPECIFIED: _ClassVar[ProjectionMode]
    PROJECTION_MODE_PER_TURN: _ClassVar[ProjectionMode]
    PROJECTION_MODE_THREAD_BOOTSTRAP: _ClassVar[ProjectionMode]

class ProjectionAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROJECTION_ACTION_UNSPECIFIED: _ClassVar[ProjectionAction]
    PROJECTION_ACTION_START: _ClassVar[ProjectionAction]
    PROJECTION_ACTION_RESUME: _ClassVar[ProjectionAction]
    PROJECTION_ACTION_ROTATE: _ClassVar[ProjectionAction]
    PROJECTION_ACTION_INJECT: _ClassVar[ProjectionAction]
    PROJECTION_ACTION_NOTHING: _ClassVar[ProjectionAction]
PROJECTION_TARGET_UNSPECIFIED: ProjectionTarget
PROJECTION_TARGET_CODEX: ProjectionTarget
PROJECTION_TARGET_OPENAI_CHAT: ProjectionTarget
PROJECTION_TARGET_OPENAI_RESPONSES: ProjectionTarget
PROJECTION_TARGET_ANTHROPIC: ProjectionTarget
PROJECTION_TARGET_GEMINI: ProjectionTarget
PAYLOAD_MODE_UNSPECIFIED: PayloadMode
PAYLOAD_MODE_PRESERVE: PayloadMode
PAYLOAD_MODE_SHAPE: PayloadMode
PAYLOAD_MODE_ELIDE: PayloadMode
PROJECTION_MODE_UNSPECIFIED: ProjectionMode
PROJECTION_MODE_PER_TURN: ProjectionMode
PROJECTION_MODE_THREAD_BOOTSTRAP: ProjectionMode
PROJECTION_ACTION_UNSPECIFIED: ProjectionAction
PROJECTION_ACTION_START: ProjectionAction
PROJECTION_ACTION_RESUME: ProjectionAction
PROJECTION_ACTION_ROTATE: ProjectionAction
PROJECTION_ACTION_INJECT: ProjectionAction
PROJECTION_ACTION_NOTHING: ProjectionAction

class ProjectionOptions(_message.Message):
    __slots__ = ("target", "renderer", "payload_mode", "binding", "host_events", "base_instructions", "product_name", "dynamic_tools_fingerprint", "max_chars", "token_budget", "model", "max_cache_breakpoints", "inject_items", "mode", "reserve_tokens", "provider", "target_name")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    RENDERER_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_MODE_FIELD_NUMBER: _ClassVar[int]
    BINDING_FIELD_NUMBER: _ClassVar[int]
    HOST_EVENTS_FIELD_NUMBER: _ClassVar[int]
    BASE_INSTRUCTIONS_FIELD_NUMBER: _ClassVar[int]
    PRODUCT_NAME_FIELD_NUMBER: _ClassVar[int]
    DYNAMIC_TOOLS_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    MAX_CHARS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_BUDGET_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MAX_CACHE_BREAKPOINTS_FIELD_NUMBER: _ClassVar[int]
    INJECT_ITEMS_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    RESERVE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    TARGET_NAME_FIELD_NUMBER: _ClassVar[int]
    target: ProjectionTarget
    renderer: str
    payload_mode: PayloadMode
    binding: ProjectionBinding
    host_events: _containers.RepeatedCompositeFieldContainer[HostEvent]
    base_instructions: str
    product_name: str
    dynamic_tools_fingerprint: str
    max_chars: int
    token_budget: int
    model: str
    max_cache_breakpoints: int
    inject_items: bool
    mode: ProjectionMode
    reserve_tokens: int
    provider: str
    target_name: str
    def __init__(self, target: _Optional[_Union[ProjectionTarget, str]] = ..., renderer: _Optional[str] = ..., payload_mode: _Optional[_Union[PayloadMode, str]] = ..., binding: _Optional[_Union[ProjectionBinding, _Mapping]] = ..., host_events: _Optional[_Iterable[_Union[HostEvent, _Mapping]]] = ..., base_instructions: _Optional[str] = ..., product_name: _Optional[str] = ..., dynamic_tools_fingerprint: _Optional[str] = ..., max_chars: _Optional[int] = ..., token_budget: _Optional[int] = ..., model: _Optional[str] = ..., max_cache_breakpoints: _Optional[int] = ..., inject_items: _Optional[bool] = ..., mode: _Optional[_Union[ProjectionMode, str]] = ..., reserve_tokens: _Optional[int] = ..., provider: _Optional[str] = ..., target_name: _Optional[str] = ...) -> None: ...

class ProjectionBinding(_message.Message):
    __slots__ = ("schema_version", "thread_id", "engine_id", "policy_fingerprint", "epoch", "fingerprint", "dynamic_tools_fingerprint", "last_sequence", "first_sequence", "state", "last_message_id")
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    ENGINE_ID_FIELD_NUMBER: _ClassVar[int]
    POLICY_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    DYNAMIC_TOOLS_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    LAST_MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    schema_version: int
    thread_id: str
    engine_id: str
    policy_fingerprint: str
    epoch: str
    fingerprint: str
    dynamic_tools_fingerprint: str
    last_sequence: int
    first_sequence: int
    state: bytes
    last_message_id: str
    def __init__(self, schema_version: _Optional[int] = ..., thread_id: _Optional[str] = ..., engine_id: _Optional[str] = ..., policy_fingerprint: _Optional[str] = ..., epoch: _Optional[str] = ..., fingerprint: _Optional[str] = ..., dynamic_tools_fingerprint: _Optional[str] = ..., last_sequence: _Optional[int] = ..., first_sequence: _Optional[int] = ..., state: _Optional[bytes] = ..., last_message_id: _Optional[str] = ...) -> None: ...

class HostEvent(_message.Message):
    __slots__ = ("kind", "detail")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[HostEvent.Kind]
        KIND_NATIVE_COMPACTED: _ClassVar[HostEvent.Kind]
        KIND_THREAD_LOST: _ClassVar[HostEvent.Kind]
        KIND_OVERFLOW: _ClassVar[HostEvent.Kind]
        KIND_MODEL_CHANGED: _ClassVar[HostEvent.Kind]
    KIND_UNSPECIFIED: HostEvent.Kind
    KIND_NATIVE_COMPACTED: HostEvent.Kind
    KIND_THREAD_LOST: HostEvent.Kind
    KIND_OVERFLOW: HostEvent.Kind
    KIND_MODEL_CHANGED: HostEvent.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    kind: HostEvent.Kind
    detail: str
    def __init__(self, kind: _Optional[_Union[HostEvent.Kind, str]] = ..., detail: _Optional[str] = ...) -> None: ...

class ProjectRequest(_message.Message):
    __slots__ = ("session", "messages", "budget", "options", "prompt", "system_prompt_addition", "at_least_revision", "epoch")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_PROMPT_ADDITION_FIELD_NUMBER: _ClassVar[int]
    AT_LEAST_REVISION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    messages: _containers.RepeatedCompositeFieldContainer[_message_pb2.Message]
    budget: _budget_pb2.Budget
    options: ProjectionOptions
    prompt: _containers.RepeatedCompositeFieldContainer[_message_pb2.Part]
    system_prompt_addition: str
    at_least_revision: int
    epoch: str
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., messages: _Optional[_Iterable[_Union[_message_pb2.Message, _Mapping]]] = ..., budget: _Optional[_Union[_budget_pb2.Budget, _Mapping]] = ..., options: _Optional[_Union[ProjectionOptions, _Mapping]] = ..., prompt: _Optional[_Iterable[_Union[_message_pb2.Part, _Mapping]]] = ..., system_prompt_addition: _Optional[str] = ..., at_least_revision: _Optional[int] = ..., epoch: _Optional[str] = ...) -> None: ...

class ProjectResponse(_message.Message):
    __slots__ = ("target", "renderer", "instructions", "prompt", "context_range", "messages_json", "system_json", "inject_items_json", "action", "action_reason", "binding", "losses", "estimated_tokens", "pre_prompt_message_count", "warnings", "stats", "turn_input_json", "target_name")
    class Stats(_message.Message):
        __slots__ = ("records", "inlined", "stubbed", "omitted", "context_chars", "prompt_chars", "prompt_utf16_units", "instructions_chars", "redactions")
        RECORDS_FIELD_NUMBER: _ClassVar[int]
        INLINED_FIELD_NUMBER: _ClassVar[int]
        STUBBED_FIELD_NUMBER: _ClassVar[int]
        OMITTED_FIELD_NUMBER: _ClassVar[int]
        CONTEXT_CHARS_FIELD_NUMBER: _ClassVar[int]
        PROMPT_CHARS_FIELD_NUMBER: _ClassVar[int]
        PROMPT_UTF16_UNITS_FIELD_NUMBER: _ClassVar[int]
        INSTRUCTIONS_CHARS_FIELD_NUMBER: _ClassVar[int]
        REDACTIONS_FIELD_NUMBER: _ClassVar[int]
        records: int
        inlined: int
        stubbed: int
        omitted: int
        context_chars: int
        prompt_chars: int
        prompt_utf16_units: int
        instructions_chars: int
        redactions: int
        def __init__(self, records: _Optional[int] = ..., inlined: _Optional[int] = ..., stubbed: _Optional[int] = ..., omitted: _Optional[int] = ..., context_chars: _Optional[int] = ..., prompt_chars: _Optional[int] = ..., prompt_utf16_units: _Optional[int] = ..., instructions_chars: _Optional[int] = ..., redactions: _Optional[int] = ...) -> None: ...
    class TextRange(_message.Message):
        __slots__ = ("start", "end")
        START_FIELD_NUMBER: _ClassVar[int]
        END_FIELD_NUMBER: _ClassVar[int]
        start: int
        end: int
        def __init__(self, start: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...
    class Loss(_message.Message):
        __slots__ = ("item_index", "what", "rule")
        ITEM_INDEX_FIELD_NUMBER: _ClassVar[int]
        WHAT_FIELD_NUMBER: _ClassVar[int]
        RULE_FIELD_NUMBER: _ClassVar[int]
        item_index: int
        what: str
        rule: str
        def __init__(self, item_index: _Optional[int] = ..., what: _Optional[str] = ..., rule: _Optional[str] = ...) -> None: ...
    TARGET_FIELD_NUMBER: _ClassVar[int]
    RENDERER_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTIONS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_RANGE_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_JSON_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_JSON_FIELD_NUMBER: _ClassVar[int]
    INJECT_ITEMS_JSON_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    ACTION_REASON_FIELD_NUMBER: _ClassVar[int]
    BINDING_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PRE_PROMPT_MESSAGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    STATS_FIELD_NUMBER: _ClassVar[int]
    TURN_INPUT_JSON_FIELD_NUMBER: _ClassVar[int]
    TARGET_NAME_FIELD_NUMBER: _ClassVar[int]
    target: ProjectionTarget
    renderer: str
    instructions: str
    prompt: str
    context_range: ProjectResponse.TextRange
    messages_json: bytes
    system_json: bytes
    inject_items_json: _containers.RepeatedScalarFieldContainer[bytes]
    action: ProjectionAction
    action_reason: str
    binding: ProjectionBinding
    losses: _containers.RepeatedCompositeFieldContainer[ProjectResponse.Loss]
    estimated_tokens: int
    pre_prompt_message_count: int
    warnings: _containers.RepeatedScalarFieldContainer[str]
    stats: ProjectResponse.Stats
    turn_input_json: bytes
    target_name: str
    def __init__(self, target: _Optional[_Union[ProjectionTarget, str]] = ..., renderer: _Optional[str] = ..., instructions: _Optional[str] = ..., prompt: _Optional[str] = ..., context_range: _Optional[_Union[ProjectResponse.TextRange, _Mapping]] = ..., messages_json: _Optional[bytes] = ..., system_json: _Optional[bytes] = ..., inject_items_json: _Optional[_Iterable[bytes]] = ..., action: _Optional[_Union[ProjectionAction, str]] = ..., action_reason: _Optional[str] = ..., binding: _Optional[_Union[ProjectionBinding, _Mapping]] = ..., losses: _Optional[_Iterable[_Union[ProjectResponse.Loss, _Mapping]]] = ..., estimated_tokens: _Optional[int] = ..., pre_prompt_message_count: _Optional[int] = ..., warnings: _Optional[_Iterable[str]] = ..., stats: _Optional[_Union[ProjectResponse.Stats, _Mapping]] = ..., turn_input_json: _Optional[bytes] = ..., target_name: _Optional[str] = ...) -> None: ...
