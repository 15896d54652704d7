import datetime

from contextengine_proto.v1 import message_pb2 as _message_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AttachRequest(_message.Message):
    __slots__ = ("hello", "completion", "keep_lease")
    class Hello(_message.Message):
        __slots__ = ("host_id", "agent_id", "models", "max_concurrent_jobs", "max_input_tokens")
        HOST_ID_FIELD_NUMBER: _ClassVar[int]
        AGENT_ID_FIELD_NUMBER: _ClassVar[int]
        MODELS_FIELD_NUMBER: _ClassVar[int]
        MAX_CONCURRENT_JOBS_FIELD_NUMBER: _ClassVar[int]
        MAX_INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
        host_id: str
        agent_id: str
        models: _containers.RepeatedScalarFieldContainer[str]
        max_concurrent_jobs: int
        max_input_tokens: int
        def __init__(self, host_id: _Optional[str] = ..., agent_id: _Optional[str] = ..., models: _Optional[_Iterable[str]] = ..., max_concurrent_jobs: _Optional[int] = ..., max_input_tokens: _Optional[int] = ...) -> None: ...
    class Completion(_message.Message):
        __slots__ = ("job_id", "lease_id", "text", "usage", "model", "stop_reason", "error", "retryable")
        JOB_ID_FIELD_NUMBER: _ClassVar[int]
        LEASE_ID_FIELD_NUMBER: _ClassVar[int]
        TEXT_FIELD_NUMBER: _ClassVar[int]
        USAGE_FIELD_NUMBER: _ClassVar[int]
        MODEL_FIELD_NUMBER: _ClassVar[int]
        STOP_REASON_FIELD_NUMBER: _ClassVar[int]
        ERROR_FIELD_NUMBER: _ClassVar[int]
        RETRYABLE_FIELD_NUMBER: _ClassVar[int]
        job_id: str
        lease_id: str
        text: str
        usage: _message_pb2.Usage
        model: str
        stop_reason: str
        error: str
        retryable: bool
        def __init__(self, job_id: _Optional[str] = ..., lease_id: _Optional[str] = ..., text: _Optional[str] = ..., usage: _Optional[_Union[_message_pb2.Usage, _Mapping]] = ..., model: _Optional[str] = ..., stop_reason: _Optional[str] = ..., error: _Optional[str] = ..., retryable: _Optional[bool] = ...) -> None: ...
    class KeepLease(_message.Message):
        __slots__ = ("job_id", "lease_id")
        JOB_ID_FIELD_NUMBER: _ClassVar[int]
        LEASE_ID_FIELD_NUMBER: _ClassVar[int]
        job_id: str
        lease_id: str
        def __init__(self, job_id: _Optional[str] = ..., lease_id: _Optional[str] = ...) -> None: ...
    HELLO_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_FIELD_NUMBER: _ClassVar[int]
    KEEP_LEASE_FIELD_NUMBER: _ClassVar[int]
    hello: AttachRequest.Hello
    completion: AttachRequest.Completion
    keep_lease: AttachRequest.KeepLease
    def __init__(self, hello: _Optional[_Union[AttachRequest.Hello, _Mapping]] = ..., completion: _Optional[_Union[AttachRequest.Completion, _Mapping]] = ..., keep_lease: _Optional[_Union[AttachRequest.KeepLease, _Mapping]] = ...) -> None: ...

class AttachResponse(_message.Message):
    __slots__ = ("welcome", "job", "receipt", "cancel")
    class Welcome(_message.Message):
        __slots__ = ("stream_id",)
        STREAM_ID_FIELD_NUMBER: _ClassVar[int]
        stream_id: str
        def __init__(self, stream_id: _Optional[str] = ...) -> None: ...
    class Job(_message.Message):
        __slots__ = ("job_id", "lease_id", "lease_expire_time", "purpose", "agent_id", "session_id", "system_prompt", "messages", "max_output_tokens", "model", "temperature")
        JOB_ID_FIELD_NUMBER: _ClassVar[int]
        LEASE_ID_FIELD_NUMBER: _ClassVar[int]
        LEASE_EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
        PURPOSE_FIELD_NUMBER: _ClassVar[int]
        AGENT_ID_FIELD_NUMBER: _ClassVar[int]
        SESSION_ID_FIELD_NUMBER: _ClassVar[int]
        SYSTEM_PROMPT_FIELD_NUMBER: _ClassVar[int]
        MESSAGES_FIELD_NUMBER: _ClassVar[int]
        MAX_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
        MODEL_FIELD_NUMBER: _ClassVar[int]
        TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
        job_id: str
        lease_id: str
        lease_expire_time: _timestamp_pb2.Timestamp
        purpose: str
        agent_id: str
        session_id: str
        system_prompt: str
        messages: _containers.RepeatedCompositeFieldContainer[_message_pb2.Message]
        max_output_tokens: int
        model: str
        temperature: float
        def __init__(self, job_id: _Optional[str] = ..., lease_id: _Optional[str] = ..., lease_expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., purpose: _Optional[str] = ..., agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., system_prompt: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[_message_pb2.Message, _Mapping]]] = ..., max_output_tokens: _Optional[int] = ..., model: _Optional[str] = ..., temperature: _Optional[float] = ...) -> None: ...
    class Receipt(_message.Message):
        __slots__ = ("job_id", "accepted", "reason")
        JOB_ID_FIELD_NUMBER: _ClassVar[int]
        ACCEPTED_FIELD_NUMBER: _ClassVar[int]
        REASON_FIELD_NUMBER: _ClassVar[int]
        job_id: str
        accepted: bool
        reason: str
        def __init__(self, job_id: _Optional[str] = ..., accepted: _Optional[bool] = ..., reason: _Optional[str] = ...) -> None: ...
    class Cancel(_message.Message):
        __slots__ = ("job_id", "reason")
        JOB_ID_FIELD_NUMBER: _ClassVar[int]
        REASON_FIELD_NUMBER: _ClassVar[int]
        job_id: str
        reason: str
        def __init__(self, job_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    welcome: AttachResponse.Welcome
    job: AttachResponse.Job
    receipt: AttachResponse.Receipt
    cancel: AttachResponse.Cancel
    def __init__(self, welcome: _Optional[_Union[AttachResponse.Welcome, _Mapping]] = ..., job: _Optional[_Union[AttachResponse.Job, _Mapping]] = ..., receipt: _Optional[_Union[AttachResponse.Receipt, _Mapping]] = ..., cancel: _Optional[_Union[AttachResponse.Cancel, _Mapping]] = ...) -> None: ...
