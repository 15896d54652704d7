"""The jobs that harnesses do with the models that they lend, as values."""

from __future__ import annotations

from enum import Enum

import msgspec


class JobOutcome(Enum):
    """What became of a result."""

    ACCEPTED = "accepted"
    UNKNOWN = "unknown"
    """There is no such job: it was cancelled, given up or never there."""
    TWICE = "twice"
    """It has its result."""
    LOST = "lost"
    """The job was handed out again, or taken back, since the lease was given."""


class ModelJob(msgspec.Struct, frozen=True):
    """A job, as it is stored. Times are milliseconds since 1970 UTC."""

    tenant: str
    id: str
    digest: str
    """Of what is wanted: the same work is one job until its result is taken. Then empty."""
    agent: str
    session: str
    queued_ms: int
    expire_ms: int
    """When nobody wants it any more."""
    input_tokens: int = 0
    model: str = ""
    """The model wished for; empty: any."""
    attempts: int = 0
    """How often it was handed out."""
    lease_id: str = ""
    """The hand-out that may answer; empty: none."""
    lease_until_ms: int = 0
    """Until then it is handed to nobody else."""
    answered: bool = False
    work: bytes = b""
    """What is to be done, opaque here; empty once the result was taken."""
    result: bytes = b""
    """What came of it, opaque here; empty once it was taken."""
