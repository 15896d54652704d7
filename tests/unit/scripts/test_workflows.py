"""What the public host runs is what a developer can run, with no more rights than it needs.
`make lint` runs actionlint over it besides."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
ACTIONS = sorted((GITHUB / "actions").glob("*/action.yml"))
Step = dict[str, Any]


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in WORKFLOWS:
        for name, job in read(path)["jobs"].items():
            yield f"{path.stem}.{name}", job


def steps() -> Iterator[tuple[str, Step]]:
    for name, job in jobs():
        for step in job["steps"]:
            yield name, step
    for path in ACTIONS:
        for step in read(path)["runs"]["steps"]:
            yield path.parent.name, step


JOBS = dict(jobs())
STEPS = {f"{name}-{index}": step for index, (name, step) in enumerate(steps())}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_there_is_one_for_each_purpose() -> None:
    assert [path.stem for path in WORKFLOWS] == ["clients", "hosts", "lint", "release", "test"]


def test_every_target_that_ci_runs_runs_on_the_host() -> None:
    here = re.search(r"for target in ([a-z -]+);", (ROOT / ".ci" / "run").read_text())
    assert here
    assert set(here[1].split()) <= TARGETS
    assert set(here[1].split()) <= {word for step in STEPS.values() for word in made(step)}


def made(step: Step) -> list[str]:
    """The targets that a step makes."""
    return [
        word
        for words in re.findall(r"\bmake ([^\n|;&]+)", step.get("run", ""))
        for word in words.split()
        if not word.startswith("-") and "=" not in word
    ]


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_what_a_step_runs_is_there(step: Step) -> None:
    assert ("run" in step) != ("uses" in step)
    assert set(made(step)) <= TARGETS
    for script in re.findall(r"\bscripts/[\w.]+", step.get("run", "")):
        assert (ROOT / script).is_file()
    local = str(step.get("uses", "")).startswith("./")
    assert not local or (ROOT / step["uses"] / "action.yml").is_file()


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_no_step_has_or_takes_more_than_it_needs(step: Step) -> None:
    text = yaml.safe_dump(step)
    assert "secrets." not in text
    uses = step.get("uses", "./")
    assert uses.startswith("./") or re.search(r"@(v\d+|release/v\d+)$", uses), (
        "a version, no branch"
    )
    if uses.startswith("actions/checkout@"):
        assert step["with"]["persist-credentials"] is False
    # What a contributor chooses, a branch's name say, is never part of a command.
    assert "${{" not in step.get("run", "")


@pytest.mark.parametrize("name", JOBS)
def test_every_job_ends(name: str) -> None:
    assert 0 < JOBS[name]["timeout-minutes"] <= 90


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_nothing_may_write_but_what_publishes(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    writing = {
        name: sorted(right for right, level in job["permissions"].items() if level == "write")
        for name, job in workflow["jobs"].items()
        if "permissions" in job
    }
    publishing = {
        "pypi": ["id-token"],
        "npm": ["id-token"],
        "crates": ["id-token"],
        "announce": ["contents"],
    }
    assert writing == (publishing if path.stem == "release" else {})
    # The reviewers of the environment say when a registry gets something.
    for name in writing.keys() - {"announce"}:
        assert workflow["jobs"][name]["environment"] == "release"


def test_a_release_begins_with_the_tag_that_a_release_makes() -> None:
    # YAML reads the key `on` as true.
    (pattern,) = read(GITHUB / "workflows" / "release.yml")[True]["push"]["tags"]
    assert pattern == "v[0-9]+.[0-9]+.[0-9]+"
    assert re.fullmatch(pattern.replace(".", r"\."), "v0.10.2")


def test_the_pythons_are_those_that_the_packages_name() -> None:
    named = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    assert JOBS["test.test"]["strategy"]["matrix"]["python"] == named


def test_templates_ask_for_what_can_be_answered() -> None:
    for name in ("bug", "feature"):
        template = read(GITHUB / "ISSUE_TEMPLATE" / f"{name}.yml")
        assert {"name", "description", "body"} <= template.keys()
        fields = [field for field in template["body"] if field["type"] != "markdown"]
        assert len({field["id"] for field in fields}) == len(fields)
        assert all(field["attributes"]["label"] for field in fields)
        assert any(field.get("validations", {}).get("required") for field in fields)
    config = read(GITHUB / "ISSUE_TEMPLATE" / "config.yml")
    assert all({"name", "url", "about"} == link.keys() for link in config["contact_links"])


def test_targets_that_the_pull_request_names_are_there() -> None:
    text = (GITHUB / "pull_request_template.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`make ([a-z-]+)`", text)) <= TARGETS


def test_ci_is_a_script() -> None:
    subprocess.run(["bash", "-n", ROOT / ".ci" / "run"], check=True, timeout=150)
