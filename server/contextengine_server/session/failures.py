"""How an engine's failure is told: to operators with what the engine said, to callers without."""

from __future__ import annotations

import msgspec

from contextengine_server.engines.failure import EngineBroken
from contextengine_server.engines.registration import InvalidEngine
from contextengine_server.errors import EngineFailed
from contextengine_server.summarize.redaction import redact

MAX_REASON = 500
"""Characters of what an engine said that are kept: it may have quoted at length."""


MAX_FAILURES = 1_000
"""Pairs of tenant and engine whose failures are kept."""


class Failure(msgspec.Struct):
    """The first failure of an engine; later ones are counted."""

    engine_id: str
    operation: str
    how: str
    """What anybody may know of it."""
    reason: str
    """What operators are told."""
    time_ms: int
    count: int = 1


class Failures:
    """What failed, a tenant and engine at a time: the first failure, until what failed succeeds or
    an operator strikes it off. Of no more than `most`; the oldest go first."""

    def __init__(self, most: int = MAX_FAILURES) -> None:
        self._most = most
        self.known: dict[tuple[str, str], Failure] = {}
        """By tenant and engine."""

    def note(self, tenant: str, failure: Failure) -> None:
        """The first failure is kept, later ones are counted."""
        known = self.known.setdefault((tenant, failure.engine_id), failure)
        if known is not failure:
            known.count += 1
        while len(self.known) > self._most:
            del self.known[next(iter(self.known))]

    def succeeded(self, tenant: str, engine_id: str, operation: str) -> None:
        """What failed goes again."""
        known = self.known.get((tenant, engine_id))
        if known is not None and known.operation == operation:
            del self.known[tenant, engine_id]

    def of(self, tenant: str, engine_id: str) -> Failure | None:
        """The first failure of a tenant's engine; None: none."""
        return self.known.get((tenant, engine_id))

    def of_tenant(self, tenant: str) -> list[Failure]:
        """What a tenant's engines failed at, the oldest first."""
        return [failure for (owner, _), failure in self.known.items() if owner == tenant]

    def clear(self, tenant: str) -> None:
        """An operator has seen them."""
        for key in [key for key in self.known if key[0] == tenant]:
            del self.known[key]


def how(error: Exception) -> str:
    """What anybody may know: the law that broke, or the type of what was thrown."""
    told = isinstance(error, (EngineBroken, InvalidEngine))
    return str(error) if told else type(error).__name__


def reason(error: Exception) -> str:
    """What an operator is told: the same, and what the engine said, without secrets."""
    told = isinstance(error, (EngineBroken, InvalidEngine))
    cause = error.__cause__ if told else error
    said = redact(str(cause)[: 4 * MAX_REASON]) if cause is not None else ""
    return f"{how(error)}: {said}"[:MAX_REASON] if said else how(error)


def engine_failed(engine_id: str, operation: str, error: Exception, advice: str) -> EngineFailed:
    """The error that the caller gets: the engine, what it was doing, and the law that broke, where
    one did."""
    metadata = {"engine": engine_id, "operation": operation, "how": how(error)}
    if isinstance(error, EngineBroken) and error.law:
        metadata["law"] = str(error.law)
    return EngineFailed(
        f"engine {engine_id!r} failed to {operation}: {how(error)}: {advice}", metadata=metadata
    )
