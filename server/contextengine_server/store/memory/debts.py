"""Debts and what operators chose, in memory."""

from __future__ import annotations

from operator import attrgetter

from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.debts import Debt
from contextengine_server.store.rows import Assignment

from .connection import MemoryConnection


class MemoryDebts(MemoryConnection):
    """`Debts` and `Assignments`."""

    async def add_debt(self, debt: Debt) -> None:
        """Records background work outside a commit; where one of its kind is owed already, that one
        stays."""
        self._tables().debts.setdefault((debt.scope, debt.kind), debt)

    async def debts(self, scope: Scope) -> list[Debt]:
        """What a session owes, oldest first."""
        owed = [debt for debt in self._tables().debts.values() if debt.scope == scope]
        return sorted(owed, key=attrgetter("queued_ms", "kind"))

    async def debtors(self, now_ms: int) -> list[str]:
        """The tenants with a debt that is due, who has waited longest first."""
        return list(dict.fromkeys(debt.scope.tenant for debt in self._due(now_ms)))

    async def claim_debt(
        self, owner: str, now_ms: int, lease_ms: int, *, tenant: str = ""
    ) -> Debt | None:
        """Leases the oldest debt that is due, neither held nor under a live lease. One job at a
        time per session."""
        debts = self._tables().debts
        due = (debt for debt in self._due(now_ms) if tenant in ("", debt.scope.tenant))
        oldest = next(due, None)
        if oldest is None:
            return None
        leased = replace(
            oldest,
            lease_owner=owner,
            lease_until_ms=now_ms + lease_ms,
            attempts=oldest.attempts + 1,
        )
        debts[leased.scope, leased.kind] = leased
        return leased

    def _due(self, now_ms: int) -> list[Debt]:
        """What may be claimed, the oldest first."""
        debts = self._tables().debts.values()
        busy = {debt.scope for debt in debts if debt.leased(now_ms)}
        due = [
            debt
            for debt in debts
            if not debt.held and not debt.put_off(now_ms) and debt.scope not in busy
        ]
        due.sort(key=lambda one: (max(one.queued_ms, one.not_before_ms), one.queued_ms))
        return due

    async def extend_debt(self, debt: Debt, until_ms: int) -> bool:
        """Extends a lease; False where it was lost."""
        mine = self._leased(debt)
        if mine is None:
            return False
        self._tables().debts[mine.scope, mine.kind] = replace(mine, lease_until_ms=until_ms)
        return True

    async def release_debt(
        self, debt: Debt, *, done: bool, not_before_ms: int = 0, error: str = "", held: bool = False
    ) -> None:
        """Ends a lease: removes the debt, or puts it back for later. Does nothing where the lease
        was lost."""
        debts = self._tables().debts
        mine = self._leased(debt)
        if mine is None:
            return
        if done:
            del debts[mine.scope, mine.kind]
            return
        debts[mine.scope, mine.kind] = replace(
            mine,
            lease_owner="",
            lease_until_ms=0,
            not_before_ms=not_before_ms,
            last_error=error,
            held=held,
        )

    def _leased(self, debt: Debt) -> Debt | None:
        """The debt as it is now, where the lease that it was claimed under holds."""
        mine = self._tables().debts.get((debt.scope, debt.kind))
        lease = attrgetter("lease_owner", "attempts", "queued_ms")
        return mine if mine is not None and lease(mine) == lease(debt) else None

    async def assignments(self, tenant: str | None) -> list[Assignment]:
        """What operators chose within a tenant, or within all."""
        chosen = self._tables().assignments.values()
        own = [choice for choice in chosen if tenant in (None, choice.tenant)]
        return sorted(own, key=attrgetter("tenant", "agent", "session"))

    async def assign(self, assignment: Assignment) -> None:
        """Records a choice; one with no engine and no options removes it."""
        chosen = self._tables().assignments
        place = (assignment.tenant, assignment.agent, assignment.session)
        if assignment.engine_id or assignment.options not in (b"", b"{}"):
            chosen[place] = assignment
        else:
            chosen.pop(place, None)
