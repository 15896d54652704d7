"""The one place where what went wrong becomes a google.rpc.Status with its details.

Clients see a code, a text, ErrorInfo (domain `contextengine`, reason, metadata), BadRequest where
fields are wrong and RetryInfo where trying again helps. Whatever is not foreseen is a defect:
INTERNAL with an id to look for in the log, where its frames are written down, and never its text.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from types import MappingProxyType

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from contextengine_server.errors import UNCERTAIN, DeadlinePassed, DomainError, LostRace, StoreDown
from contextengine_server.store.errors import RevisionConflict, StoreUnavailable, StoreUncertain
from contextengine_server.telemetry.logs import get_logger
from contextengine_server.telemetry.tracing import Trace

DOMAIN = "contextengine"

CODES: Mapping[str, grpc.StatusCode] = MappingProxyType(
    {
        "INVALID_FIELD": grpc.StatusCode.INVALID_ARGUMENT,
        "CONTRADICTORY_FIELDS": grpc.StatusCode.INVALID_ARGUMENT,
        "MALFORMED_REQUEST": grpc.StatusCode.INVALID_ARGUMENT,
        "BUDGET_IMPOSSIBLE": grpc.StatusCode.INVALID_ARGUMENT,
        "SESSION_NOT_FOUND": grpc.StatusCode.NOT_FOUND,
        "ROW_NOT_FOUND": grpc.StatusCode.NOT_FOUND,
        "POSITION_LOST": grpc.StatusCode.NOT_FOUND,
        "MESSAGE_CONFLICT": grpc.StatusCode.ALREADY_EXISTS,
        "REQUEST_ID_REUSED": grpc.StatusCode.ALREADY_EXISTS,
        "SESSION_EXISTS": grpc.StatusCode.ALREADY_EXISTS,
        "UNKNOWN_ENGINE": grpc.StatusCode.FAILED_PRECONDITION,
        "REVISION_MISMATCH": grpc.StatusCode.FAILED_PRECONDITION,
        "HAS_DEPENDENTS": grpc.StatusCode.FAILED_PRECONDITION,
        "PROJECTION_IMPOSSIBLE": grpc.StatusCode.FAILED_PRECONDITION,
        "HOST_CAPABILITY_MISSING": grpc.StatusCode.FAILED_PRECONDITION,
        "SPAWN_ENDED": grpc.StatusCode.FAILED_PRECONDITION,
        "LOST_RACE": grpc.StatusCode.ABORTED,
        "SESSION_REPLACED": grpc.StatusCode.ABORTED,
        "TOO_LARGE": grpc.StatusCode.RESOURCE_EXHAUSTED,
        "OVERLOADED": grpc.StatusCode.RESOURCE_EXHAUSTED,
        "SPAWN_LIMIT": grpc.StatusCode.RESOURCE_EXHAUSTED,
        "BUDGET_SPENT": grpc.StatusCode.RESOURCE_EXHAUSTED,
        "DRAINING": grpc.StatusCode.UNAVAILABLE,
        "STORE_UNAVAILABLE": grpc.StatusCode.UNAVAILABLE,
        "UNAUTHENTICATED": grpc.StatusCode.UNAUTHENTICATED,
        "PERMISSION_DENIED": grpc.StatusCode.PERMISSION_DENIED,
        "NOT_YET_SERVED": grpc.StatusCode.UNIMPLEMENTED,
        "DEADLINE": grpc.StatusCode.DEADLINE_EXCEEDED,
        "CORRUPT_ROW": grpc.StatusCode.DATA_LOSS,
        "ENGINE_FAILED": grpc.StatusCode.INTERNAL,
        "DEFECT": grpc.StatusCode.INTERNAL,
    }
)
"""Reason to status code, as errors.proto says."""

# Everything travels in one block of trailing metadata, twice the text included, and clients refuse
# blocks over 8 KiB, gRPC's default soft limit: percent-encoding makes up to 3 bytes of one, base64
# 4 of 3. These bounds keep the worst case below.
MAX_TEXT_BYTES = 1_000
MAX_VALUE_BYTES = 256
MAX_DETAILS_BYTES = 1_900

STORE_RETRY_MS = 1_000
LOST_RACE_RETRY_MS = 20
"""A commit takes a few milliseconds; who lost once against several writers waits for all of
them."""

log = get_logger("contextengine.api")


def as_domain_error(error: BaseException, method: str, trace: Trace) -> DomainError:
    """What an exception means to the caller of `method`. What is not foreseen is logged here, once,
    and is a defect."""
    match error:
        case DomainError() if error.reason in CODES and error.reason != "DEFECT":
            return error
        case BaseExceptionGroup() if len(error.exceptions) == 1:
            # A task group wraps even the one failure that it saw.
            return as_domain_error(error.exceptions[0], method, trace)
        case StoreUnavailable():
            # Its text names files of this machine, which are the operator's business.
            log.error("store_unavailable", rpc=method, detail=str(error), **trace.ids())
            came = UNCERTAIN if isinstance(error, StoreUncertain) else "nothing was changed"
            return StoreDown(
                f"the store cannot be written or read now; {came}. Try again, and have"
                " the operator run `contextengine doctor` if it lasts",
                retry_after_ms=STORE_RETRY_MS,
            )
        case RevisionConflict():
            return LostRace(
                "other writers won the session each time; send the call again",
                retry_after_ms=LOST_RACE_RETRY_MS,
            )
        case TimeoutError():
            return DeadlinePassed(
                "the work took longer than it may; send the call again with the same ids"
            )
        case _:
            defect = secrets.token_hex(8)
            log.error("defect", rpc=method, defect_id=defect, exc_info=error, **trace.ids())
            return DomainError(
                f"{method} failed by a defect of the service; its log has more under the id"
                f" {defect}",
                metadata={"id": defect, "rpc": method},
            )


def to_status(error: DomainError) -> grpc.Status:
    """The status of a domain error, its details in the trailing metadata. Long texts and lists are
    cut to fit there."""
    status = status_pb2.Status(
        code=CODES[error.reason].value[0], message=clip(error.text, MAX_TEXT_BYTES)
    )
    left = MAX_DETAILS_BYTES
    info = error_details_pb2.ErrorInfo(domain=DOMAIN, reason=error.reason)
    for key, value in error.metadata.items():
        info.metadata[clip(key, 64)] = clip(str(value), MAX_VALUE_BYTES)
        if info.ByteSize() > left // 2:
            del info.metadata[clip(key, 64)]
            break
    left -= _pack(status, info)
    if error.retry_after_ms is not None:
        delay = Duration()
        delay.FromMilliseconds(error.retry_after_ms)
        left -= _pack(status, error_details_pb2.RetryInfo(retry_delay=delay))
    request = error_details_pb2.BadRequest()
    for violation in error.violations:
        request.field_violations.add(
            field=clip(violation.field, MAX_VALUE_BYTES),
            description=clip(violation.description, MAX_VALUE_BYTES),
        )
        if request.ByteSize() > left - 64:
            del request.field_violations[-1]
            break
    if request.field_violations:
        _pack(status, request)
    return rpc_status.to_status(status)


def clip(text: str, limit: int) -> str:
    """The text as UTF-8 of at most `limit` bytes, whole characters, an ellipsis where it was cut.

    Lone surrogates, which no wire takes, become question marks.
    """
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= limit:
        return encoded.decode()
    return encoded[: limit - 3].decode("utf-8", "ignore") + "…"


def _pack(status: status_pb2.Status, detail: Message) -> int:
    """Adds a detail and answers its size in bytes."""
    packed = Any()
    packed.Pack(detail)
    status.details.append(packed)
    return packed.ByteSize()
