"""Harnesses that are attached to other servers over the same store: who they are, as those servers
said last, and what is told to whoever they are attached to.

The rows of jobs are the truth: what is told here only has servers look at them, and whoever hears
nothing looks a little later. On a store that no other server has open there is nobody, and nothing
is told.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from contextengine_server.store.model_jobs import ModelJob
from contextengine_server.telemetry.events import Events

from .streams import Harness

OFFERED = "job_offered"
"""A job is there that nobody works on: those to whom a harness that suits is attached look."""
ANSWERED = "job_answered"
"""A job has a result: who waits for it looks."""
WITHDRAWN = "job_withdrawn"
"""A job is not wanted any more: who was handed it is told."""
LENDERS = "lenders"
"""Harnesses have come or gone: who wants to know of them looks."""


class Lending(msgspec.Struct, frozen=True, order=True):
    """Harnesses of a tenant that take the same work, on one server."""

    tenant: str
    agent: str = ""
    models: tuple[str, ...] = ()
    most_tokens: int = 0
    count: int = 1

    @property
    def harness(self) -> Harness:
        """One of them."""
        return Harness("", self.agent, self.models, 1, self.most_tokens)


class Elsewhere:
    """What this server knows of the harnesses of others, and how it tells those of jobs."""

    def __init__(self) -> None:
        self._known: dict[str, list[Lending]] = {}
        """By tenant."""
        self._events: Events | None = None

    def share(self, events: Events) -> None:
        """From now on others are told, over events that all servers exchange."""
        self._events = events

    def learn(self, lendings: Iterable[Lending]) -> None:
        """Who is attached to others now."""
        known: dict[str, list[Lending]] = {}
        for one in lendings:
            known.setdefault(one.tenant, []).append(one)
        self._known = known

    def suited(self, tenant: str, agent: str, model: str = "", tokens: int = 0) -> list[Harness]:
        """The harnesses that take such work, one for each kind of them."""
        found = (one.harness for one in self._known.get(tenant, ()))
        return [harness for harness in found if harness.suits(agent, model, tokens)]

    def count(self, tenant: str) -> int:
        """How many harnesses of the tenant there are."""
        return sum(one.count for one in self._known.get(tenant, ()))

    def offered(self, job: ModelJob) -> None:
        """Tells others that a job is there."""
        self._tell(OFFERED, tenant=job.tenant, agent=job.agent)

    def answered(self, tenant: str, job_id: str) -> None:
        """Tells others that something became of a job."""
        self._tell(ANSWERED, tenant=tenant, job=job_id)

    def withdrawn(self, tenant: str, job_id: str, reason: str) -> None:
        """Tells others that a job is not wanted any more. `reason`: a text of ours."""
        self._tell(WITHDRAWN, tenant=tenant, job=job_id, reason=reason)

    def lenders_changed(self) -> None:
        """Tells others that harnesses have come or gone here."""
        self._tell(LENDERS)

    def _tell(self, name: str, **attributes: str) -> None:
        if self._events is not None:
            self._events.tell_servers(name, **attributes)
