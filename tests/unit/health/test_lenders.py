"""Servers say under a lease which harnesses they have, and know those of the others by theirs."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from contextengine_server.context.scope import Scope
from contextengine_server.health import lenders
from contextengine_server.health.lenders import KIND, MAX_TENANT_BYTES, Lenders
from contextengine_server.runtime.broker import Harnesses, Terms
from contextengine_server.runtime.streams import Harness
from contextengine_server.runtime.visits import SessionName, Visits
from contextengine_server.store.local import LocalLeases
from contextengine_server.store.memory import MemoryStore


async def nobody_comes_by(session: SessionName) -> bool:
    return False


class Server:
    """What one server has of it."""

    def __init__(self, held: dict[Any, Any], name: str) -> None:
        numbers = count(1)
        self.harnesses = Harnesses(
            MemoryStore().model_leases,
            lambda: 0,
            lambda: f"{name}{next(numbers)}",
            Terms(1, 1, 1),
            Visits(nobody_comes_by, 0),
        )
        self.leases = LocalLeases(held)
        self.lenders = Lenders(self.leases, name, self.harnesses)

    def known(self, tenant: str = "acme", agent: str = "main", model: str = "") -> int:
        """How many kinds of harnesses of others take such work."""
        return len(self.harnesses.elsewhere.suited(tenant, agent, model))


@pytest.fixture
def held() -> dict[Any, Any]:
    """The leases that servers share."""
    return {}


@pytest.fixture
def one(held: dict[Any, Any]) -> Server:
    return Server(held, "one")


@pytest.fixture
def other(held: dict[Any, Any]) -> Server:
    return Server(held, "other")


async def told(*servers: Server) -> None:
    for server in servers:
        await server.lenders.sweep()


async def test_who_is_attached_to_one_is_known_to_the_other(one: Server, other: Server) -> None:
    await told(one, other)
    assert not one.leases._held, "who has none says nothing"
    first = one.harnesses.attach("acme", Harness(models=("small",), most_tokens=100))
    one.harnesses.attach("acme", Harness(models=("small",), most_tokens=100))
    await told(one, other, one)
    assert other.harnesses.count("acme") == 2
    assert other.known(model="small") == 1
    assert other.known(model="large") == 0
    assert other.known("another") == 0
    assert one.known() == 0, "its own are no others"
    one.harnesses.detach(first)
    await told(one, other)
    assert other.harnesses.count("acme") == 1
    await one.lenders.stop()
    await told(other)
    assert other.harnesses.count("acme") == 0
    assert not one.leases._held


async def test_who_only_comes_by_is_not_told_of(one: Server, other: Server) -> None:
    one.harnesses.changed.clear()
    one.harnesses.attach("acme", Harness(), passing=True)
    assert not one.harnesses.changed.is_set()
    await told(one, other)
    assert other.known() == 0


async def test_a_server_that_says_nothing_more_has_none(
    one: Server, other: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lenders, "LEASE_S", 0)
    one.harnesses.attach("acme", Harness())
    await told(one, other)
    assert other.known() == 0


async def test_what_it_said_last_holds(one: Server, other: Server) -> None:
    """One that could not take back what it said before has two leases for a while."""
    one.harnesses.attach("acme", Harness())
    await told(one)
    before = dict(one.leases._held)
    one.harnesses.attach("acme", Harness())
    await told(one)
    one.leases._held.update(before)
    await told(other)
    assert other.harnesses.count("acme") == 2


async def test_what_another_version_says_is_passed_over(one: Server, other: Server) -> None:
    await one.leases.take(Scope("", "later", "1"), KIND, '{"said": "otherwise"}', 60_000)
    one.harnesses.attach("acme", Harness())
    await told(one, other)
    assert other.known() == 1


async def test_one_tenant_takes_no_room_from_another(one: Server, other: Server) -> None:
    for number in range(40):
        models = tuple(f"{number}-{n}-{'m' * 100}" for n in range(10))
        one.harnesses.attach("acme", Harness(models=models))
    one.harnesses.attach("other", Harness())
    await told(one, other)
    (owner,) = await other.leases.owners(KIND)
    assert MAX_TENANT_BYTES / 2 < len(owner) < MAX_TENANT_BYTES + 1_000
    assert 0 < other.harnesses.count("acme") < 40
    assert other.harnesses.count("other") == 1
