"""What a store does: small protocols, joined into `Store`.

Who needs a few of the methods asks for their protocol alone. Every method names the session or the
tenant that it works in, and none reads across, but those that serve the process and answer no
caller: `idle_sessions`, `debtors`, `claim_debt`, `spawns.expire`, `index.behind`, `workload`,
`quotas.rows`, `archives.release` and `archives.totals`, and `counts`, `chunks.totals` and
`chunks.prune` without a tenant. No read limits silently. Every method that reads or
writes raises StoreUnavailable where the database cannot be used now, or is closed.

Texts that people, models and tools wrote come back character by character, NUL included: of
summaries, facts, debts and spawns. What names something holds no NUL.

A store knows nothing of views, laws or engines: it keeps what it is given. What each method
promises is held by the suite that every store passes.
"""

from __future__ import annotations

from typing import Protocol

from contextengine_server.store.archives import Archives
from contextengine_server.store.search import SearchIndex

from .chunks import Chunks
from .ledger import SpendLedger
from .memory import AgentMemory
from .replicas import Feed, Leases
from .sessions import (
    Answering,
    Assignments,
    Commits,
    Connection,
    Heads,
    Listing,
    Messages,
    Observer,
    Replies,
    Sizes,
    Summaries,
)
from .spawns import SpawnLives, SpawnRecords, Spawns
from .work import (
    Debts,
    Guards,
    JobLeases,
    JobQueue,
    ModelLeases,
    TenantRows,
    Workloads,
)

__all__ = [
    "AgentMemory",
    "Answering",
    "Archives",
    "Assignments",
    "Chunks",
    "Commits",
    "Connection",
    "Debts",
    "Feed",
    "Guards",
    "Heads",
    "JobLeases",
    "JobQueue",
    "Leases",
    "Listing",
    "Messages",
    "ModelLeases",
    "Observer",
    "Replies",
    "SearchIndex",
    "Sizes",
    "SpawnLives",
    "SpawnRecords",
    "Spawns",
    "SpendLedger",
    "Store",
    "Summaries",
    "TenantRows",
    "Workloads",
]


class Store(
    Connection,
    Heads,
    Commits,
    Messages,
    Summaries,
    Replies,
    Sizes,
    Listing,
    Debts,
    Assignments,
    Protocol,
):
    """Everything that a store does."""

    index: SearchIndex
    guards: Guards
    quotas: TenantRows
    model_leases: ModelLeases
    spawns: Spawns
    ledger: SpendLedger
    memory: AgentMemory
    chunks: Chunks
    archives: Archives
    workload: Workloads
    feed: Feed
    leases: Leases
