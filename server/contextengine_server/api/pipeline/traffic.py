"""What comes and goes at a server: its calls and their bytes, and how much of them is whose."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from contextengine_server.api.pipeline.admission import Admission
from contextengine_server.api.pipeline.bytes_in_flight import ByteLimits, BytesInFlight
from contextengine_server.api.pipeline.in_flight import InFlight
from contextengine_server.api.pipeline.limits import Limits
from contextengine_server.fairness.quota import TenantQuotas
from contextengine_server.fairness.usage import TenantUse
from contextengine_server.telemetry.metrics import Metrics


class Traffic:
    """The calls and bytes of a server, as `Uses` asks for them. Belongs to one event loop.
    `pressed` says whether memory is short; `hurry` is told whether a call goes before others that
    wait."""

    def __init__(
        self,
        limits: Limits,
        bytes: ByteLimits,
        metrics: Metrics,
        quotas: TenantQuotas | None = None,
        pressed: Callable[[], bool] = bool,
        hurry: Callable[[bool], object] = bool,
    ) -> None:
        self.admission = Admission(limits, metrics, quotas, pressed, hurry)
        self.bytes = BytesInFlight(bytes, metrics, pressed)
        # No tenant is a label: there may be thousands, and they come and go.
        for kind in self.admission.kinds:
            metrics.gauge(
                "contextengine.tenants.active",
                partial(self._active, kind),
                "Tenants that hold calls in flight, by kind",
                {"kind": kind.kind},
                "{tenant}",
            )
            metrics.gauge(
                "contextengine.tenants.most_held",
                partial(self._most, kind),
                "Calls in flight of the tenant that holds the most of them, by kind",
                {"kind": kind.kind},
                "{call}",
            )

    def of(self, tenant: str) -> TenantUse:
        """What a tenant holds now."""
        return TenantUse(**self.admission.held(tenant), bytes_in_flight=self.bytes.of(tenant))

    def tenants(self) -> set[str]:
        """The tenants that hold anything."""
        return self.admission.tenants()

    def _active(self, kind: InFlight) -> int:
        return len(self._held(kind))

    def _most(self, kind: InFlight) -> int:
        return max(self._held(kind), default=0)

    def _held(self, kind: InFlight) -> list[int]:
        """How many of a kind each tenant holds that holds any."""
        held = (self.admission.held(tenant)[kind.kind] for tenant in self.admission.tenants())
        return [count for count in held if count]
