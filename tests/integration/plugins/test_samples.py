"""The sample classes of the guides of Hermes and PyClaw, only their imports changed, serve a
session."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from contextengine import types as t
from contextengine.messages import user
from contextengine_server.plugins.engines import installed_engines
from tests.integration.harness import House, budget, house, ref, texts
from tests.integration.plugins.field import (
    SEED_HERMES,
    SEED_PERSISTENT,
    SEED_PYCLAW,
    WORKING_PYCLAW,
    installed,
    single,
)
from tests.integration.plugins.test_hermes import turns

LAYERED = """\
from pyclaw.agents.context.plugins import DagCompressorPlugin, DagLayerConfig
from pyclaw.agents.context.plugins.dag_compressor import _classify_message


class Mine(DagCompressorPlugin):
    name = "my-layers"

    def __init__(self):
        super().__init__(layers={"contextual": DagLayerConfig(500, "keep")})
        assert _classify_message({"role": "assistant", "content": "ok"}) == "transient"
"""


@pytest.fixture(autouse=True)
def looked_for_anew() -> Iterator[None]:
    installed_engines.cache_clear()
    yield
    installed_engines.cache_clear()


@asynccontextmanager
async def serving(directory: Path, engine: str, source: str) -> AsyncIterator[House]:
    given = f"engine: {engine}\n" if engine == "persistent" else ""
    where = installed(directory, single("sample", source, given))
    async with house(directory, **{"plugins.directory": where, "engine.default": engine}) as made:
        yield made


@pytest.mark.parametrize(
    ("engine", "source", "writer"),
    [
        ("lcm", SEED_HERMES, "lcm"),
        ("my-plugin", SEED_PYCLAW, "extractive"),
        ("persistent", SEED_PERSISTENT, "extractive"),
        ("my-layers", LAYERED, "extractive"),
    ],
)
async def test_a_sample_serves_a_session(
    tmp_path: Path, engine: str, source: str, writer: str
) -> None:
    """Those of PyClaw say nothing in place of what they leave out, so that the summarizers do."""
    said = [*turns(12), user("the last question")]
    async with serving(tmp_path, engine, source) as home:
        reply = await home.client.assemble(ref(), ingest=said, budget=budget(20_000))
        assert (reply.engine_id, texts(reply.items)) == (engine, texts(said))
        done = await home.client.compact(ref(), force=True, budget=budget(3_000))
        assert done.compacted
        assert {one.summarizer for one in done.summaries} == {writer}
        after = await home.client.assemble(ref(), budget=budget(3_000))
        assert after.outcome == t.AssembleResponse.OUTCOME_FITS
        assert any(item.HasField("summary") for item in after.items)
        assert texts(after.items)[-1] == "the last question"
        assert texts(await home.rows(ref())) == texts(said)


async def test_a_plugin_for_pyclaw_is_asked_in_its_order(tmp_path: Path) -> None:
    async with serving(tmp_path, "diary", WORKING_PYCLAW) as home:
        [one] = [
            one for one in (await home.client.engines.list()).engines if one.info.id == "diary"
        ]
        assert one.info.compaction_threshold == pytest.approx(0.7)
        await home.client.ingest_batch(ref(), turns(8))
        first = await home.client.compact(ref(), force=True, budget=budget(3_000))
        assert [one.summarizer for one in first.summaries] == ["diary"]
        shown = texts((await home.client.assemble(ref(), budget=budget(3_000))).items)
        assert any("diary 0: bootstrap, ingest 32, compact 32" in text for text in shown)
        await home.client.ingest_batch(ref(), turns(8, 8))
        await home.client.compact(ref(), force=True, budget=budget(3_000))
        shown = texts((await home.client.assemble(ref(), budget=budget(3_000))).items)
        [line] = [text for text in shown if "diary 1: " in text]
        assert "done 1, ingest 32, compact" in line, "only what is new since"


def heard_in(directory: Path) -> list[str]:
    [file] = directory.glob("plugins/*/heard")
    return file.read_text().splitlines()


async def test_a_plugin_for_pyclaw_hears_of_the_end_once(tmp_path: Path) -> None:
    """And its compactions are counted on where it begins anew."""
    heard = """
    async def on_session_end(self, state, messages):
        from pathlib import Path
        with (Path(__file__).parent / "heard").open("a") as file:
            file.write(f"{len(messages)} of {state.session_id}, {state.compaction_count}\\n")

"""
    hook = "    async def on_compact_complete"
    source = WORKING_PYCLAW.replace(hook, heard.replace("\\\\n", "\\n") + hook)
    async with serving(tmp_path, "diary", source) as home:
        await home.client.after_turn(ref(), turns(8))
        await home.client.compact(ref(), force=True, budget=budget(3_000))
        status = orjson.loads((await home.client.get_status(ref())).engine_status_json)
        assert status["compaction_count"] == 1
        for _ in range(2):
            await home.client.end_session(ref())
        [told] = heard_in(tmp_path)
        assert told.endswith(" of default:agent:s1, 1")
        await home.client.ingest_batch(ref(), turns(8, 8))
        await home.client.compact(ref(), force=True, budget=budget(3_000))
        shown = texts((await home.client.assemble(ref(), budget=budget(3_000))).items)
        assert any("diary 1: bootstrap, ingest" in text for text in shown)
