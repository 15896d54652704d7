"""A plugin that is gone, or was never enabled: nothing of its sessions is lost, every answer says
what is wrong, and doctor names it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine_server.plugins.engines import installed_engines
from contextengine_server.plugins.folder.directory import PluginDirectory
from tests.integration.harness import House, budget, house, problem, ref, texts
from tests.integration.plugins.field import LEDGER, installed
from tests.integration.plugins.test_hermes import MARK, turns


@pytest.fixture(autouse=True)
def looked_for_anew() -> Iterator[None]:
    installed_engines.cache_clear()
    yield
    installed_engines.cache_clear()


async def restart(home: House) -> None:
    """As a new process would: plugins are looked for again."""
    installed_engines.cache_clear()
    await home.restart()


async def refusal(home: House) -> ContextEngineError:
    with pytest.raises(ContextEngineError) as caught:
        await home.client.assemble(ref())
    return caught.value


async def assignments(home: House) -> list[t.DoctorResponse.Check]:
    checks = (await home.client.engines.doctor(session=ref())).checks
    return [one for one in checks if one.name == "engine.assignment"]


async def test_its_sessions_outlive_a_plugin(tmp_path: Path) -> None:
    where = Path(installed(tmp_path, LEDGER))
    async with house(tmp_path, **{"plugins.directory": str(where)}) as home:
        await home.client.engines.assign(scope=ref(), engine_id="ledger")
        await home.client.ingest_batch(ref(), turns(8))
        await home.client.compact(ref(), force=True, budget=budget(3_000))
        served = await home.client.assemble(ref(), budget=budget(3_000))
        assert any(MARK in text for text in texts(served.items))

        folder = where / "folder-0"
        shutil.move(folder, tmp_path / "away")
        await restart(home)
        gone = await refusal(home)
        assert problem(gone)[:2] == ("FAILED_PRECONDITION", "UNKNOWN_ENGINE")
        assert "engine 'ledger' is not registered" in str(gone)
        assert "Available engines: compressor, dag" in str(gone)
        assert "What plugin:hermes-ledger brings along cannot be used" in str(gone)
        checks = (await home.client.engines.doctor(session=ref())).checks
        told = {one.name: one.found for one in checks}
        assert "ledger is assigned to session s1 of agent agent" in told["engine.assignment"]
        assert "plugin:hermes-ledger is enabled, and is not in" in told["engine.unavailable"]
        assert "engine 'ledger' is not registered" in told["session.engine"]

        await home.client.engines.assign(scope=ref(), engine_id="dag")
        other = await home.client.assemble(ref(), budget=budget(3_000))
        assert texts(other.items) == texts(served.items), "its summary serves any engine"
        assert texts(await home.rows(ref())) == texts(turns(8))

        shutil.move(tmp_path / "away", folder)
        await home.client.engines.assign(scope=ref(), clear=True)
        await restart(home)
        await home.client.engines.assign(scope=ref(), engine_id="ledger")
        again = await home.client.assemble(ref(), budget=budget(3_000))
        assert (again.engine_id, again.items) == ("ledger", served.items)
        assert [one.status for one in await assignments(home)] == [t.DoctorResponse.STATUS_OK]


async def test_one_that_cannot_be_imported_any_more_is_named(tmp_path: Path) -> None:
    """An update broke it: whoever chose its engine is answered that the engine is not there, and
    doctor says why."""
    where = Path(installed(tmp_path, LEDGER))
    async with house(tmp_path, **{"plugins.directory": str(where)}) as home:
        await home.client.engines.assign(scope=ref(), engine_id="ledger")
        await home.client.ingest_batch(ref(), turns(2))
        folder = where / "folder-0"
        (folder / "engine.py").write_text("raise ValueError('the password is swordfish')")
        await restart(home)
        assert "'ledger' is not registered" in str(await refusal(home))
        checks = (await home.client.engines.doctor()).checks
        [found] = [one.found for one in checks if one.name == "engine.unavailable"]
        assert found == (
            "hermes-ledger of plugin:hermes-ledger cannot serve: plugin:hermes-ledger cannot be"
            " imported: ValueError"
        )
        PluginDirectory(where).disable("hermes-ledger")
        await restart(home)
        assert not [
            one
            for one in (await home.client.engines.doctor()).checks
            if one.name == "engine.unavailable"
        ]


async def test_one_that_nobody_enabled_is_said_not_to_be(tmp_path: Path) -> None:
    where = installed(tmp_path, LEDGER, enable=False)
    async with house(tmp_path, **{"plugins.directory": where}) as home:
        assert "ledger" not in {one.info.id for one in (await home.client.engines.list()).engines}
        with pytest.raises(ContextEngineError) as caught:
            await home.client.engines.assign(scope=ref(), engine_id="hermes-ledger")
        assert problem(caught.value)[:2] == ("FAILED_PRECONDITION", "UNKNOWN_ENGINE")
        assert "the plugin 'hermes-ledger' is not enabled" in str(caught.value)
