from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ToolDefinition(_message.Message):
    __slots__ = ("name", "description", "input_schema_json", "mcp_server", "native")
    class Definition(_message.Message):
        __slots__ = ("format", "json")
        FORMAT_FIELD_NUMBER: _ClassVar[int]
        JSON_FIELD_NUMBER: _ClassVar[int]
        format: str
        json: bytes
        def __init__(self, format: _Optional[str] = ..., json: _Optional[bytes] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    INPUT_SCHEMA_JSON_FIELD_NUMBER: _ClassVar[int]
    MCP_SERVER_FIELD_NUMBER: _ClassVar[int]
    NATIVE_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    input_schema_json: bytes
    mcp_server: str
    native: ToolDefinition.Definition
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., input_schema_json: _Optional[bytes] = ..., mcp_server: _Optional[str] = ..., native: _Optional[_Union[ToolDefinition.Definition, _Mapping]] = ...) -> None: ...

class WindowBudget(_message.Message):
    __slots__ = ("window", "system_prompt_tokens", "system_prompt_text", "tool_tokens", "tools", "output_reserve", "safety_margin", "rot_buffer")
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_PROMPT_TEXT_FIELD_NUMBER: _ClassVar[int]
    TOOL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_RESERVE_FIELD_NUMBER: _ClassVar[int]
    SAFETY_MARGIN_FIELD_NUMBER: _ClassVar[int]
    ROT_BUFFER_FIELD_NUMBER: _ClassVar[int]
    window: int
    system_prompt_tokens: int
    system_prompt_text: str
    tool_tokens: int
    tools: _containers.RepeatedCompositeFieldContainer[ToolDefinition]
    output_reserve: int
    safety_margin: int
    rot_buffer: int
    def __init__(self, window: _Optional[int] = ..., system_prompt_tokens: _Optional[int] = ..., system_prompt_text: _Optional[str] = ..., tool_tokens: _Optional[int] = ..., tools: _Optional[_Iterable[_Union[ToolDefinition, _Mapping]]] = ..., output_reserve: _Optional[int] = ..., safety_margin: _Optional[int] = ..., rot_buffer: _Optional[int] = ...) -> None: ...

class Budget(_message.Message):
    __slots__ = ("message_tokens", "window", "strict_prompt", "other_tokens")
    MESSAGE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    STRICT_PROMPT_FIELD_NUMBER: _ClassVar[int]
    OTHER_TOKENS_FIELD_NUMBER: _ClassVar[int]
    message_tokens: int
    window: WindowBudget
    strict_prompt: bool
    other_tokens: int
    def __init__(self, message_tokens: _Optional[int] = ..., window: _Optional[_Union[WindowBudget, _Mapping]] = ..., strict_prompt: _Optional[bool] = ..., other_tokens: _Optional[int] = ...) -> None: ...

class BudgetReport(_message.Message):
    __slots__ = ("window", "window_assumed", "window_source", "system_prompt", "tools", "output_reserve", "safety_margin", "rot_buffer", "available", "system_prompt_addition", "preamble", "prompt", "messages", "cell", "model_factor", "estimate_method", "utilization", "compaction_threshold")
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    WINDOW_ASSUMED_FIELD_NUMBER: _ClassVar[int]
    WINDOW_SOURCE_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_PROMPT_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_RESERVE_FIELD_NUMBER: _ClassVar[int]
    SAFETY_MARGIN_FIELD_NUMBER: _ClassVar[int]
    ROT_BUFFER_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_PROMPT_ADDITION_FIELD_NUMBER: _ClassVar[int]
    PREAMBLE_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    CELL_FIELD_NUMBER: _ClassVar[int]
    MODEL_FACTOR_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_METHOD_FIELD_NUMBER: _ClassVar[int]
    UTILIZATION_FIELD_NUMBER: _ClassVar[int]
    COMPACTION_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    window: int
    window_assumed: bool
    window_source: str
    system_prompt: int
    tools: int
    output_reserve: int
    safety_margin: int
    rot_buffer: int
    available: int
    system_prompt_addition: int
    preamble: int
    prompt: int
    messages: int
    cell: int
    model_factor: float
    estimate_method: str
    utilization: float
    compaction_threshold: float
    def __init__(self, window: _Optional[int] = ..., window_assumed: _Optional[bool] = ..., window_source: _Optional[str] = ..., system_prompt: _Optional[int] = ..., tools: _Optional[int] = ..., output_reserve: _Optional[int] = ..., safety_margin: _Optional[int] = ..., rot_buffer: _Optional[int] = ..., available: _Optional[int] = ..., system_prompt_addition: _Optional[int] = ..., preamble: _Optional[int] = ..., prompt: _Optional[int] = ..., messages: _Optional[int] = ..., cell: _Optional[int] = ..., model_factor: _Optional[float] = ..., estimate_method: _Optional[str] = ..., utilization: _Optional[float] = ..., compaction_threshold: _Optional[float] = ...) -> None: ...
