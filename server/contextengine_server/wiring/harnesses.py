"""The harnesses that lend their models, and how long each is waited for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from contextengine_server.config.settings import Settings
from contextengine_server.context.scope import Scope
from contextengine_server.engines.host_capabilities import LENDS_IN_MAINTAIN
from contextengine_server.runtime.broker import Harnesses, Terms
from contextengine_server.runtime.visits import SessionName, Visits
from contextengine_server.session.state import SessionState
from contextengine_server.store.protocols import Store
from contextengine_server.summarize.models.runtime import NAME

MILLISECOND = timedelta(milliseconds=1)


def harnesses_of(
    settings: Settings,
    store: Store,
    clock_ms: Callable[[], int],
    new_id: Callable[[], str],
    draining: Callable[[], bool],
) -> Harnesses:
    """Who knows them. `draining`: whether the server ends."""
    runtime = settings.summarizer.runtime
    terms = Terms(runtime.timeout // MILLISECOND, runtime.lease // MILLISECOND, runtime.attempts)
    visits = visits_of(settings, store)
    return Harnesses(store.model_leases, clock_ms, new_id, terms, visits, draining)


def visits_of(settings: Settings, store: Store) -> Visits:
    """Hosts that said at Bootstrap that they lend their models in Maintain; none where the order
    of summarizers has none of harnesses."""
    asked = NAME in settings.summarizer.order

    async def lends(session: SessionName) -> bool:
        head = await store.head(Scope(*session))
        if head is None or not asked:
            return False
        return LENDS_IN_MAINTAIN in SessionState.decode(head.state).capabilities

    return Visits(lends, settings.summarizer.runtime.wait // MILLISECOND if asked else 0)
