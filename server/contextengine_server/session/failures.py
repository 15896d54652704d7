"""How an engine's failure is told: to operators with what the engine said, to callers without."""

from __future__ import annotations

import msgspec

from contextengine_server.engines.failure import EngineBroken
from contextengine_server.engines.registration import InvalidEngine
from contextengine_server.errors import EngineFailed
from contextengine_server.summarize.redaction import redact

MAX_REASON = 500
"""Characters of what an engine said that are kept: it may have quoted at length."""


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
