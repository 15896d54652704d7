from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Quota(_message.Message):
    __slots__ = ("weight", "calls", "long_calls", "streams", "waits")
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    LONG_CALLS_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    weight: float
    calls: int
    long_calls: int
    streams: int
    waits: int
    def __init__(self, weight: _Optional[float] = ..., calls: _Optional[int] = ..., long_calls: _Optional[int] = ..., streams: _Optional[int] = ..., waits: _Optional[int] = ...) -> None: ...

class TenantUsage(_message.Message):
    __slots__ = ("calls", "waiting_calls", "long_calls", "streams", "waits", "bytes_in_flight")
    CALLS_FIELD_NUMBER: _ClassVar[int]
    WAITING_CALLS_FIELD_NUMBER: _ClassVar[int]
    LONG_CALLS_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    BYTES_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    calls: int
    waiting_calls: int
    long_calls: int
    streams: int
    waits: int
    bytes_in_flight: int
    def __init__(self, calls: _Optional[int] = ..., waiting_calls: _Optional[int] = ..., long_calls: _Optional[int] = ..., streams: _Optional[int] = ..., waits: _Optional[int] = ..., bytes_in_flight: _Optional[int] = ...) -> None: ...

class TenantQuota(_message.Message):
    __slots__ = ("tenant", "stored", "in_force", "usage")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    STORED_FIELD_NUMBER: _ClassVar[int]
    IN_FORCE_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    stored: Quota
    in_force: Quota
    usage: TenantUsage
    def __init__(self, tenant: _Optional[str] = ..., stored: _Optional[_Union[Quota, _Mapping]] = ..., in_force: _Optional[_Union[Quota, _Mapping]] = ..., usage: _Optional[_Union[TenantUsage, _Mapping]] = ...) -> None: ...

class ListQuotasRequest(_message.Message):
    __slots__ = ("tenant",)
    TENANT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    def __init__(self, tenant: _Optional[str] = ...) -> None: ...

class ListQuotasResponse(_message.Message):
    __slots__ = ("tenants",)
    TENANTS_FIELD_NUMBER: _ClassVar[int]
    tenants: _containers.RepeatedCompositeFieldContainer[TenantQuota]
    def __init__(self, tenants: _Optional[_Iterable[_Union[TenantQuota, _Mapping]]] = ...) -> None: ...

class SetQuotaRequest(_message.Message):
    __slots__ = ("tenant", "quota", "clear", "request_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    QUOTA_FIELD_NUMBER: _ClassVar[int]
    CLEAR_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    quota: Quota
    clear: bool
    request_id: str
    def __init__(self, tenant: _Optional[str] = ..., quota: _Optional[_Union[Quota, _Mapping]] = ..., clear: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class SetQuotaResponse(_message.Message):
    __slots__ = ("tenant",)
    TENANT_FIELD_NUMBER: _ClassVar[int]
    tenant: TenantQuota
    def __init__(self, tenant: _Optional[_Union[TenantQuota, _Mapping]] = ...) -> None: ...
