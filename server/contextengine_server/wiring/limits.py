"""What settings let tenants have: quotas of what is held at once, and retention."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from contextengine_server.commands.sessions.prune import Prune, Pruner, RetentionRule, erasing
from contextengine_server.config.policy import MILLISECOND
from contextengine_server.config.settings import Settings
from contextengine_server.context.scope import Scope
from contextengine_server.engines.patterns import glob_matches
from contextengine_server.fairness.quota import Quota, QuotaRule, TenantQuotas
from contextengine_server.health.quota import DiskCap, Quotas
from contextengine_server.session.sweeper import Sweeper
from contextengine_server.wiring.commands import delete_command
from contextengine_server.wiring.core import Core


def quotas_of(settings: Settings) -> TenantQuotas:
    """What tenants may hold, as the settings say."""
    rules = [
        QuotaRule(rule.tenant, Quota(**rule.model_dump(exclude={"tenant"})))
        for rule in settings.server.quotas
    ]
    return TenantQuotas(rules, glob_matches)


def retention_sweepers(
    settings: Settings,
    core: Core,
    full: dict[str, tuple[int, int]],
    servers: Callable[[], int],
) -> Sequence[Sweeper]:
    """What erases sessions by rule, and what measures tenants; where either is wanted. `servers`:
    how many share the store."""
    retention, sweepers = settings.retention, list[Sweeper]()
    if retention.rules and retention.interval is not None:
        erase = erasing(delete_command(core))
        prune = Prune(core.store, retention_rules_of(settings), core.clock_ms, erase)
        every_s = retention.interval.total_seconds()
        sweepers.append(Pruner(prune, every_s, dry_run=retention.dry_run))
    if retention.caps:
        caps = [DiskCap(cap.tenant, cap.max_bytes) for cap in retention.caps]
        sweepers.append(Quotas(core.store, caps, full, servers))
    return sweepers


def measuring(sweepers: Sequence[Sweeper]) -> Callable[[Scope], None]:
    """Has the tenant of a session measured anew that was erased elsewhere, where caps hold."""
    measures = [sweeper for sweeper in sweepers if isinstance(sweeper, Quotas)]

    def erased(scope: Scope) -> None:
        for one in measures:
            one.erased([scope])

    return erased


def retention_rules_of(settings: Settings) -> list[RetentionRule]:
    """Which sessions are kept for how long."""
    rules = []
    for rule in settings.retention.rules:
        age_ms = None if rule.max_age is None else rule.max_age // MILLISECOND
        fields = rule.model_dump(exclude={"max_age"})
        rules.append(RetentionRule(**fields, max_age_ms=age_ms))
    return rules
