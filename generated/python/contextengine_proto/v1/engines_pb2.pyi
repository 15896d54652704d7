from contextengine_proto.v1 import engine_info_pb2 as _engine_info_pb2
from contextengine_proto.v1 import lifecycle_pb2 as _lifecycle_pb2
from contextengine_proto.v1 import message_pb2 as _message_pb2
from contextengine_proto.v1 import quota_pb2 as _quota_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EnginesListRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EnginesListResponse(_message.Message):
    __slots__ = ("engines", "default_engine_id")
    ENGINES_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_ENGINE_ID_FIELD_NUMBER: _ClassVar[int]
    engines: _containers.RepeatedCompositeFieldContainer[Engine]
    default_engine_id: str
    def __init__(self, engines: _Optional[_Iterable[_Union[Engine, _Mapping]]] = ..., default_engine_id: _Optional[str] = ...) -> None: ...

class Engine(_message.Message):
    __slots__ = ("info", "owner", "available", "unavailable_reason", "failure", "session_count")
    INFO_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_FIELD_NUMBER: _ClassVar[int]
    UNAVAILABLE_REASON_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    SESSION_COUNT_FIELD_NUMBER: _ClassVar[int]
    info: _engine_info_pb2.EngineInfo
    owner: str
    available: bool
    unavailable_reason: str
    failure: _lifecycle_pb2.EngineFailure
    session_count: int
    def __init__(self, info: _Optional[_Union[_engine_info_pb2.EngineInfo, _Mapping]] = ..., owner: _Optional[str] = ..., available: _Optional[bool] = ..., unavailable_reason: _Optional[str] = ..., failure: _Optional[_Union[_lifecycle_pb2.EngineFailure, _Mapping]] = ..., session_count: _Optional[int] = ...) -> None: ...

class EnginesGetRequest(_message.Message):
    __slots__ = ("engine_id", "session")
    ENGINE_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    engine_id: str
    session: _message_pb2.SessionRef
    def __init__(self, engine_id: _Optional[str] = ..., session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ...) -> None: ...

class EnginesGetResponse(_message.Message):
    __slots__ = ("engine", "options", "source")
    class Option(_message.Message):
        __slots__ = ("name", "description", "type", "default_json", "value_json", "minimum_json", "maximum_json", "source")
        NAME_FIELD_NUMBER: _ClassVar[int]
        DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
        TYPE_FIELD_NUMBER: _ClassVar[int]
        DEFAULT_JSON_FIELD_NUMBER: _ClassVar[int]
        VALUE_JSON_FIELD_NUMBER: _ClassVar[int]
        MINIMUM_JSON_FIELD_NUMBER: _ClassVar[int]
        MAXIMUM_JSON_FIELD_NUMBER: _ClassVar[int]
        SOURCE_FIELD_NUMBER: _ClassVar[int]
        name: str
        description: str
        type: str
        default_json: bytes
        value_json: bytes
        minimum_json: bytes
        maximum_json: bytes
        source: str
        def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., type: _Optional[str] = ..., default_json: _Optional[bytes] = ..., value_json: _Optional[bytes] = ..., minimum_json: _Optional[bytes] = ..., maximum_json: _Optional[bytes] = ..., source: _Optional[str] = ...) -> None: ...
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    engine: Engine
    options: _containers.RepeatedCompositeFieldContainer[EnginesGetResponse.Option]
    source: str
    def __init__(self, engine: _Optional[_Union[Engine, _Mapping]] = ..., options: _Optional[_Iterable[_Union[EnginesGetResponse.Option, _Mapping]]] = ..., source: _Optional[str] = ...) -> None: ...

class DoctorRequest(_message.Message):
    __slots__ = ("session", "repair", "clear_failures")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    REPAIR_FIELD_NUMBER: _ClassVar[int]
    CLEAR_FAILURES_FIELD_NUMBER: _ClassVar[int]
    session: _message_pb2.SessionRef
    repair: bool
    clear_failures: bool
    def __init__(self, session: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., repair: _Optional[bool] = ..., clear_failures: _Optional[bool] = ...) -> None: ...

class DoctorResponse(_message.Message):
    __slots__ = ("ok", "checks")
    class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATUS_UNSPECIFIED: _ClassVar[DoctorResponse.Status]
        STATUS_OK: _ClassVar[DoctorResponse.Status]
        STATUS_WARNING: _ClassVar[DoctorResponse.Status]
        STATUS_ERROR: _ClassVar[DoctorResponse.Status]
    STATUS_UNSPECIFIED: DoctorResponse.Status
    STATUS_OK: DoctorResponse.Status
    STATUS_WARNING: DoctorResponse.Status
    STATUS_ERROR: DoctorResponse.Status
    class Check(_message.Message):
        __slots__ = ("name", "status", "found", "advice")
        NAME_FIELD_NUMBER: _ClassVar[int]
        STATUS_FIELD_NUMBER: _ClassVar[int]
        FOUND_FIELD_NUMBER: _ClassVar[int]
        ADVICE_FIELD_NUMBER: _ClassVar[int]
        name: str
        status: DoctorResponse.Status
        found: str
        advice: str
        def __init__(self, name: _Optional[str] = ..., status: _Optional[_Union[DoctorResponse.Status, str]] = ..., found: _Optional[str] = ..., advice: _Optional[str] = ...) -> None: ...
    OK_FIELD_NUMBER: _ClassVar[int]
    CHECKS_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    checks: _containers.RepeatedCompositeFieldContainer[DoctorResponse.Check]
    def __init__(self, ok: _Optional[bool] = ..., checks: _Optional[_Iterable[_Union[DoctorResponse.Check, _Mapping]]] = ...) -> None: ...

class AssignRequest(_message.Message):
    __slots__ = ("scope", "engine_id", "options_json", "clear", "request_id", "match")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    ENGINE_ID_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_JSON_FIELD_NUMBER: _ClassVar[int]
    CLEAR_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    MATCH_FIELD_NUMBER: _ClassVar[int]
    scope: _message_pb2.SessionRef
    engine_id: str
    options_json: bytes
    clear: bool
    request_id: str
    match: SessionMatch
    def __init__(self, scope: _Optional[_Union[_message_pb2.SessionRef, _Mapping]] = ..., engine_id: _Optional[str] = ..., options_json: _Optional[bytes] = ..., clear: _Optional[bool] = ..., request_id: _Optional[str] = ..., match: _Optional[_Union[SessionMatch, _Mapping]] = ...) -> None: ...

class SessionMatch(_message.Message):
    __slots__ = ("agent_id", "session_id", "session_key", "model", "min_window", "max_window")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MIN_WINDOW_FIELD_NUMBER: _ClassVar[int]
    MAX_WINDOW_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    session_key: str
    model: str
    min_window: int
    max_window: int
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., session_key: _Optional[str] = ..., model: _Optional[str] = ..., min_window: _Optional[int] = ..., max_window: _Optional[int] = ...) -> None: ...

class AssignResponse(_message.Message):
    __slots__ = ("engine", "source")
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    engine: _engine_info_pb2.EngineInfo
    source: str
    def __init__(self, engine: _Optional[_Union[_engine_info_pb2.EngineInfo, _Mapping]] = ..., source: _Optional[str] = ...) -> None: ...
