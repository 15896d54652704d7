"""The suite that every store passes.

    class TestMine(StoreSuite):
        def factory(self, place):
            return MyStore(place / "my.db")

`shared = True` says that two stores may have one database open at once; `searchable = False` that
there is no search index; `crowded` lets the suite see what happens where the database has no more
room. docs/stores.md says what a store is.
"""

from __future__ import annotations

from .agents.chunks import ChunkCases
from .agents.ledger import LedgerCases
from .agents.memory import MemoryCases
from .archives import ArchiveCases
from .arrivals.staged_sessions import StagedSessionCases
from .assignments import AssignmentCases
from .case import Reopen, StoreCase
from .commits import CommitCases
from .debts import DebtCases
from .deletions import DeletionCases
from .groups import GroupCases
from .guards import GuardCases
from .histories import HistoryCases
from .index import IndexCases
from .listings import ListingCases
from .model_leases import ModelLeaseCases
from .quotas import QuotaCases
from .reads import ReadCases
from .search import SearchCases
from .servers.replicas import ReplicaCases
from .servers.writers import WriterCases
from .spawns import SpawnCases
from .workload import WorkloadCases

__all__ = ["Reopen", "StoreCase", "StoreSuite"]


class StoreSuite(
    CommitCases,
    GroupCases,
    WriterCases,
    ReadCases,
    ListingCases,
    HistoryCases,
    DeletionCases,
    DebtCases,
    AssignmentCases,
    GuardCases,
    QuotaCases,
    ModelLeaseCases,
    SpawnCases,
    StagedSessionCases,
    LedgerCases,
    MemoryCases,
    ChunkCases,
    ArchiveCases,
    WorkloadCases,
    ReplicaCases,
    IndexCases,
    SearchCases,
):
    """All that a store promises."""
