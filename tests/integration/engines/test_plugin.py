"""An engine of a third party: the example, installed as a package, is listed, chosen, configured
under its own block, serves, fails well, and passes the suite."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from contextengine import ContextEngineError
from contextengine.messages import assistant, user
from contextengine_server.config.load import SettingsError, load_settings
from contextengine_server.plugins.engines import installed_engines
from contextengine_server.testing.engine import EngineSuite
from tests.acceptance.shell import Shell, serving
from tests.integration.harness import House, budget, house, problem, ref, texts

EXAMPLE = Path(__file__).parents[3] / "examples" / "engine"
NAME = "newest-steps"
BLOCK = f"engine.{NAME}.keepSteps"
MOST_LINES = 40
LONGEST_S = 540
"""The whole suite takes half a minute of a processor, and more where others use it."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip put the example."""
    source = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("source") / "engine")
    site = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "--target"]
    subprocess.run([*command, str(site), str(source)], check=True, timeout=120)
    return site


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process with the package, and as it was afterwards."""
    monkeypatch.syspath_prepend(site)
    installed_engines.cache_clear()
    yield
    sys.modules.pop("newest_steps", None)
    installed_engines.cache_clear()


@pytest.fixture
async def home(installed: None, tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path, **{"engine.default": NAME, BLOCK: 2}) as made:
        yield made


def environment(site: Path) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}


def test_it_is_a_package_of_few_lines() -> None:
    (module,) = EXAMPLE.glob("newest*.py")
    assert len(module.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


async def test_it_is_listed_chosen_and_serves(home: House) -> None:
    listed = {one.info.id: one for one in (await home.client.engines.list()).engines}
    assert listed[NAME].available
    assert listed[NAME].owner == "plugin:contextengine-newest-steps"
    long = " and so on" * 40
    said = [user(f"q{n}{long}") if n % 2 == 0 else assistant(f"a{n}{long}") for n in range(40)]
    await home.client.ingest_batch(ref(), said)
    reply = await home.client.assemble(ref(), budget=budget(1_500), explain=True)
    assert (reply.engine_id, reply.outcome) == (NAME, 1)
    assert reply.estimated_tokens <= 1_500
    assert texts(reply.items) == [
        message.parts[0].text.text for message in said[-len(reply.items) :]
    ]
    assert 2 < len(reply.items) < 40
    rules = {one.rule for one in reply.decisions if "cut at step" in one.rule}
    assert rules, "why the others are missing is said in the engine's words"


async def test_it_is_configured_under_its_own_block(home: House) -> None:
    await home.client.ingest(ref(), user("hello"))
    options = {
        option.name: (json.loads(option.value_json), option.source, option.description)
        for option in (await home.client.engines.get(session=ref())).options
    }
    words = "The newest steps that stay verbatim."
    assert options["keepSteps"] == (2, "configuration", words)
    assert (await home.client.get_status(ref())).engine.tail_steps == 2
    await home.client.engines.assign(scope=ref(), options_json=b'{"keepSteps": 7}')
    assert (await home.client.get_status(ref())).engine.tail_steps == 7
    with pytest.raises(ContextEngineError) as caught:
        await home.client.engines.assign(scope=ref(), options_json=b'{"keepSteps": 99}')
    assert problem(caught.value) == ("INVALID_ARGUMENT", "INVALID_FIELD", ["options_json"])
    assert "keepSteps: must be at least 1 and at most 50, got 99" in str(caught.value)


def test_its_block_is_checked_from_everywhere(installed: None) -> None:
    environ = {"CONTEXTENGINE_ENGINE__NEWEST_STEPS__KEEP_STEPS": "9"}
    assert load_settings(None, {}, environ).engine.options(NAME).keep_steps == 9
    with pytest.raises(SettingsError) as caught:
        load_settings(None, {f"engine.{NAME}.keepStep": 3}, {})
    assert str(caught.value) == (
        f"engine.{NAME}.keepStep: is not a known name; did you mean {BLOCK}? (in the command line)"
    )


async def test_it_fails_well(home: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await home.client.ingest(ref(), user("hello"))
    import newest_steps

    def fails(*arguments: object) -> None:
        raise RuntimeError("a sorry end")

    monkeypatch.setattr(newest_steps, "fitting", fails)
    with pytest.raises(ContextEngineError) as caught:
        await home.client.assemble(ref())
    assert problem(caught.value)[:2] == ("INTERNAL", "ENGINE_FAILED")
    assert (caught.value.metadata["engine"], caught.value.metadata["how"]) == (NAME, "RuntimeError")
    failure = (await home.client.get_status(ref())).engine_failure
    assert failure.reason == "RuntimeError: a sorry end"
    monkeypatch.undo()
    assert texts((await home.client.assemble(ref())).items) == ["hello"]
    assert not (await home.client.get_status(ref())).HasField("engine_failure")


def test_it_is_there_on_the_command_line(site: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(site).items():
            patch.setenv(name, value)
        with serving(tmp_path, "--set", f"engine.default={NAME}", "--set", f"{BLOCK}=6") as server:
            shell = Shell(tmp_path, server.address)
            listed = shell.run("engines", "list").text
            assert f"{NAME} (default)" in listed
            assert "plugin:contextengine-newest-steps" in listed
            assert "keepSteps" in shell.run("engines", "show", NAME).text


def test_without_the_package_its_name_starts_no_server(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    said = shell.run("serve", "--set", f"engine.default={NAME}", status=None)
    assert said.status != 0
    assert "dag, layered, legacy" in said.text + said.err


@pytest.mark.timeout(LONGEST_S + 60)
def test_it_passes_the_suite_in_two_lines(site: Path, tmp_path: Path) -> None:
    test = shutil.copy(EXAMPLE / "test_newest_steps.py", tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test],
        cwd=tmp_path,
        # What the suite finds is held with our own engines; here it need only be run.
        env=os.environ | environment(site) | {"HYPOTHESIS_PROFILE": "glance"},
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    every = [name for name in dir(EngineSuite) if name.startswith("test_")]
    assert f"{len(every)} passed" in done.stdout
