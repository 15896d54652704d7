"""Failures of engines belong to the tenant that met them, and go when what failed succeeds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.session.failures import Failure, Failures

names = st.sampled_from(["alice", "bob", "carol"])
engines = st.sampled_from(["dag", "legacy"])
operations = st.sampled_from(["assemble", "compact"])
events = st.lists(
    st.tuples(st.sampled_from(["fails", "succeeds", "cleared"]), names, engines, operations),
    max_size=40,
)


def failure(tenant: str, engine: str, operation: str) -> Failure:
    return Failure(engine, operation, f"law 5: 7 of {tenant}", f"7 of {tenant}", 1)


@given(events)
def test_a_tenant_is_told_of_its_own_failures_and_of_all_of_them(
    events: list[tuple[str, str, str, str]],
) -> None:
    kept = Failures()
    first: dict[tuple[str, str], tuple[str, int]] = {}
    for what, tenant, engine, operation in events:
        key = (tenant, engine)
        if what == "fails":
            kept.note(tenant, failure(tenant, engine, operation))
            at, count = first.get(key, (operation, 0))
            first[key] = (at, count + 1)
        elif what == "succeeds":
            kept.succeeded(tenant, engine, operation)
            if first.get(key, ("", 0))[0] == operation:
                del first[key]
        else:
            kept.clear(tenant)
            first = {known: told for known, told in first.items() if known[0] != tenant}
    for tenant in ("alice", "bob", "carol"):
        told = kept.of_tenant(tenant)
        assert {one.engine_id: (one.operation, one.count) for one in told} == {
            engine: known for (owner, engine), known in first.items() if owner == tenant
        }
        assert all(tenant in one.how and tenant in one.reason for one in told)
        assert [kept.of(tenant, one.engine_id) for one in told] == told


@given(st.lists(st.tuples(st.integers(0, 50), engines), max_size=60))
def test_no_number_of_tenants_fills_the_memory(failing: list[tuple[int, str]]) -> None:
    kept = Failures(most=8)
    for number, engine in failing:
        kept.note(f"t{number}", failure(f"t{number}", engine, "assemble"))
        assert kept.of(f"t{number}", engine) is not None, "the newest is there"
    assert sum(len(kept.of_tenant(f"t{number}")) for number in range(51)) <= 8
