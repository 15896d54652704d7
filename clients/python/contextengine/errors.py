"""Typed errors: one class for each reason that contextengine names, made from google.rpc.Status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import grpc
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

DOMAIN = "contextengine"


@dataclass(frozen=True, slots=True)
class Violation:
    """A field of the request that is wrong: its path, and what would be right."""

    field: str
    description: str


class ContextEngineError(Exception):
    """A call that failed. Subclasses are named for the reason; this class itself means a reason
    without a class here."""

    reason: str = ""
    """A value of contextengine.v1.ErrorReason without its prefix. Empty: the transport failed and
    not the service."""

    def __init__(
        self,
        message: str,
        *,
        code: grpc.StatusCode,
        reason: str | None = None,
        violations: Sequence[Violation] = (),
        metadata: Mapping[str, str] | None = None,
        retry_after: float | None = None,
    ) -> None:
        if reason is not None:
            self.reason = reason
        super().__init__(f"{self.reason or code.name}: {message}")
        self.message = message
        """What went wrong, for people."""
        self.code = code
        """The gRPC status."""
        self.violations = tuple(violations)
        """The fields that are wrong."""
        self.metadata = dict(metadata or {})
        """Facts of the failure by name, as ErrorReason documents them."""
        self.retry_after = retry_after
        """When to try again, in seconds from now. None: the server did not say."""


class InvalidField(ContextEngineError):
    """A field is missing, malformed or out of its range; `violations` names it."""

    reason = "INVALID_FIELD"


class ContradictoryFields(ContextEngineError):
    """Fields that exclude each other were given; `violations` names them."""

    reason = "CONTRADICTORY_FIELDS"


class MalformedRequest(ContextEngineError):
    """The request's bytes are not a message of its type."""

    reason = "MALFORMED_REQUEST"


class ProjectionImpossible(ContextEngineError):
    """What a projection may not cut (instructions, the prompt, the last step) exceeds the target's
    limit."""

    reason = "PROJECTION_IMPOSSIBLE"


class BudgetImpossible(ContextEngineError):
    """The budget leaves nothing: reserves reach the window."""

    reason = "BUDGET_IMPOSSIBLE"


class SessionNotFound(ContextEngineError):
    """No such session for this tenant and agent."""

    reason = "SESSION_NOT_FOUND"


class RowNotFound(ContextEngineError):
    """No such message, summary, proposal or other row in the session."""

    reason = "ROW_NOT_FOUND"


class MessageConflict(ContextEngineError):
    """A message id is stored with other content; `metadata` has the index, the id and both
    hashes."""

    reason = "MESSAGE_CONFLICT"


class RequestIdReused(ContextEngineError):
    """The request id was used for another request."""

    reason = "REQUEST_ID_REUSED"


class SessionExists(ContextEngineError):
    """An import found a session that holds other messages."""

    reason = "SESSION_EXISTS"


class UnknownEngine(ContextEngineError):
    """The chosen engine does not exist; `metadata` has the ids that do."""

    reason = "UNKNOWN_ENGINE"


class RevisionMismatch(ContextEngineError):
    """The session's revision is not the expected one; `metadata` has both."""

    reason = "REVISION_MISMATCH"


class HasDependents(ContextEngineError):
    """Live forks or continuations stand on the session to delete; `cascade` deletes them too."""

    reason = "HAS_DEPENDENTS"


class LostRace(ContextEngineError):
    """Another writer won the session more often than was retried. Nothing was changed: send
    again."""

    reason = "LOST_RACE"


class TooLarge(ContextEngineError):
    """A message, batch or session is larger than its limit; `metadata` has both."""

    reason = "TOO_LARGE"


class Overloaded(ContextEngineError):
    """Too many calls at once. Nothing was done; `retry_after` says when to try again."""

    reason = "OVERLOADED"


class BudgetSpent(ContextEngineError):
    """A spending cap is reached; `metadata` has the scope, the use, the cap and when it passes
    again."""

    reason = "BUDGET_SPENT"


class Unavailable(ContextEngineError):
    """The server cannot be reached or cannot serve now."""


class Draining(Unavailable):
    """The server drains; `retry_after` says when to try another."""

    reason = "DRAINING"


class StoreUnavailable(Unavailable):
    """The store cannot write now. Nothing was changed."""

    reason = "STORE_UNAVAILABLE"


class Unauthenticated(ContextEngineError):
    """No token, or one that is not known."""

    reason = "UNAUTHENTICATED"


class PermissionDenied(ContextEngineError):
    """The token's role does not allow this call."""

    reason = "PERMISSION_DENIED"


class EngineFailed(ContextEngineError):
    """The engine threw, or its plan broke a law; `metadata` has the engine, the operation and the
    law."""

    reason = "ENGINE_FAILED"


class NotYetServed(ContextEngineError):
    """The rpc is part of the contract and not served by this version of the server."""

    reason = "NOT_YET_SERVED"


class Defect(ContextEngineError):
    """A defect of the service; `metadata` has an id to look for in its log."""

    reason = "DEFECT"


class DeadlinePassed(ContextEngineError):
    """The deadline passed before the work was done, or before a revision was reached."""

    reason = "DEADLINE"


class SessionReplaced(ContextEngineError):
    """The session was deleted while it was read as of a revision."""

    reason = "SESSION_REPLACED"


class CorruptRow(ContextEngineError):
    """A stored row does not match its hash."""

    reason = "CORRUPT_ROW"


class PositionLost(ContextEngineError):
    """A resume position is older than what the server still has."""

    reason = "POSITION_LOST"


class SpawnEnded(ContextEngineError):
    """The spawn that a token names is over: its child ended, it was rolled back or it expired."""

    reason = "SPAWN_ENDED"


class SpawnLimit(ContextEngineError):
    """A child would be too deep, or its parent has too many live ones."""

    reason = "SPAWN_LIMIT"


class HostCapabilityMissing(ContextEngineError):
    """The host cannot do what the chosen engine needs; `metadata` has what is missing."""

    reason = "HOST_CAPABILITY_MISSING"


_BORNE_CODES = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}
_BROKEN_CODES = {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL}
_AWAY_CODES = _BORNE_CODES | {
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.PERMISSION_DENIED,
}


def is_borne(error: ContextEngineError) -> bool:
    """Whether the error says that the service is away, rather than that something must be
    mended."""
    if error.code in _BORNE_CODES or isinstance(error, Overloaded | LostRace):
        return True
    return error.code in _BROKEN_CODES and not error.reason


def is_away(error: ContextEngineError) -> bool:
    """Whether the service is not there for this client, be it that it refuses the token: a call
    about another session would hear the same."""
    return error.code in _AWAY_CODES


def _descendants(kind: type[ContextEngineError]) -> list[type[ContextEngineError]]:
    return [kind] + [found for child in kind.__subclasses__() for found in _descendants(child)]


BY_REASON = {kind.reason: kind for kind in _descendants(ContextEngineError) if kind.reason}
"""The class of each reason that the service gives."""


class QueueFull(ContextEngineError):
    """The service is away and the client's queue holds all that it may. Raised by the client
    itself."""

    reason = "QUEUE_FULL"


# Failures that never reached the service, and so carry no reason.
_BY_CODE: dict[grpc.StatusCode, type[ContextEngineError]] = {
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlinePassed,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDenied,
}


def from_rpc_error(error: grpc.RpcError) -> ContextEngineError:
    """The typed error for what gRPC raised, sync or asyncio."""
    info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
    violations: list[Violation] = []
    retry_after = None
    for detail in _details(error):
        bad = error_details_pb2.BadRequest()
        if detail.Is(info.DESCRIPTOR):
            detail.Unpack(info)
        elif detail.Is(retry.DESCRIPTOR):
            detail.Unpack(retry)
            retry_after = retry.retry_delay.ToTimedelta().total_seconds()
        elif detail.Is(bad.DESCRIPTOR):
            detail.Unpack(bad)
            violations += [Violation(v.field, v.description) for v in bad.field_violations]
    ours = info.domain == DOMAIN
    reason = info.reason.removeprefix("ERROR_REASON_") if ours else ""
    code = error.code()
    kind = (
        BY_REASON.get(reason, ContextEngineError)
        if reason
        else _BY_CODE.get(code, ContextEngineError)
    )
    return kind(
        error.details() or "no details",
        code=code,
        reason=reason,
        violations=violations,
        metadata=info.metadata if ours else {},
        retry_after=retry_after,
    )


def _details(error: grpc.RpcError) -> Sequence[Any]:
    """The details of the google.rpc.Status that travels with the error. Empty: none travels, or it
    is garbled."""
    try:
        # grpcio-status declares a Call, and reads only what every RpcError of a call has.
        status: status_pb2.Status | None = rpc_status.from_call(cast(grpc.Call, error))
    except ValueError:
        return ()
    return () if status is None else status.details
