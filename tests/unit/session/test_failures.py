"""Failures of engines belong to the tenant that met them, and go when what failed succeeds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.engines.failure import EngineBroken
from contextengine_server.session.failures import (
    MAX_REASON,
    Failure,
    Failures,
    engine_failed,
    how,
    reason,
)

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


@pytest.mark.parametrize(
    ("error", "said", "law"),
    [
        (EngineBroken("mine", "law 5: 7 tokens too many", law=5), "law 5: 7 tokens too many", "5"),
        (ValueError("of a user's text"), "ValueError", None),
    ],
)
def test_a_caller_is_told_of_engine_operation_and_law(
    error: Exception, said: str, law: str | None
) -> None:
    """And nothing of what the engine said, which may be a user's text."""
    failed = engine_failed("mine", "assemble", error, "assign another")
    known = {"engine": "mine", "operation": "assemble", "how": said}
    assert failed.metadata == (known if law is None else {**known, "law": law})
    assert str(failed) == f"engine 'mine' failed to assemble: {said}: assign another"


def test_an_operator_is_told_what_the_engine_said_without_secrets() -> None:
    key = "sk-proj-" + "a1B2" * 12
    assert reason(ValueError(f"key {key} of x")).startswith("ValueError: key ")
    assert key not in reason(ValueError(f"key {key} of x"))
    broken = EngineBroken("mine", "law 5: too many", law=5)
    assert reason(broken) == how(broken) == "law 5: too many"
    broken.__cause__ = ValueError("why")
    assert reason(broken) == "law 5: too many: why"
    assert len(reason(ValueError("x" * 10_000))) == MAX_REASON
