"""The image and the compose file, as far as they can be checked where no container runs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import compose_spec
import pytest
import yaml

from contextengine_server.api.pipeline.server import CLOSE_GRACE_S, HOOK_TIMEOUT_S
from contextengine_server.config.load import load_settings
from contextengine_server.config.settings import Settings
from contextengine_server.plugins.stores import kind_of
from contextengine_server.telemetry.export import EXPORT_TIMEOUT_S
from tests.acceptance.shell import ROOT, Shell

from .composed import with_variables

DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
COMPOSE = (DEPLOY / "compose.yaml").read_text()
HADOLINT = Path(sys.executable).with_name("hadolint")
LONGEST_STOP_S = (
    Settings().server.drain_grace.total_seconds()
    + 4 * HOOK_TIMEOUT_S
    + CLOSE_GRACE_S
    + 4 * EXPORT_TIMEOUT_S
)
"""A drain, hooks that all take as long as they may, and the last exports."""

SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE)["services"]


def environment(text: str) -> dict[str, str]:
    """The settings of ours that the Dockerfile sets."""
    return dict(
        re.findall(
            r"\b(CONTEXTENGINE_[A-Z_]+)=(\S+)",
            text.split("ENV PATH=")[1].split("USER", maxsplit=1)[0],
        )
    )


def test_hadolint_has_nothing_to_say() -> None:
    done = subprocess.run(
        [HADOLINT, "--no-color", DEPLOY / "Dockerfile"],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_hadolint_would_say_something(tmp_path: Path) -> None:
    file = tmp_path / "Dockerfile"
    file.write_text(re.sub(r":3\.11\.\S+", ":latest", DOCKERFILE))
    done = subprocess.run(
        [HADOLINT, file], capture_output=True, text=True, timeout=150, check=False
    )
    assert "DL3007" in done.stdout


def test_the_image_runs_as_nobody_in_particular_from_pinned_parts() -> None:
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert len(bases) == 2
    assert all(re.fullmatch(r"python:3\.11\.\d+-slim-bookworm", base) for base in bases)
    assert re.search(r"^USER 10001:10001$", DOCKERFILE, re.MULTILINE)
    assert DOCKERFILE.count("pip install --require-hashes --no-deps --only-binary=:all:") == 2
    # No other installation reaches for a registry.
    assert all(
        "--no-index" in line or "--require-hashes" in line
        for line in re.findall(r".*pip install.*", DOCKERFILE)
    )
    assert re.search(r"^STOPSIGNAL SIGTERM$", DOCKERFILE, re.MULTILINE)


def test_what_is_copied_is_there_and_not_ignored() -> None:
    allowed = [
        line[1:]
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    ]
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    names = [name for line in copied for name in line.split()]
    assert set(names) == set(allowed)
    for name in names:
        assert (ROOT / name).exists(), name


def test_the_images_settings_are_settings(alone: Shell) -> None:
    settings = load_settings(None, {}, environment(DOCKERFILE))
    assert settings.server.address == "0.0.0.0:50051"
    assert kind_of(settings.store.url).place(settings.store.url) == "/data/contextengine.db"
    assert settings.telemetry.logs.format == "json"
    # It starts for nobody who did not say how callers are told apart.
    refused = alone.run("serve", "--address", "0.0.0.0:0", "--store", "x.db", status=2)
    assert "server.address" in refused.err


def test_the_health_check_is_a_command_of_ours(shell: Shell) -> None:
    [words] = re.findall(r'CMD \["contextengine", "health", (.+)\]', DOCKERFILE)
    assert shell.run("health", *re.findall(r'"([^"]+)"', words)).text == "SERVING\n"


def test_the_compose_file_is_one() -> None:
    compose_spec.PyCompose.from_yaml(COMPOSE).validate()
    with pytest.raises(ValueError, match="stop_grace_periode"):
        compose_spec.PyCompose.from_yaml(
            COMPOSE.replace("stop_grace_period:", "stop_grace_periode:")
        )
    declared = yaml.safe_load(COMPOSE)["volumes"].keys()
    for name, service in SERVICES.items():
        assert set(service.get("depends_on", ())) <= SERVICES.keys(), name
        image = service["image"].rpartition(":")[2]
        assert re.fullmatch(r"v?\d+\.\d+\.\d+", image), f"{name}: pin {service['image']}"
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in declared or (DEPLOY / source).is_dir(), f"{name}: {volume}"
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), f"{name}: {port} is published to everybody"


def test_the_services_settings_are_settings_and_lead_to_the_others() -> None:
    service = SERVICES["contextengine"]
    given = environment(DOCKERFILE) | with_variables(service["environment"])
    settings = load_settings(None, {}, given)
    traces, scraped = (
        settings.telemetry.traces.endpoint,
        settings.telemetry.metrics.prometheus.address,
    )
    assert traces.partition("//")[2].partition(":")[0] in SERVICES
    [job] = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())["scrape_configs"]
    assert job["static_configs"] == [{"targets": [f"contextengine:{scraped.rpartition(':')[2]}"]}]
    assert settings.server.insecure
    assert not settings.archive.url
    assert service["read_only"] is True
    assert service["volumes"] == ["data:/data"]


def test_the_archive_is_named_by_variables() -> None:
    over = yaml.safe_load((DEPLOY / "compose.replicas.yaml").read_text())["services"]
    [line] = re.findall(r"^ *# (ARCHIVE_URL=.*)$", COMPOSE, re.MULTILINE)
    said = dict(word.split("=", 1) for word in shlex.split(line))
    found = []
    for asked in (SERVICES["contextengine"], over["contextengine"], over["contextengine-2"]):
        given = with_variables(
            asked["environment"],
            POSTGRES_PASSWORD="secret",
            **said | {"ARCHIVE_URL": "s3://contexts/production"},
        )
        found.append(load_settings(None, {}, given).archive)
        assert given["AWS_ACCESS_KEY_ID"] == said["AWS_ACCESS_KEY_ID"]
        assert given["AWS_SECRET_ACCESS_KEY"] == said["AWS_SECRET_ACCESS_KEY"]
    assert found[0].url == "s3://contexts/production"
    assert found[0].rules[0].after.days == 90
    assert found == [found[0]] * 3


def test_a_stop_waits_for_the_drain() -> None:
    assert float(SERVICES["contextengine"]["stop_grace_period"].removesuffix("s")) > LONGEST_STOP_S
    assert f"docker stop --time {SERVICES['contextengine']['stop_grace_period'][:-1]}" in DOCKERFILE
    unit = (DEPLOY / "contextengine.service").read_text()
    assert float(re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)[0]) > LONGEST_STOP_S


def test_grafana_is_told_where_things_are() -> None:
    provisioning = DEPLOY / "grafana" / "provisioning"
    [source] = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text())[
        "datasources"
    ]
    assert source["url"] == "http://prometheus:9090"
    [provider] = yaml.safe_load((provisioning / "dashboards" / "contextengine.yaml").read_text())[
        "providers"
    ]
    mounted = [volume.split(":") for volume in SERVICES["grafana"]["volumes"]]
    assert ["./grafana/dashboards", provider["options"]["path"], "ro"] in mounted


def test_the_page_about_it_names_what_there_is(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "deploying.md").read_text(encoding="utf-8")
    file = tmp_path / "contextengine.yaml"
    file.write_text(re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0])
    settings = load_settings(file, {}, {})
    assert settings.server.tls.enabled
    assert settings.auth.tokens[0].tenant == "acme"
    configuration = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    for setting in re.findall(r"`((?:server|telemetry)\.[a-z_.]+)", page):
        assert f"`{setting}`" in configuration, setting
    for path in re.findall(r"\bdeploy/[\w./-]+", page):
        assert (ROOT / path).exists(), path
    stop = SERVICES["contextengine"]["stop_grace_period"]
    assert f"give it {stop[:-1]} seconds" in page
