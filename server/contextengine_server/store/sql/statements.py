"""Every statement that a store needs, in one database's dialect.

Whole rows are bound by position (`?`), in the order of their columns; all else by name (`:name`).
Plain text, so that a start does not wait for SQLAlchemy: importing it and compiling these took 0.4
s of the 1.5 s that a start may take.
"""

from __future__ import annotations

from .archives import ArchiveStatements
from .chunks import ChunkStatements
from .dialect import Dialect
from .ledger import LedgerStatements
from .memory import MemoryStatements
from .messages import MessageStatements, SummaryStatements
from .sessions import AssignmentStatements, HeadStatements, ReplyStatements
from .spawns import SpawnStatements
from .work import (
    DebtStatements,
    GuardStatements,
    JobStatements,
    QuotaStatements,
    WorkloadStatements,
)


class Statements:
    """The statements, by what they are about."""

    def __init__(self, dialect: Dialect) -> None:
        self.heads = HeadStatements(dialect)
        self.messages = MessageStatements(dialect)
        self.summaries = SummaryStatements(dialect)
        self.replies = ReplyStatements(dialect)
        self.debts = DebtStatements(dialect)
        self.assignments = AssignmentStatements()
        self.jobs = JobStatements(dialect)
        self.guards = GuardStatements()
        self.quotas = QuotaStatements()
        self.workload = WorkloadStatements(dialect)
        self.spawns = SpawnStatements(dialect)
        self.ledger = LedgerStatements(dialect)
        self.memory = MemoryStatements(dialect)
        self.chunks = ChunkStatements(dialect)
        self.archives = ArchiveStatements(dialect)
