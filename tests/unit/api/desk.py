"""An admission without a server, and calls that ask it."""

from __future__ import annotations

import asyncio
from typing import Any

from contextengine_server.api.pipeline.admission import Admission
from contextengine_server.api.pipeline.limits import Limits
from contextengine_server.errors import DomainError, Overloaded
from contextengine_server.fairness.quota import Quota, TenantQuotas
from contextengine_server.telemetry.metrics import Metrics


class FakeCall:
    """A call of a tenant; `left`: seconds until its deadline."""

    def __init__(self, tenant: str, left: float | None = None) -> None:
        self.tenant, self.left = tenant, left
        self.working = False
        self.turn: asyncio.Future[None] | None = None
        self.stopped: DomainError | None = None

    def stop(self, error: DomainError) -> None:
        self.stopped = error

    def remaining(self) -> float | None:
        return self.left


class Desk:
    """An admission, and what became of those who asked."""

    def __init__(self, quotas: dict[str, Quota] | None = None, **limits: Any) -> None:
        self.metrics = Metrics()
        self.quotas = TenantQuotas()
        self.quotas.replace(quotas or {})
        self.admission = Admission(Limits(**limits), self.metrics, self.quotas)

    def ask(self, tenant: str, kind: str = "calls", left: float | None = None) -> FakeCall:
        call = FakeCall(tenant, left)
        self.admission.enter(call, self.admission.kind_of(kind))
        return call

    def done(self, call: FakeCall, kind: str = "calls", took_s: float | None = None) -> None:
        self.admission.leave(call, self.admission.kind_of(kind), took_s)

    def refused(self, kind: str, reason: str) -> float:
        key = f"contextengine.calls.refused{{kind={kind},reason={reason}}}"
        return self.metrics.snapshot()[key]


def told(call: FakeCall) -> Overloaded | None:
    """What a call that waited heard."""
    if call.turn is None or not call.turn.done():
        return None
    error = call.turn.exception()
    assert error is None or isinstance(error, Overloaded)
    return error
