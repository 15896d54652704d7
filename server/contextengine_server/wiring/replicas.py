"""What a server does about what happens on others over the same store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from contextengine_server.commands.engines.quotas import Tenants
from contextengine_server.context.scope import Scope
from contextengine_server.runtime.exchange import Exchange
from contextengine_server.telemetry.events import FOR_SERVERS, Event

from .core import Core

GONE = ("session:deleted", "subagent:rolled_back", "subagent:expired")
"""With a session its assignments go."""


def exchange_of(
    core: Core,
    tenants: Tenants,
    name: str,
    erased: Callable[[Scope], None] = lambda scope: None,
    lent: Callable[[Event | None], None] = lambda event: None,
) -> Exchange:
    """Tells others what happens here, and has what is in memory follow what they tell. What a
    session holds is checked against its head by each call, and needs none of this. `erased` hears
    of sessions that others erased, `lent` of what servers tell each other of harnesses and jobs."""
    told = _told(core, tenants, erased, lent)
    return Exchange(core.store.feed, core.events, core.store.clock_ms, name, told)


def _told(
    core: Core,
    tenants: Tenants,
    erased: Callable[[Scope], None],
    lent: Callable[[Event | None], None],
) -> Callable[[Event | None], Awaitable[None]]:
    async def told(event: Event | None) -> None:
        if event is None or event.name.startswith(FOR_SERVERS):
            lent(event)
        if event is None:
            await core.selection.assigned_unheard()
            await tenants.load()
            core.queue.woken.set()
        elif event.name == "engine:assigned" or event.name in GONE:
            await core.selection.assigned_elsewhere(event.tenant)
        elif event.name == "quota:set":
            await tenants.load()
        if event is not None and event.session:
            scope = Scope(event.tenant, event.agent, event.session)
            core.sessions.wake(scope)
            if event.name in GONE:
                erased(scope)

    return told
