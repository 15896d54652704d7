"""Background work is done for tenants by turns, whoever owes the most and since when."""

from __future__ import annotations

import asyncio
from collections import Counter

from contextengine_server.compaction.queue import COMPACT
from contextengine_server.context.scope import Scope
from contextengine_server.store.debts import Debt
from tests.unit.commands.compaction.test_remake_background import background
from tests.unit.commands.house import Server


async def owe(server: Server, tenant: str, count: int) -> None:
    for number in range(count):
        scope = Scope(tenant, "main", f"{tenant}{number}")
        await server.store.add_debt(Debt(scope, COMPACT, server.clock()))
        server.clock.ms += 1


async def test_a_crowd_of_one_tenant_is_not_waited_for(server: Server) -> None:
    await owe(server, "noisy", 150)
    await owe(server, "quiet", 3)
    jobs = background(server)
    claimed = [await jobs._claim() for _ in range(20)]
    tenants = [debt.scope.tenant for debt in claimed if debt is not None]
    assert len(tenants) == 20
    assert [place for place, tenant in enumerate(tenants) if tenant == "quiet"] == [1, 3, 5]


async def test_workers_that_ask_at_once_do_not_choose_the_same_tenant(server: Server) -> None:
    for tenant in ("a", "b", "c"):
        await owe(server, tenant, 2)
    jobs = background(server)
    claimed = await asyncio.gather(*(jobs._claim() for _ in range(3)))
    assert Counter(debt.scope.tenant for debt in claimed if debt) == {"a": 1, "b": 1, "c": 1}
