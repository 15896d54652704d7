"""A target of a third party: the example, installed as a package, is listed, asked for by name,
served, and passes the suite."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from contextengine import ContextEngineError, assistant, tool_call, tool_result, user
from contextengine import types as t
from contextengine_server.plugins.targets import installed_targets
from tests.acceptance.shell import AIRLINE, Shell, serving
from tests.integration.harness import House, house, ref

EXAMPLE = Path(__file__).parents[3] / "examples" / "target"
HISTORY = [
    user("Where is my order?", id="m1"),
    assistant("I look.", tool_calls=[tool_call("call_1", "find", {"id": 7})], id="m2"),
    tool_result("call_1", "in the lorry", name="find", id="m3"),
    user("And now?", id="m4"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip put the example."""
    source = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("source") / "target")
    site = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "--target"]
    subprocess.run([*command, str(site), str(source)], check=True, timeout=120)
    return site


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process with the package, and as it was afterwards."""
    monkeypatch.syspath_prepend(site)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "contextengine_mistral"]:
        del sys.modules[name]


@pytest.fixture
async def home(installed: None, tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as made:
        yield made


async def test_it_is_served_by_its_name(home: House) -> None:
    await home.client.ingest_batch(ref(), HISTORY)
    options = t.ProjectionOptions(target_name="mistral", base_instructions="You help.")
    reply = await home.client.projection.project(options, session=ref())
    assert (reply.target, reply.target_name) == (t.PROJECTION_TARGET_UNSPECIFIED, "mistral")
    assert reply.renderer == "mistral"
    found = installed_targets().targets.named("mistral")
    assert found is not None
    body = found.body(reply)
    assert found.validator(body, "") == []
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["system", "user", "assistant", "assistant", "tool", "assistant", "user"]
    (called,) = body["messages"][3]["tool_calls"]
    assert len(called["id"]) == 9
    assert called["id"] == body["messages"][4]["tool_call_id"]
    assembled = await home.client.assemble(ref(), projection=options)
    assert assembled.projection == reply
    await home.client.ingest(ref(), user("Well?", id="m5"))
    later = found.body(await home.client.projection.project(options, session=ref()))
    assert later["messages"][: len(roles)] == body["messages"]


async def test_a_name_that_is_not_installed_is_answered_with_those_that_are(home: House) -> None:
    with pytest.raises(ContextEngineError) as caught:
        await home.client.projection.project(
            t.ProjectionOptions(target_name="cohere"), messages=HISTORY
        )
    assert "mistral" in str(caught.value)
    assert "openai-responses" in str(caught.value)


def test_it_is_listed_and_printed_on_the_command_line(site: Path, tmp_path: Path) -> None:
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", path)
        with serving(tmp_path) as server:
            shell = Shell(tmp_path, server.address)
            rows = {row["name"]: row for row in shell.run("targets", "--json").json()}
            assert rows["mistral"]["form"] == "Mistral Chat"
            name, made = rows["mistral"]["package"].split()
            project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
            assert (name, made) == (project["name"], project["version"])
            shell.run("import", AIRLINE, "--agent", "airline")
            words = ("project", "airline-000", "--agent", "airline", "--to", "mistral")
            body = tmp_path / "body.json"
            body.write_bytes(shell.run(*words, "--budget", 4000).out)
            checked = shell.run("project", "--to", "mistral", "--check", body)
            assert "keeps the rules of mistral" in checked.text
            broken = json.loads(body.read_text())
            broken["messages"][-1]["role"] = "developer"
            body.write_text(json.dumps(broken))
            assert "M1" in shell.run("project", "--to", "mistral", "--check", body, status=1).text


def test_it_passes_the_suite_in_two_lines(site: Path, tmp_path: Path) -> None:
    test = shutil.copy(EXAMPLE / "test_mistral.py", tmp_path)
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "14 passed" in done.stdout
