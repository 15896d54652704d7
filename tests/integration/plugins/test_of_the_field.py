"""Engines for Hermes that others published, unchanged, each chosen for sessions: where the package
is installed.

    pip install lossless-hermes-py==0.1.6     # its plugin.yaml and its package are one folder
    pip install hermes-agent==0.19.0          # Hermes itself, with its own compressor
"""

from __future__ import annotations

import importlib.util
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from contextengine import types as t
from contextengine.messages import system, user
from contextengine_server.plugins.engines import installed_engines
from contextengine_server.plugins.folder.directory import PluginDirectory
from tests.integration.harness import House, budget, house, ref, texts
from tests.integration.plugins.field import installed, single
from tests.integration.plugins.test_hermes import call, turns

SMALL = 4_000


@pytest.fixture(autouse=True)
def looked_for_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HERMES_HOME", "")
    monkeypatch.delenv("HERMES_HOME")  # the server sets it; what it sets is taken back
    installed_engines.cache_clear()
    yield
    installed_engines.cache_clear()


def folder_of(module: str) -> Path:
    """Where a package is installed; the test is skipped where it is not."""
    try:
        found = importlib.util.find_spec(module)
    except ValueError:  # ours stands in for it
        found = None
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"{module} is not installed")
    return Path(found.submodule_search_locations[0])


async def laws_hold(home: House, said: list[t.Message], engine: str) -> list[str]:
    """What is shown after a forced compaction by an engine: within the budget, with a summary, and
    all that was said is stored."""
    await home.client.ingest_batch(ref(), said)
    done = await home.client.compact(ref(), force=True, budget=budget(SMALL))
    assert done.compacted, done.reason
    reply = await home.client.assemble(ref(), budget=budget(SMALL))
    assert reply.outcome == t.AssembleResponse.OUTCOME_FITS
    assert reply.engine_id == engine
    assert reply.estimated_tokens <= SMALL
    assert any(item.HasField("summary") for item in reply.items)
    shown = texts(reply.items)
    assert (shown[0], shown[-1]) == (texts(said)[0], texts(said)[-1])
    calls = [text for text in shown if text.startswith("call:")]
    results = [text for text in shown if text.startswith("r") and text[1:2].isdigit()]
    assert len(calls) == len(results)
    assert texts(await home.rows(ref())) == texts(said)
    return shown


async def test_lossless_hermes_serves_a_session(tmp_path: Path) -> None:
    """By its folder, linked as it was installed; with its own store, its own tools and its own
    words of itself."""
    folder = folder_of("lossless_hermes")
    plugins = PluginDirectory(tmp_path / "plugins")
    plugins.link(folder)
    plugins.enable("lossless-hermes")
    settings = {"plugins.directory": str(plugins.path), "engine.default": "lossless-hermes"}
    said = [system("be brief"), *turns(40), user("the last question")]
    async with house(tmp_path, **settings) as home:
        [one] = [
            one
            for one in (await home.client.engines.list()).engines
            if one.info.id == "lossless-hermes"
        ]
        assert (one.owner, one.available) == ("plugin:lossless-hermes", True)
        await laws_hold(home, said, "lossless-hermes")
        offered = {tool.name for tool in (await home.client.list_tools(ref())).tools}
        assert {"lcm_grep", "lcm_describe", "lcm_expand"} <= offered
        described = await call(home, "lcm_describe", {})
        assert orjson.loads(described.result_json)
        status = orjson.loads((await home.client.get_status(ref())).engine_status_json)
        assert status["lcm_enabled"] is True
        await home.client.end_session(ref())
        await home.restart()
        again = await home.client.assemble(ref(), budget=budget(SMALL))
        assert again.outcome == t.AssembleResponse.OUTCOME_FITS
    files = list((tmp_path / "plugins" / ".hermes").rglob("*.db"))
    assert files, "it keeps its own store where Hermes would have it"
    assert sqlite3.connect(files[0]).execute("select count(*) from messages").fetchone()[0] > 0


COMPRESSOR = """\
from agent.context_compressor import ContextCompressor


class Hosted(ContextCompressor):
    name = "hermes-compressor"


def register(ctx):
    ctx.register_context_engine(Hosted("", quiet_mode=True, config_context_length=64_000))
"""


async def test_the_compressor_of_hermes_serves_a_session(tmp_path: Path) -> None:
    """Without a model of its own: it leaves its deterministic summary."""
    folder_of("agent")
    pytest.importorskip("agent.context_compressor", reason="Hermes is not installed")
    where = installed(tmp_path, single("hermes-compressor", COMPRESSOR))
    settings = {"plugins.directory": where, "engine.default": "hermes-compressor"}
    said = [system("be brief"), *turns(40), user("the last question")]
    async with house(tmp_path, **settings) as home:
        await laws_hold(home, said, "hermes-compressor")
        status = orjson.loads((await home.client.get_status(ref())).engine_status_json)
        assert status["compression_count"] >= 1
