"""The harnesses that lend their models, and how long each is waited for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from contextengine_server.config.settings import Settings
from contextengine_server.context.scope import Scope
from contextengine_server.engines.host_capabilities import LENDS_IN_MAINTAIN
from contextengine_server.health.lenders import Lenders
from contextengine_server.runtime.broker import Harnesses, Terms
from contextengine_server.runtime.elsewhere import ANSWERED, LENDERS, OFFERED, WITHDRAWN
from contextengine_server.runtime.visits import SessionName, Visits
from contextengine_server.runtime.wanted import WantedJobs
from contextengine_server.session.state import SessionState
from contextengine_server.store.protocols import Store
from contextengine_server.summarize.models.runtime import NAME
from contextengine_server.telemetry.events import FOR_SERVERS, Event

MILLISECOND = timedelta(milliseconds=1)


def harnesses_of(
    settings: Settings,
    store: Store,
    clock_ms: Callable[[], int],
    new_id: Callable[[], str],
) -> Harnesses:
    """Who knows them."""
    runtime = settings.summarizer.runtime
    terms = Terms(runtime.timeout // MILLISECOND, runtime.lease // MILLISECOND, runtime.attempts)
    visits = visits_of(settings, store)
    return Harnesses(store.model_leases, clock_ms, new_id, terms, visits)


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


def hearing(
    harnesses: Harnesses, wanted: WantedJobs, lenders: Lenders
) -> Callable[[Event | None], None]:
    """Hears what other servers tell of harnesses and jobs; None: something was missed, so all
    look."""

    def heard(event: Event | None) -> None:
        name, said = "", dict[str, str]()
        if event is not None:
            name = event.name.removeprefix(FOR_SERVERS)
            # Servers of before name tenant and agent as other events do.
            said = {"tenant": event.tenant, "agent": event.agent, **event.attributes}
        if event is None:
            harnesses.missed()
            wanted.look()
            lenders.look()
        elif name == OFFERED:
            harnesses.offered(said["tenant"], said["agent"])
        elif name == ANSWERED:
            wanted.look(said["tenant"], said["job"])
        elif name == WITHDRAWN:
            harnesses.withdrawn(said["tenant"], said["job"], said["reason"])
        elif name == LENDERS:
            lenders.look()

    return heard
