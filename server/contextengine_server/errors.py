"""Domain errors: what can go wrong, said once. `api.pipeline.errors` alone turns them into
google.rpc.Status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec


class FieldViolation(msgspec.Struct, frozen=True):
    """A field that is wrong: its path in the request, and what would be right."""

    field: str
    description: str


class DomainError(Exception):
    """A call that failed for a reason that has a name.

    `reason` is a value of contextengine.v1.ErrorReason without its prefix. The text says what is
    wrong and what to do, and never carries text of messages.
    """

    reason: str = "DEFECT"

    def __init__(
        self,
        text: str,
        *,
        violations: Sequence[FieldViolation] = (),
        metadata: Mapping[str, str] | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(text)
        self.text = text
        self.violations = tuple(violations)
        self.metadata = dict(metadata or {})
        self.retry_after_ms = retry_after_ms


class InvalidField(DomainError):
    """A field is missing, malformed or out of its range."""

    reason = "INVALID_FIELD"

    def __init__(self, field: str, description: str) -> None:
        super().__init__(f"{field}: {description}", violations=[FieldViolation(field, description)])


class ContradictoryFields(DomainError):
    """Fields that exclude each other were given."""

    reason = "CONTRADICTORY_FIELDS"

    def __init__(self, fields: Sequence[str], description: str) -> None:
        super().__init__(
            f"{' and '.join(fields)}: {description}",
            violations=[FieldViolation(name, description) for name in fields],
        )


class MalformedRequest(DomainError):
    """The request's bytes are not a message of its type."""

    reason = "MALFORMED_REQUEST"


class BudgetImpossible(DomainError):
    """Reserves reach the window: nothing is left for messages."""

    reason = "BUDGET_IMPOSSIBLE"


class SessionNotFound(DomainError):
    """No such session for this tenant and agent."""

    reason = "SESSION_NOT_FOUND"


class RowNotFound(DomainError):
    """No such message, summary or proposal in the session."""

    reason = "ROW_NOT_FOUND"


class MessageConflict(DomainError):
    """A message id is stored with other content."""

    reason = "MESSAGE_CONFLICT"


class RequestIdReused(DomainError):
    """The request id was used for another request."""

    reason = "REQUEST_ID_REUSED"


class SessionExists(DomainError):
    """Import found a session that holds other messages."""

    reason = "SESSION_EXISTS"


class UnknownEngine(DomainError):
    """The chosen engine does not exist. The text lists those that do."""

    reason = "UNKNOWN_ENGINE"


class HostCapabilityMissing(DomainError):
    """The host cannot do what the chosen engine needs."""

    reason = "HOST_CAPABILITY_MISSING"


class RevisionMismatch(DomainError):
    """The session's revision is not the expected one."""

    reason = "REVISION_MISMATCH"


class SessionHasDependents(DomainError):
    """Other sessions stand on the one to delete."""

    reason = "HAS_DEPENDENTS"


class LostRace(DomainError):
    """Another writer won the session more often than was retried."""

    reason = "LOST_RACE"


class TooLarge(DomainError):
    """A message, batch or session is larger than its limit, or what a tenant takes of the disk."""

    reason = "TOO_LARGE"


class SpawnLimit(DomainError):
    """A child would be too deep, or its parent has too many live ones."""

    reason = "SPAWN_LIMIT"


class SpawnEnded(DomainError):
    """The spawn that a token names is over."""

    reason = "SPAWN_ENDED"


class BudgetSpent(DomainError):
    """What may be spent is spent."""

    reason = "BUDGET_SPENT"


class Overloaded(DomainError):
    """Too many calls at once."""

    reason = "OVERLOADED"


class Draining(DomainError):
    """The server drains; another one should be asked."""

    reason = "DRAINING"


UNCERTAIN = (
    "the change was written as a whole or not at all: send the same again, which is safe with ids"
)
"""What is said where a store lost its database while it committed."""


class StoreDown(DomainError):
    """The store cannot write or read now. Nothing was changed, unless the text says otherwise."""

    reason = "STORE_UNAVAILABLE"


class Unauthenticated(DomainError):
    """No token, or one that is not known."""

    reason = "UNAUTHENTICATED"


class PermissionDenied(DomainError):
    """The token's role does not allow this call, or the spawn token grants no recall."""

    reason = "PERMISSION_DENIED"


class EngineFailed(DomainError):
    """The engine threw, or its plan broke a law."""

    reason = "ENGINE_FAILED"


class NotYetServed(DomainError):
    """The rpc is part of the contract and not served by this version."""

    reason = "NOT_YET_SERVED"


class DeadlinePassed(DomainError):
    """The deadline passed before the work was done."""

    reason = "DEADLINE"


class SessionReplaced(DomainError):
    """The session was deleted while it was read."""

    reason = "SESSION_REPLACED"


class ProjectionTooLarge(DomainError):
    """What a projection may not cut exceeds the target's limit."""

    reason = "PROJECTION_IMPOSSIBLE"


class CorruptRow(DomainError):
    """A stored row does not match its hash."""

    reason = "CORRUPT_ROW"
