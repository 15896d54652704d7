"""The parts that usage is counted and bounded by, made once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from contextengine_server.session.assembly.budget import BudgetDefaults
from contextengine_server.session.usage.bills import Billing
from contextengine_server.session.usage.guard import TokenGuard
from contextengine_server.session.usage.tools import ToolDeferral
from contextengine_server.store.protocols import Store
from contextengine_server.telemetry.events import Events
from contextengine_server.telemetry.meters import Meters
from contextengine_server.usage.rates import rates_file
from contextengine_server.usage.rules import UsageRules


class UsageParts(msgspec.Struct, frozen=True):
    """What counts usage, and what bounds it."""

    billing: Billing
    guard: TokenGuard
    tools: ToolDeferral


def usage_parts(
    rules: UsageRules,
    engines: Sequence[str],
    budgets: BudgetDefaults,
    store: Store,
    clock_ms: Callable[[], int],
    events: Events,
    meters: Meters,
) -> UsageParts:
    """The parts by the rules. `engines`: the ids that there are. Raises UnusableRates."""

    def named(chosen: Sequence[str]) -> frozenset[str]:
        return frozenset(engines if "*" in chosen else chosen)

    guarded, reserve = named(rules.guarded), budgets.rules.output_reserve
    deferral = rules.deferral
    return UsageParts(
        Billing(rates_file(rules.rates), clock_ms, meters),
        TokenGuard(rules.caps, guarded, reserve, store, clock_ms, events, meters),
        ToolDeferral(deferral, named(deferral.engines), store, budgets),
    )
