"""`quotas`: what tenants may hold of a server at once, and what they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contextengine_server.cli.connection import Where, connected
from contextengine_server.cli.output import CommandFailed, plain, print_json, print_table, size

if TYPE_CHECKING:
    from contextengine.types import TenantQuota

KINDS = ("calls", "long_calls", "streams", "waits")


async def list_quotas(where: Where, tenant: str, json: bool) -> None:
    """Prints tenants with their quotas."""
    async with connected(where) as client:
        reply = await client.engines.list_quotas(tenant=tenant)
    if json:
        print_json(plain(reply))
        return
    _print(reply.tenants)


async def set_quota(where: Where, tenant: str, given: dict[str, float | None], json: bool) -> None:
    """Stores a quota, and prints what holds then."""
    from contextengine.types import Quota

    values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if not values:
        raise CommandFailed(
            "say what to set: --weight, --calls, --long-calls, --streams or --waits", 2
        )
    await _put(where, json, tenant=tenant, quota=Quota(**values))


async def unset_quota(where: Where, tenant: str, json: bool) -> None:
    """Removes what is stored, and prints what holds then."""
    await _put(where, json, tenant=tenant, clear=True)


async def _put(where: Where, json: bool, **given: Any) -> None:
    async with connected(where) as client:
        reply = await client.engines.set_quota(**given)
    if json:
        print_json(plain(reply))
        return
    _print([reply.tenant])


def _print(tenants: Any) -> None:
    head = ("tenant", "stored", "#weight", *(f"#{kind.replace('_', ' ')}" for kind in KINDS))
    print_table((*head, "#waiting", "#bytes in flight"), map(_row, tenants))


def _row(tenant: TenantQuota) -> tuple[object, ...]:
    """What it holds of what it may."""
    may, use = tenant.in_force, tenant.usage
    held = (
        f"{getattr(use, kind)} of {getattr(may, kind) if may.HasField(kind) else 'any'}"
        for kind in KINDS
    )
    return (
        tenant.tenant,
        "yes" if tenant.HasField("stored") else "",
        f"{may.weight:g}" if may.HasField("weight") else "1",
        *held,
        use.waiting_calls,
        size(use.bytes_in_flight),
    )
