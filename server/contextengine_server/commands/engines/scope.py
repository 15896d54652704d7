"""What a request about engines is for: a tenant, one of its agents, or a session."""

from __future__ import annotations

from contextengine_server.context.scope import Scope
from contextengine_server.session.address import Addresses, Ref


async def scope_of(addresses: Addresses, tenant: str, ref: Ref) -> Scope:
    """The scope that a request names; without a session, that of the agent or the tenant."""
    if ref.session or ref.key:
        return (await addresses.find(tenant, ref)).scope
    return Scope(tenant, ref.agent, "")
