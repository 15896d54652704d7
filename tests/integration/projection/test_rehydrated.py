"""What comes back behind a summary, over the wire: in every form, after a restart, in a child."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contextengine import assistant, tool_call, tool_result, user
from contextengine import types as t
from tests.integration.harness import House, budget, ref
from tests.integration.projection.asking import TARGETS, judged, options

RULES = "# Rules\n## Red Lines\nNever push to main.\n"
OBJECTIVE = "Find the leak in the pool."
BUDGET = 20_000


def history() -> list[t.Message]:
    """Turns, files that were read, and more turns."""
    said = []
    for at in range(12):
        said.append(user(f"question {at} " + "why then? " * 150, id=f"u{at}"))
        if at in (3, 4):
            call = tool_call(f"c{at}", "read", {"path": f"src/f{at}.py"})
            said.append(assistant("I look.", tool_calls=[call], id=f"r{at}"))
            said.append(tool_result(f"c{at}", f"def body{at}(): ...", name="read", id=f"t{at}"))
        said.append(assistant(f"answer {at} " + "so it is. " * 150, id=f"a{at}"))
    return said


@pytest.fixture
async def piped(tmp_path: Path) -> AsyncIterator[House]:
    settings: dict[str, Any] = {"engine.default": "pipeline"}
    house = House(tmp_path, **settings)
    await house.start()
    yield house
    await house.stop()


async def assembled(house: House, session: t.SessionRef, **more: Any) -> t.AssembleResponse:
    return await house.client.assemble(session, budget=budget(BUDGET), **more)


async def compacted(house: House, session: t.SessionRef) -> None:
    file = t.WorkspaceFile(path="AGENTS.md", text=RULES)
    await assembled(house, session, ingest=history(), workspace_files=[file], channel_type="thread")
    done = await house.client.compact(session, force=True, budget=budget(BUDGET))
    assert done.compacted, done.reason


@pytest.mark.parametrize("target", TARGETS)
async def test_every_form_shows_it_and_takes_it(piped: House, target: str) -> None:
    await compacted(piped, ref())
    reply = await assembled(
        piped, ref(), objective=OBJECTIVE, ingest=[user("Go on.", id="next")],
        projection=options(target),
    )  # fmt: skip
    assert judged(reply.projection, target) == []
    form = TARGETS[target]
    whole = json.dumps(form.body(reply.projection), ensure_ascii=False)
    for said in ("Never push to main.", "def body4()", OBJECTIVE, "[Resume]", "thread"):
        assert whole.count(said) == 1, said
    again = reply.metrics.rehydrated
    assert (again.sections, again.files, again.stripped) == (1, 2, "")
    made_up = [item.origin.synthetic for item in reply.items if item.origin.synthetic]
    assert made_up == [
        "objective reinforcement",
        "rehydrated after a compaction",
        "resume after a compaction",
    ]


async def test_a_restart_and_a_delta_show_the_same(piped: House) -> None:
    await compacted(piped, ref())
    before = await assembled(piped, ref(), objective=OBJECTIVE)
    await piped.restart()
    after = await assembled(piped, ref(), objective=OBJECTIVE)
    assert after.items == before.items
    assert after.context_projection.epoch == before.context_projection.epoch
    delta = await assembled(
        piped, ref(), objective=OBJECTIVE, ingest=[user("Go on.", id="next")],
        known_context_hash=after.context_hash,
    )  # fmt: skip
    assert delta.cache.delta
    assert [item.message.id for item in delta.items] == ["next"]
    events = {event.name for event in piped.app.core.events._held["default"].events}
    assert "context:rehydrated" in events


async def test_a_child_keeps_the_objective_of_its_spawn_in_sight(piped: House) -> None:
    await piped.client.ingest(ref(), user("Work.", id="work"))
    child = t.SessionRef(agent_id=ref().agent_id, session_id="child")
    spawned = await piped.client.prepare_subagent_spawn(
        ref(), child, objective=OBJECTIVE, context_mode=t.CONTEXT_MODE_ISOLATED
    )
    await piped.client.bootstrap(child, spawn_token=spawned.spawn_token)
    await compacted(piped, child)
    for given, shown in (("", OBJECTIVE), ("Something else.", "Something else.")):
        reply = await assembled(piped, child, objective=given)
        texts = [item.message.parts[0].text.text for item in reply.items if item.origin.synthetic]
        assert texts[0].startswith("[Objective Reinforcement]\n")
        assert shown in texts[0]
