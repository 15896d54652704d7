"""Caps of what an agent spends: what passes, what is refused in which words, and who is told."""

from __future__ import annotations

from typing import Any

import pytest

from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.errors import BudgetSpent
from contextengine_server.session.address import Ref
from contextengine_server.session.assembly.budget import SYSTEM, TOOLS, BudgetSpec
from contextengine_server.session.model import Report
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import (
    AGENT,
    S1,
    TENANT,
    Server,
    assistant,
    incoming,
    scope,
    spoken,
)

CAPS: dict[str, Any] = {
    "usage.guard.engines": ["dag"],
    "usage.guard.per_execution": 1_000,
    "usage.guard.per_hour": 3_000,
    "usage.guard.per_day": 5_000,
}
BUDGET = BudgetSpec(message_tokens=400)
RESERVE = 8_192


async def guarded(serve: Serve, **more: Any) -> Server:
    server = await serve(**{**CAPS, **more})
    await server.ingest("a")
    return server


async def spend(server: Server, tokens: int, ref: Ref = S1) -> None:
    report = Report(input_tokens=tokens - 1, output_tokens=1, billed=True)
    await server.context.report_usage.run(TENANT, ref, report, None)


async def refused(server: Server, **more: Any) -> BudgetSpent:
    with pytest.raises(BudgetSpent) as caught:
        await server.assemble(**{"budget": BUDGET, **more})
    return caught.value


def bounded(**more: Any) -> BudgetSpec:
    """A window whose answer takes 100 tokens."""
    given = {"window": 1_000, "output_reserve": 100, "safety_margin": 1, "rot_buffer": 1}
    return BudgetSpec(**{**given, **more})


async def test_a_turn_that_would_take_too_much(serve: Serve) -> None:
    server = await guarded(serve)
    tokens = (await server.assemble(budget=bounded())).tokens
    await spend(server, 900 - tokens)
    await server.assemble(budget=bounded())  # exactly the cap
    await spend(server, 1)
    revision = (await server.head()).revision
    brought = incoming(assistant("", "x"))
    error = await refused(server, budget=bounded(), ingest=brought)
    estimated = tokens + brought[0].tokens + 100
    assert error.metadata == {
        "scope": "per-execution",
        "used": str(901 - tokens),
        "cap": "1000",
        "estimated": str(estimated),
    }
    assert str(error) == (
        f"the agent's per-execution cap of 1,000 tokens leaves no room: {901 - tokens:,} are spent"
        f" and the call would take about {estimated:,}; end the turn: the next user message"
        " begins another execution. Nothing was stored"
    )
    assert error.retry_after_ms is None
    assert (await server.head()).revision == revision
    (told,) = server.events("budget:refused")
    assert told.attributes == {"scope": "per-execution"}
    assert told.counts == {"used": 901 - tokens, "cap": 1_000, "estimated": estimated}
    assert (told.session, told.revision) == ("s1", revision)
    assert server.core.meters.refused["per-execution"].value == 1
    # What a user says next begins another execution.
    done = await server.assemble(budget=bounded(), ingest=spoken("next"))
    assert done.outcome_reason == ""
    assert server.core.meters.refused["per-execution"].value == 1


async def test_an_hour_and_a_day_that_are_full(serve: Serve) -> None:
    server = await guarded(serve, **{"usage.guard.per_execution": 1_000_000})
    tokens = (await server.assemble(budget=bounded())).tokens
    await spend(server, 2_950)
    error = await refused(server, budget=bounded())
    hour = 3_600_000 + 1
    assert error.retry_after_ms == hour
    assert error.metadata == {
        "scope": "per-hour",
        "used": "2950",
        "cap": "3000",
        "estimated": str(tokens + 100),
        "wait_ms": str(hour),
    }
    assert str(error) == (
        "the agent's per-hour cap of 3,000 tokens leaves no room: 2,950 are spent and the call"
        f" would take about {tokens + 100:,}; send the call again in 3600 s. Nothing was stored"
    )
    server.clock.ms += hour
    await server.assemble(budget=bounded())
    await spend(server, 2_000)
    server.clock.ms += hour
    error = await refused(server, budget=bounded())
    assert (error.metadata["scope"], error.metadata["used"]) == ("per-day", "4950")
    assert error.retry_after_ms == 24 * 3_600_000 + 1 - 2 * hour


async def test_a_call_that_no_waiting_helps(serve: Serve) -> None:
    server = await guarded(
        serve, **{"usage.guard.per_execution": 10**6, "usage.guard.per_hour": 50}
    )
    error = await refused(server, budget=bounded())
    assert error.retry_after_ms is None
    assert "wait_ms" not in error.metadata
    assert str(error).endswith(
        "; no waiting helps: send less, or let the operator raise the cap. Nothing was stored"
    )


@pytest.mark.parametrize(
    ("more", "outside"),
    [
        ({}, 0),
        ({"system_prompt": 30, "tools": 12, "named": SYSTEM | TOOLS}, 42),
        ({"system_counted": ReferenceTokens(25)}, 25),
    ],
)
async def test_what_a_call_takes_is_no_less_than_all_that_it_sends(
    serve: Serve, more: dict[str, Any], outside: int
) -> None:
    server = await guarded(serve, **{"usage.guard.per_execution": 150})
    tokens = (await server.store.messages(scope()))[0].tokens
    await spend(server, 149)
    error = await refused(server, budget=bounded(**more))
    assert int(error.metadata["estimated"]) == tokens + outside + 100
    error = await refused(server, budget=bounded(**more), prompt_tokens=ReferenceTokens(7))
    assert int(error.metadata["estimated"]) == tokens + outside + 100 + 7
    # Without a word of the answer it is the reserve; a list of the harness counts where longer.
    error = await refused(server)
    assert int(error.metadata["estimated"]) == tokens + RESERVE
    live = [*spoken("a", "b", "c"), *incoming(assistant("and d"))]
    error = await refused(server, budget=bounded(), live=live)
    assert int(error.metadata["estimated"]) == sum(m.tokens for m in live) + 100


async def test_no_call_takes_more_than_its_budget(serve: Serve) -> None:
    server = await guarded(serve, **{"usage.guard.per_execution": 500})
    await spend(server, 499)
    await server.talk(1, 4)
    await spend(server, 499)
    error = await refused(server, budget=BudgetSpec(message_tokens=400))
    assert int(error.metadata["estimated"]) == 400 + RESERVE


async def test_all_sessions_of_an_agent_count_and_no_other_agent(serve: Serve) -> None:
    server = await guarded(serve, **{"usage.guard.per_execution": 10**6})
    await spend(server, 2_950)
    second, other = Ref(AGENT, "s2"), Ref("other", "s1")
    for ref in (second, other):
        await server.ingest("a", ref=ref)
    with pytest.raises(BudgetSpent):
        await server.assemble(ref=second, budget=bounded())
    await server.assemble(ref=other, budget=bounded())


async def test_engines_that_are_not_watched_spend_freely(serve: Serve) -> None:
    server = await guarded(serve, **{"usage.guard.engines": ["legacy"]})
    await spend(server, 10**6)
    await server.assemble(budget=bounded())
    status = await server.context.get_status.run(TENANT, S1, 0)
    assert status.guarded is None
    everyone = await guarded(serve, **{"usage.guard.engines": ["*"]})
    await refused(everyone, budget=bounded())


async def test_what_is_used_of_the_caps_is_told(serve: Serve) -> None:
    server = await guarded(serve)
    await spend(server, 300)
    server.clock.ms += 3_600_001
    await spend(server, 200)
    use = (await server.context.get_status.run(TENANT, S1, 0)).guarded
    assert use is not None
    assert (use.execution, use.hour, use.day) == (500, 200, 500)
    assert (use.caps.per_execution, use.caps.per_hour, use.caps.per_day) == (1_000, 3_000, 5_000)
    await server.ingest("next")
    use = (await server.context.get_status.run(TENANT, S1, 0)).guarded
    assert use is not None
    assert (use.execution, use.hour) == (0, 200)
