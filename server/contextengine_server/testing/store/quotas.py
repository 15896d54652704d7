"""What the server's owner sets for tenants: replaced whole, there after a restart, and not a
tenant's to erase."""

from __future__ import annotations

from contextengine_server.store.protocols import Store

from .case import Reopen, StoreCase


class QuotaCases(StoreCase):
    """What the server's owner sets for tenants."""

    async def test_a_quota_is_put_replaced_and_removed(self, store: Store) -> None:
        assert await store.quotas.rows() == {}
        await store.quotas.put("beta", b"1")
        await store.quotas.put("acme", b"2")
        await store.quotas.put("beta", b"3")
        assert list((await store.quotas.rows()).items()) == [("acme", b"2"), ("beta", b"3")]
        await store.quotas.put("beta", b"")
        await store.quotas.put("nobody", b"")  # removes nothing, and is no error
        assert await store.quotas.rows() == {"acme": b"2"}

    async def test_quotas_outlive_the_process(self, store: Store, reopen: Reopen) -> None:
        await store.quotas.put("acme", b"\x00\xff")
        again = await reopen()
        assert await again.quotas.rows() == {"acme": b"\x00\xff"}

    async def test_no_tenant_erases_its_quota_with_its_data(self, store: Store) -> None:
        await store.quotas.put("acme", b"kept")
        await store.forget("acme")
        assert await store.quotas.rows() == {"acme": b"kept"}
