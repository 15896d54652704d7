"""What a tenant may hold: its row over the first rule that names it, field by field."""

from __future__ import annotations

from contextengine_server.engines.patterns import glob_matches
from contextengine_server.fairness.quota import Quota, QuotaRule, TenantQuotas

RULES = (
    QuotaRule("acme", Quota(weight=2.0, calls=10)),
    QuotaRule("**", Quota(streams=5)),
)


def test_the_first_rule_that_names_a_tenant_is_its_own():
    quotas = TenantQuotas(RULES, glob_matches)
    assert quotas.of("acme") == Quota(weight=2.0, calls=10)
    assert quotas.of("other") == Quota(streams=5)
    assert (quotas.weight("acme"), quotas.weight("other")) == (2.0, 1.0)


def test_a_row_goes_over_the_rule_field_by_field_and_at_once():
    quotas = TenantQuotas(RULES, glob_matches)
    assert quotas.of("acme").most("calls") == 10
    quotas.replace({"acme": Quota(calls=3, waits=1)})
    assert quotas.of("acme") == Quota(weight=2.0, calls=3, waits=1)
    quotas.replace({})
    assert quotas.of("acme").most("calls") == 10


def test_without_either_nothing_is_limited():
    quotas = TenantQuotas()
    assert quotas.of("anyone") == Quota()
    assert quotas.of("anyone").most("waits") is None
    assert quotas.weight("anyone") == 1.0


def test_a_crowd_of_tenants_is_not_remembered_without_end():
    quotas = TenantQuotas(RULES, glob_matches)
    for number in range(10_000):
        quotas.of(f"tenant{number}")
    assert len(quotas._known) <= 4_096
