"""With `explain`, one decision for every message of the session. The decisions partition the input
exactly. See docs/semantics.md#outcomes."""

from __future__ import annotations

import pytest

from contextengine import types as t
from tests.integration.harness import House, budget

from .asking import (
    AIRLINE,
    Kind,
    ask,
    assign,
    calls,
    hashes,
    ids_of,
    live,
    quiet,
    reply_with,
    result,
    say,
    store,
    talk,
    transcripts,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


def kinds(reply: t.AssembleResponse) -> dict[str, str]:
    return {
        d.id or str(d.sequence): Kind.Name(d.kind).removeprefix("KIND_") for d in reply.decisions
    }


async def whole(house: House, session: t.SessionRef, reply: t.AssembleResponse) -> None:
    """The decisions cover every message once, in order, and agree with the list."""
    rows = await house.rows(session, as_of_revision=reply.revision)
    assert [d.sequence for d in reply.decisions] == [row.sequence for row in rows]
    assert [(d.id, d.role) for d in reply.decisions] == [
        (row.message.id, row.message.role) for row in rows
    ]
    shown = {d.item_index: d for d in reply.decisions if d.HasField("item_index")}
    for index, item in enumerate(reply.items):
        if item.origin.WhichOneof("kind") == "sequence":
            decision = shown.pop(index)
            assert (decision.sequence, decision.tokens, decision.form) == (
                item.origin.sequence,
                item.tokens,
                item.form,
            )
            assert decision.kind in (Kind.KIND_KEPT, Kind.KIND_PINNED)
    assert shown == {}
    summaries = {
        i.origin.summary_id for i in reply.items if i.origin.WhichOneof("kind") == "summary_id"
    }
    for decision in reply.decisions:
        assert decision.rule
        if not decision.HasField("item_index"):
            assert decision.tokens == 0
            assert decision.kind in (Kind.KIND_EVICTED, Kind.KIND_SUMMARIZED, Kind.KIND_DROPPED)
        if decision.kind == Kind.KIND_SUMMARIZED:
            assert decision.summary_id in summaries
    counted = [d.kind for d in reply.decisions]
    assert reply.metrics.messages_evicted == counted.count(Kind.KIND_EVICTED)
    synthetic = [i for i in reply.items if i.origin.WhichOneof("kind") == "synthetic"]
    assert reply.metrics.synthetic_results == len(synthetic)


@pytest.mark.parametrize("engine", ["dag", "legacy"])
@pytest.mark.parametrize("size", [100, 900, 1_800, 20_000])
async def test_the_decisions_partition_the_session(
    shared: House, session: t.SessionRef, engine: str, size: int
) -> None:
    await assign(shared, session, engine)
    odd = [
        result("o1", "nobody"),
        calls("a1", "c1", "c2"),
        result("r1", "c1"),
        say("u2"),
        result("r2", "c2"),
    ]
    messages = [*talk(20, 40), *odd, calls("a3", "c3"), reply_with("a4"), result("o2", "c1")]
    await store(shared, session, messages)
    await quiet(shared, session)
    await whole(shared, session, await ask(shared, session, budget=budget(size), explain=True))
    await shared.client.compact(session, force=True, budget=budget(1_200))
    reply = await ask(shared, session, budget=budget(size), explain=True)
    await whole(shared, session, reply)
    plain = await ask(shared, session, budget=budget(size))
    assert (hashes(plain), len(plain.decisions)) == (hashes(reply), 0)


async def test_every_airline_session(shared: House) -> None:
    for name, messages in transcripts(AIRLINE, every=12).items():
        session = t.SessionRef(agent_id="agent", session_id=name)
        await store(shared, session, messages)
        await quiet(shared, session)
        for size in (1_000, 2_500):
            await whole(
                shared, session, await ask(shared, session, budget=budget(size), explain=True)
            )


async def test_what_is_decided(shared: House, session: t.SessionRef) -> None:
    pin = reply_with("pin")
    pin.labels["pinned"] = "yes"
    policy = t.Message(id="policy", role=t.ROLE_SYSTEM, parts=say("policy").parts)
    step = [
        result("orphan", "nobody"),
        calls("open", "c1", "c2"),
        result("r1", "c1"),
        result("again", "c1"),
    ]
    carrier = t.Message(
        id="carrier",
        role=t.ROLE_CUSTOM,
        custom_role="custom",
        parts=say("carrier").parts,
        labels={"excluded": "true"},
    )
    step.insert(2, carrier)
    await store(shared, session, [policy, pin, *talk(20, 60), *step, say("u9"), reply_with("a9")])
    await quiet(shared, session)
    reply = await ask(shared, session, budget=budget(1_200), explain=True)
    said = kinds(reply)
    assert (said["policy"], said["pin"]) == ("PINNED", "PINNED")
    assert (said["m1"], said["m39"], said["a9"]) == ("EVICTED", "KEPT", "KEPT")
    assert (said["orphan"], said["again"], said["r1"]) == ("DROPPED", "DROPPED", "KEPT")
    opened = next(d for d in reply.decisions if d.id == "open")
    assert opened.synthetic_count == 1
    rules = {d.id: d.rule for d in reply.decisions}
    assert "leads" in rules["policy"]
    assert "pinned" in rules["pin"]
    assert "cut at step" in rules["m1"]
    assert "no open call" in rules["orphan"]
    assert (said["carrier"], rules["carrier"]) == ("DROPPED", "labelled excluded")
    await shared.client.compact(session, force=True, budget=budget(900))
    covered = await ask(shared, session, budget=budget(4_000), explain=True)
    assert kinds(covered)["m1"] == "SUMMARIZED"
    assert kinds(covered)["pin"] == "PINNED"


async def test_a_list_that_is_not_stored(shared: House, session: t.SessionRef) -> None:
    """Messages of the call alone have no sequence; their decisions come behind those of the
    session."""
    await store(shared, session, talk(2))
    reply = await ask(shared, session, live=live([*talk(2), say("new")]), explain=True)
    assert [(d.sequence, d.id) for d in reply.decisions] == [
        (1, "m1"),
        (2, "m2"),
        (3, "m3"),
        (4, "m4"),
        (0, "new"),
    ]
    assert ids_of(reply.items) == [d.id for d in reply.decisions]


@pytest.mark.parametrize("engine", ["dag", "legacy"])
async def test_a_message_with_results_for_several_steps(
    shared: House, session: t.SessionRef, engine: str
) -> None:
    """It stands behind each of their calls, and is one message all the same."""
    await assign(shared, session, engine)
    await quiet(shared, session)
    results = [result("", "c1"), result("", "c2"), result("", "c3"), say("")]
    mixed = t.Message(
        id="mixed", role=say("").role, parts=[p for each in results for p in each.parts]
    )
    abandoned = [calls("a1", "c1", "c2"), say("u1", 40), *talk(10, 40), calls("a3", "c3")]
    await store(shared, session, [say("u0"), *abandoned, mixed])
    for size in (20_000, 300):
        reply = await ask(shared, session, budget=budget(size), explain=True)
        assert kinds(reply)["mixed"] == "KEPT"
        rows = await shared.rows(session)
        assert [d.sequence for d in reply.decisions] == [row.sequence for row in rows]


async def test_every_message_counts_once(shared: House, session: t.SessionRef) -> None:
    """What a summary stands for is compacted where it is shown, and evicted where it is not."""
    await quiet(shared, session)
    await store(shared, session, talk(40, 40))
    await shared.client.compact(session, force=True, budget=budget(1_500))
    hidden = 0
    for size in (8_000, 2_000, 1_200, 700, 400, 200):
        reply = await ask(shared, session, budget=budget(size), explain=True)
        shown = len({item.origin.sequence for item in reply.items} - {0})
        said = reply.metrics
        assert shown + said.messages_evicted + said.messages_compacted == 80, size
        hidden += said.messages_evicted > 0
    assert hidden
