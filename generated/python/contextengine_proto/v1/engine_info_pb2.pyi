from contextengine_proto.v1 import message_pb2 as _message_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class HostAutoCompaction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HOST_AUTO_COMPACTION_UNSPECIFIED: _ClassVar[HostAutoCompaction]
    HOST_AUTO_COMPACTION_DISABLE: _ClassVar[HostAutoCompaction]
    HOST_AUTO_COMPACTION_KEEP: _ClassVar[HostAutoCompaction]
HOST_AUTO_COMPACTION_UNSPECIFIED: HostAutoCompaction
HOST_AUTO_COMPACTION_DISABLE: HostAutoCompaction
HOST_AUTO_COMPACTION_KEEP: HostAutoCompaction

class EngineInfo(_message.Message):
    __slots__ = ("id", "version", "name", "owns_compaction", "host_auto_compaction", "tail_steps", "forms", "compaction_threshold", "tools", "turn_maintenance_mode", "host_limits")
    ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OWNS_COMPACTION_FIELD_NUMBER: _ClassVar[int]
    HOST_AUTO_COMPACTION_FIELD_NUMBER: _ClassVar[int]
    TAIL_STEPS_FIELD_NUMBER: _ClassVar[int]
    FORMS_FIELD_NUMBER: _ClassVar[int]
    COMPACTION_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    TURN_MAINTENANCE_MODE_FIELD_NUMBER: _ClassVar[int]
    HOST_LIMITS_FIELD_NUMBER: _ClassVar[int]
    id: str
    version: str
    name: str
    owns_compaction: bool
    host_auto_compaction: HostAutoCompaction
    tail_steps: int
    forms: _containers.RepeatedScalarFieldContainer[_message_pb2.Form]
    compaction_threshold: float
    tools: _containers.RepeatedScalarFieldContainer[str]
    turn_maintenance_mode: str
    host_limits: _containers.RepeatedCompositeFieldContainer[HostLimit]
    def __init__(self, id: _Optional[str] = ..., version: _Optional[str] = ..., name: _Optional[str] = ..., owns_compaction: _Optional[bool] = ..., host_auto_compaction: _Optional[_Union[HostAutoCompaction, str]] = ..., tail_steps: _Optional[int] = ..., forms: _Optional[_Iterable[_Union[_message_pb2.Form, str]]] = ..., compaction_threshold: _Optional[float] = ..., tools: _Optional[_Iterable[str]] = ..., turn_maintenance_mode: _Optional[str] = ..., host_limits: _Optional[_Iterable[_Union[HostLimit, _Mapping]]] = ...) -> None: ...

class HostLimit(_message.Message):
    __slots__ = ("capability", "consequence")
    CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    CONSEQUENCE_FIELD_NUMBER: _ClassVar[int]
    capability: str
    consequence: str
    def __init__(self, capability: _Optional[str] = ..., consequence: _Optional[str] = ...) -> None: ...
