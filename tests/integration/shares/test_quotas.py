"""Quotas that the server's owner sets while the server runs: in force with the next call and after
a restart, and nobody else's to set or to see."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from contextengine import AsyncClient, ContextEngineError, user
from contextengine import types as t
from contextengine_proto.v1 import context_engine_pb2_grpc
from contextengine_server.api.pipeline.auth import hash_token
from contextengine_server.commands.engines import quotas
from tests.integration.harness import ALICE, BOB, PATIENCE_S, RUNTIME, TOKENS, House, ref
from tests.integration.harness import house as living
from tests.integration.shares.test_waits_and_streams import NEVER, as_tenant, gone, held, never

OWNER, HIRED = "token-of-the-owner", "token-of-a-runtime-of-the-owner"
OWNED: dict[str, Any] = {
    "auth.tokens": [
        *TOKENS,
        {"sha256": hash_token(OWNER), "tenant": "ops", "role": "operator", "name": "ops laptop"},
        {"sha256": hash_token(HIRED), "tenant": "ops", "role": "runtime"},
    ],
    "auth.owners": ["ops"],
}


async def refused(call: Any) -> ContextEngineError:
    with pytest.raises(ContextEngineError) as caught:
        await call
    return caught.value


async def test_a_quota_holds_with_the_next_call_and_after_a_restart(tmp_path: Path) -> None:
    async with living(tmp_path, token=ALICE, **OWNED) as house:
        await house.client.ingest(ref("quiet"), user("hello"))
        owner = house.client_of(OWNER)
        set_ = await owner.engines.set_quota(tenant="alice", quota=t.Quota(waits=2))
        assert set_.tenant.stored == set_.tenant.in_force == t.Quota(waits=2)

        waiting = never(house, 2)
        await held(house, "waits", 2)
        error = await refused(house.client.get_status(ref("quiet"), at_least_revision=NEVER))
        assert (error.reason, error.metadata["cause"]) == ("OVERLOADED", "quota")
        # Another tenant has no such quota.
        await house.client_of(BOB).ingest(ref("his"), user("hello"))
        await gone(waiting)

        await house.restart()
        again = await house.client_of(OWNER).engines.list_quotas(tenant="alice")
        assert again.tenants[0].stored == t.Quota(waits=2)
        waiting = never(house, 2)
        await held(house, "waits", 2)
        assert (
            await refused(house.client.get_status(ref("quiet"), at_least_revision=NEVER))
        ).reason == "OVERLOADED"
        cleared = await house.client_of(OWNER).engines.set_quota(tenant="alice", clear=True)
        assert not cleared.tenant.HasField("stored")
        more = never(house, 1)
        await held(house, "waits", 3)
        await gone([*waiting, *more])


async def test_a_quota_of_calls_holds_for_those_let_in_before(tmp_path: Path) -> None:
    """Calls are let in unasked while nobody has a quota; the first quota ends that at once."""
    async with living(tmp_path, token=ALICE, **OWNED) as house:
        owner = house.client_of(OWNER)
        await house.client.ingest(ref("quiet"), user("hello"))
        await owner.engines.set_quota(tenant="alice", quota=t.Quota(calls=1))
        stub = context_engine_pb2_grpc.ContextEngineStub(house.channel)
        many = [
            stub.GetStatus(t.GetStatusRequest(session=ref("quiet")), metadata=as_tenant(ALICE))
            for _ in range(50)
        ]
        answers = await asyncio.gather(*many, return_exceptions=True)
        key = "contextengine.calls.refused{kind=calls,reason=quota}"
        assert house.app.metrics.snapshot()[key] == sum(
            isinstance(answer, BaseException) for answer in answers
        )
        assert house.app.server._admission.room == 0


async def test_what_is_stored_goes_over_the_settings_field_by_field(tmp_path: Path) -> None:
    settings = {**OWNED, "server.quotas": [{"tenant": "*", "streams": 7, "waits": 9}]}
    async with living(tmp_path, token=OWNER, **settings) as house:
        set_ = await house.client.engines.set_quota(
            tenant="bob", quota=t.Quota(waits=1, weight=2.5)
        )
        assert set_.tenant.in_force == t.Quota(streams=7, waits=1, weight=2.5)


async def test_only_the_owner_sees_and_sets_what_others_have(tmp_path: Path) -> None:
    async with living(tmp_path, **OWNED) as house:
        owner, alice = house.client_of(OWNER), house.client_of(ALICE)
        await owner.engines.set_quota(tenant="bob", quota=t.Quota(calls=3))
        own = await alice.engines.list_quotas()
        assert [one.tenant for one in own.tenants] == ["alice"]
        everyone = await owner.engines.list_quotas()
        assert {one.tenant for one in everyone.tenants} >= {"bob", "ops"}
        for client, whose in ((alice, "bob"), (alice, "alice"), (house.client_of(HIRED), "ops")):
            error = await refused(client.engines.set_quota(tenant=whose, quota=t.Quota(calls=9)))
            assert error.reason == "PERMISSION_DENIED"
        assert (
            await refused(alice.engines.list_quotas(tenant="bob"))
        ).reason == "PERMISSION_DENIED"
        assert (
            await refused(house.client_of(RUNTIME).engines.list_quotas())
        ).reason == "PERMISSION_DENIED"
        after = await owner.engines.list_quotas(tenant="bob")
        assert after.tenants[0].stored == t.Quota(calls=3)


async def test_without_credentials_every_caller_owns_the_server(tmp_path: Path) -> None:
    async with living(tmp_path) as house:
        await house.client.engines.set_quota(tenant="default", quota=t.Quota(streams=4))
        [own] = (await house.client.engines.list_quotas()).tenants
        assert own.stored == t.Quota(streams=4)


async def test_there_is_a_most_of_stored_quotas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "MAX_STORED", 1)
    async with living(tmp_path, token=OWNER, **OWNED) as house:
        for _ in range(2):  # to replace one is to add none
            await house.client.engines.set_quota(tenant="bob", quota=t.Quota(calls=3))
        error = await refused(
            house.client.engines.set_quota(tenant="carol", quota=t.Quota(calls=3))
        )
        assert (error.reason, error.metadata["limit"]) == ("TOO_LARGE", "1")


async def test_a_row_that_cannot_be_read_costs_its_tenant_alone(tmp_path: Path) -> None:
    async with living(tmp_path, token=OWNER, **OWNED) as house:
        await house.client.engines.set_quota(tenant="bob", quota=t.Quota(calls=3))
        await house.app.store.quotas.put("alice", b'{"calls": "many"}')
        with capture_logs() as logs:
            await house.restart()
        assert [line["tenant"] for line in logs if line["event"] == "quota_unreadable"] == ["alice"]
        found = (await house.client.engines.list_quotas(tenant="bob")).tenants[0]
        assert found.stored == t.Quota(calls=3)


async def test_the_audit_names_who_set_what_for_whom(tmp_path: Path) -> None:
    async with living(tmp_path, token=OWNER, **OWNED) as house:
        with capture_logs() as logs:
            await house.client.engines.set_quota(tenant="bob", quota=t.Quota(calls=3))
    [line] = [line for line in logs if line["event"] == "quota_set"]
    assert (line["caller"], line["tenant"], line["of"]) == ("ops laptop", "ops", "bob")
    assert line["quota"] == {"calls": 3}


async def using(client: AsyncClient, tenant: str, waits: int) -> t.TenantUsage:
    """What a tenant holds, once it waits so often."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            [found] = (await client.engines.list_quotas(tenant=tenant)).tenants
            if found.usage.waits == waits:
                return found.usage
            await asyncio.sleep(0.01)


async def test_operators_see_what_their_tenant_holds_and_the_owner_what_all_do(
    tmp_path: Path,
) -> None:
    async with living(tmp_path, token=ALICE, **OWNED) as house:
        await house.client.ingest(ref("quiet"), user("hello"))
        waiting = never(house, 3)
        owner, bob = house.client_of(OWNER), house.client_of(BOB)
        used = await using(owner, "alice", 3)
        assert (used.calls, used.streams) == (0, 0)
        mine = await house.client.get_status(ref("quiet"))
        assert (mine.tenant_usage.waits, mine.tenant_usage.calls) == (3, 1)
        hired = await house.client_of(RUNTIME).get_status(ref("quiet"))
        assert not hired.HasField("tenant_usage")
        told = {who: await check(client) for who, client in (("owner", owner), ("bob", bob))}
        assert "alice: calls 0, long_calls 0, streams 0, waits 3" in told["owner"].found
        assert "alice" not in told["bob"].found
        assert "bob: calls 1" in told["bob"].found
        snapshot = house.app.metrics.snapshot()
        assert snapshot["contextengine.tenants.active{kind=waits}"] == 1
        assert snapshot["contextengine.tenants.most_held{kind=waits}"] == 3
        await owner.engines.set_quota(tenant="alice", quota=t.Quota(waits=3))
        full = await check(owner)
        assert full.status == t.DoctorResponse.STATUS_WARNING
        assert "alice" in full.advice
        await gone(waiting)


async def check(client: AsyncClient) -> t.DoctorResponse.Check:
    """What doctor says of tenants."""
    return next(one for one in (await client.engines.doctor()).checks if one.name == "tenants")


async def test_a_runtime_reads_nothing_of_tenants(tmp_path: Path) -> None:
    async with living(tmp_path, token=RUNTIME, **OWNED) as house:
        assert (await check(house.client)).found == "what was found is for operators"


async def test_who_goes_away_leaves_nothing_stored_that_is_not_in_force(tmp_path: Path) -> None:
    house: House
    async with living(tmp_path, token=OWNER, **OWNED) as house:
        for number in range(1, 20):
            call = asyncio.ensure_future(
                house.client.engines.set_quota(tenant="bob", quota=t.Quota(calls=number))
            )
            await asyncio.sleep(0)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        await house.client.engines.set_quota(tenant="carol", quota=t.Quota(calls=1))
        stored = await house.app.store.quotas.rows()
        told = (await house.client.engines.list_quotas(tenant="bob")).tenants[0]
        if told.HasField("stored"):
            assert b"%d" % told.stored.calls in stored["bob"]
        else:
            assert "bob" not in stored
