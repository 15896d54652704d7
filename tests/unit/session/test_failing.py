"""An engine that fails while it assembles: what was sent along stays stored, and the answer follows
`on_engine_failure`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from contextengine_server.context.plan import Plan, Reshaped
from contextengine_server.context.scope import Scope
from contextengine_server.context.view import View
from contextengine_server.engines.dag import DagOptions
from contextengine_server.engines.legacy import LegacyEngine
from contextengine_server.engines.registration import Registration
from contextengine_server.errors import EngineFailed
from contextengine_server.session.address import Ref
from contextengine_server.session.assembly.assembly import DEGRADED, OVER_BUDGET, AssembleCall
from contextengine_server.session.assembly.budget import BudgetSpec
from contextengine_server.session.assembly.treatment import Treatment
from tests.integration.engines.broken import FRAGILE, SAID, SECRET, Fragile
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import TENANT, Server, scope, spoken, texts_of


class Astray(Fragile):
    """Gives a form to a step that is not there."""

    id = "astray"

    def plan(self, view: View, budget: int, reserved: int = 0) -> Plan:
        return Plan((Reshaped(view.steps, view.steps, "x", {}),))


IN_ASSEMBLE = ["reach", "addition", "plan", "due", "no plan", "nothing", "twice"]


@pytest.fixture(autouse=True)
def mended() -> Iterator[None]:
    """Engines work unless a test says otherwise."""
    Fragile.how = ""
    yield
    Fragile.how = ""


async def fragile(serve: Serve, policy: str) -> Server:
    server = await serve(engines=[FRAGILE], **{"engine.on_engine_failure": policy})
    await server.engines.assign.run(scope(), "fragile", {}, clear=False)
    await server.ingest("a", "b")
    return server


@pytest.mark.parametrize("how", IN_ASSEMBLE)
async def test_closed_it_is_told_and_what_came_along_is_stored(serve: Serve, how: str) -> None:
    server = await fragile(serve, "fail_closed")
    Fragile.how = how
    with pytest.raises(EngineFailed) as refused:
        await server.assemble(ingest=spoken("c"))
    assert refused.value.metadata["engine"] == "fragile"
    assert refused.value.metadata["operation"] == "assemble"
    assert str(refused.value).startswith("engine 'fragile' failed to assemble: ")
    assert str(refused.value).endswith("assign another engine or set engine.on_engine_failure")
    assert SECRET not in str(refused.value) + str(refused.value.metadata)
    assert SAID not in str(refused.value) + str(refused.value.metadata)
    (told,) = server.events("engine:failed")
    assert (told.session, told.attributes["engine"]) == ("s1", "fragile")
    assert told.attributes["operation"] == "assemble"
    Fragile.how = ""
    assert await server.shown(ingest=spoken("c")) == ["a", "b", "c"]


@pytest.mark.parametrize("how", IN_ASSEMBLE)
async def test_else_another_stands_in_and_the_answer_says_so(serve: Serve, how: str) -> None:
    server = await fragile(serve, "legacy")
    Fragile.how = how
    done = await server.assemble(ingest=spoken("c"))
    assert (done.outcome, done.outcome_reason) == (DEGRADED, "ENGINE_FALLBACK")
    assert (done.engine.id, done.selected.engine.id) == ("legacy", "fragile")
    assert [one.sequence for one in done.stored] == [3]
    assert done.joined.total == 3
    assert not done.due
    assert (await server.assemble(3)).outcome == OVER_BUDGET
    assert len(server.events("engine:failed")) == 2
    Fragile.how = ""
    assert (await server.assemble()).outcome_reason == ""


async def test_one_that_stands_in_shows_a_list_of_the_harness(serve: Serve) -> None:
    server = await fragile(serve, "legacy")
    Fragile.how = "plan"
    live = spoken("b", "c")
    assert await server.shown(live=live) == ["a", "b"]
    assert await server.shown(live=live, store_new=True) == ["a", "b", "c"]
    apart = await server.assemble(live=spoken("x", "y", ids=False))
    assert (apart.outcome, apart.outcome_reason) == (DEGRADED, "UNALIGNED")
    assert apart.joined.total == 2


async def test_nothing_is_read_where_there_is_no_scope(serve: Serve) -> None:
    server = await fragile(serve, "legacy")
    await server.engines.assign.run(Scope(TENANT, "", ""), "fragile", {}, clear=False)
    Fragile.how = "plan"
    call = AssembleCall(TENANT, Ref(""), ingest=spoken("x"), budget=BudgetSpec(message_tokens=100))
    done = await server.core.assembler.assemble(call, None)
    assert (done.outcome, done.outcome_reason) == (DEGRADED, "INCOMPLETE_SCOPE")
    assert (done.engine.id, done.joined.total) == ("legacy", 1)
    assert await server.stored() == ["a", "b"]


async def test_a_plan_over_steps_that_are_not_there_breaks_a_law(serve: Serve) -> None:
    server = await serve(engines=[Registration("astray", DagOptions, Astray, "plugin:test")])
    await server.engines.assign.run(scope(), "astray", {}, clear=False)
    await server.ingest("a", "b")
    with pytest.raises(EngineFailed, match=r"law 1 \(pairs\): step 2 does not exist") as refused:
        await server.assemble()
    assert refused.value.metadata["law"] == "1"
    (told,) = server.events("engine:failed")
    assert told.attributes["engine"] == "astray"


async def test_an_engine_that_cannot_be_made_is_told_or_stood_in_for(serve: Serve) -> None:
    def refuses(options: DagOptions) -> Fragile:
        raise RuntimeError("no licence")

    server = await serve(engines=[FRAGILE])
    await server.engines.assign.run(scope(), "fragile", {"freshTailTurns": 7}, clear=False)
    refusing = replace(FRAGILE, make=refuses)
    again = await serve(engines=[refusing])
    other = await serve(engines=[refusing], **{"engine.on_engine_failure": "legacy"})
    with pytest.raises(EngineFailed) as refused:
        await again.ingest("a")
    assert refused.value.metadata["operation"] == "load"
    assert again.core.selection.failures.of(TENANT, "fragile") is not None
    await other.ingest("a")
    selected = await other.core.selection.engine_for(scope())
    assert (selected.engine.id, selected.chosen, selected.source) == (
        "legacy",
        "fragile",
        "session",
    )
    (told,) = other.events("engine:failed")[:1]
    assert told.attributes["operation"] == "load"


async def test_where_the_one_that_stands_in_fails_as_well_both_are_named(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(engine: LegacyEngine, view: View, cell: int, reserved: int = 0) -> Plan:
        raise RuntimeError(SECRET)

    server = await fragile(serve, "legacy")
    monkeypatch.setattr(LegacyEngine, "plan", fails)
    Fragile.how = "plan"
    with pytest.raises(EngineFailed) as refused:
        await server.assemble()
    assert refused.value.metadata == {"engine": "fragile", "operation": "assemble", "how": "Boom"}
    assert str(refused.value) == (
        "engine 'fragile' failed to assemble: Boom: 'legacy', which was to stand in, failed as"
        " well: RuntimeError"
    )


@pytest.mark.parametrize("store_new", [True, False])
async def test_what_is_not_kept_is_shown_by_the_one_that_stands_in(
    serve: Serve, store_new: bool
) -> None:
    """Also the list of a harness that has nothing in common with what is stored."""
    server = await fragile(serve, "legacy")
    more: dict[str, Any] = {"treatment": Treatment.STATELESS}
    said = "SESSION_STATELESS" if store_new else ""
    for how in ("", "plan"):
        Fragile.how = how
        behind = await server.assemble(live=spoken("a", "b", "c"), store_new=store_new, **more)
        assert texts_of(behind) == ["a", "b", "c"]
        assert behind.outcome_reason == (said or ("ENGINE_FALLBACK" if how else ""))
        apart = await server.assemble(live=spoken("x", ids=False), store_new=store_new, **more)
        assert texts_of(apart) == ["x"]
        assert apart.outcome_reason == (said or "UNALIGNED")
    brought = await server.assemble(ingest=spoken("c"), **more)
    assert (texts_of(brought), brought.outcome_reason) == (["a", "b", "c"], "SESSION_STATELESS")
    assert await server.stored() == ["a", "b"]
