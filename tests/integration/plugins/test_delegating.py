"""An engine in the directory of plugins that does not own compaction: the host compacts where it
can, the built-in compaction does where it cannot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from contextengine import types as t
from contextengine_server.plugins.engines import installed_engines
from tests.integration.harness import House, budget, house, ref, texts
from tests.integration.plugins.field import installed, single
from tests.integration.plugins.test_hermes import turns

SOURCE = """\
from contextengine_server.context.lawful import fitting, plan_of
from contextengine_server.engines.base import BaseEngine
from contextengine_server.engines.delegation import delegate_compaction_to_runtime
from contextengine_server.engines.options import Options
from contextengine_server.engines.registration import Registration


class Delegating(BaseEngine):
    id, name, owns_compaction = "delegating", "Shows, and leaves compaction to its host", False

    def plan(self, view, budget, reserved=0):
        shown = fitting(view, budget - reserved, 1)
        return plan_of(view, shown.ranges, shown.summaries, rule=shown.rule, over=shown.over)

    def compaction(self, view, goal):
        return delegate_compaction_to_runtime(view, goal)


ENGINE = Registration("delegating", Options, Delegating)
"""


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[House]:
    installed_engines.cache_clear()
    where = installed(tmp_path, single("delegating-plugin", SOURCE))
    settings = {"plugins.directory": where, "engine.default": "delegating"}
    async with house(tmp_path, **settings) as made:
        yield made


@pytest.fixture(autouse=True)
def looked_for_anew() -> Iterator[None]:
    yield
    installed_engines.cache_clear()


@pytest.mark.parametrize("can", [True, False])
async def test_compaction_goes_to_the_host_that_can_and_is_built_in_else(
    home: House, can: bool
) -> None:
    host = t.HostInfo(
        host_id="host",
        capabilities=["assemble-before-prompt", *(["compacts-transcript"] if can else [])],
    )
    said = turns(12)
    info = (await home.client.bootstrap(ref(), host=host, history=said)).engine
    assert (info.id, info.owns_compaction) == ("delegating", False)
    assert info.host_auto_compaction == t.HOST_AUTO_COMPACTION_KEEP
    asked = await home.client.compact(ref(), force=True, budget=budget(3_000))
    if not can:
        assert asked.compacted
        assert {one.summarizer for one in asked.summaries} == {"extractive"}
        return
    assert (asked.compacted, asked.reason) == (False, "delegated")
    task = asked.delegation
    assert 1 <= task.first_sequence < task.last_sequence < len(said)
    await home.client.record_host_change(
        ref(),
        change_id="one",
        compacted=t.RecordHostChangeRequest.HostCompaction(
            first_sequence=task.first_sequence,
            last_sequence=task.last_sequence,
            summary="what the host wrote",
        ),
    )
    shown = texts((await home.client.assemble(ref(), budget=budget(3_000))).items)
    assert any("what the host wrote" in text for text in shown)
    assert texts(await home.rows(ref())) == texts(said)
