"""What one of several servers gives out of what is granted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.fairness.quota import MOST, Quota, QuotaRule, TenantQuotas
from contextengine_server.fairness.share import Share


@given(whole=st.integers(1, MOST), servers=st.integers(1, 200))
def test_the_parts_are_the_whole(whole: int, servers: int) -> None:
    parts = [Share(place, servers).of(whole) for place in range(servers)]
    assert sum(parts) == max(whole, servers)
    assert max(parts) - min(parts) <= 1
    assert min(parts) >= 1


def test_a_server_gives_out_its_part_from_the_next_call_on() -> None:
    quotas = TenantQuotas([QuotaRule("acme", Quota(weight=2.0, calls=10, waits=3))])
    assert quotas.here("acme") == quotas.of("acme")
    quotas.shared(1, 4)
    assert quotas.here("acme") == Quota(weight=2.0, calls=3, waits=1)
    assert quotas.of("acme") == Quota(weight=2.0, calls=10, waits=3)
    quotas.replace({"acme": Quota(calls=100)})
    assert quotas.here("acme") == Quota(weight=2.0, calls=25, waits=1)
    assert quotas.here("other") == Quota()
    quotas.shared(0, 1)
    assert quotas.here("acme").calls == 100
