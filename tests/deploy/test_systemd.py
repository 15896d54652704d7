"""The unit, judged by systemd itself."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from contextengine_server.cli.serve import PASSING, REFUSED
from contextengine_server.config.load import load_settings
from contextengine_server.plugins.stores import kind_of
from tests.acceptance.shell import COMMAND, ROOT

UNIT = (ROOT / "deploy" / "contextengine.service").read_text()
analyzed = pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="systemd is not installed"
)


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit with a command that is on this machine: systemd looks whether there is one."""
    file = tmp_path / "contextengine.service"
    file.write_text(UNIT.replace("/opt/contextengine/bin/contextengine serve", f"{COMMAND} serve"))
    return file


def analyze(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


@analyzed
def test_systemd_takes_it(unit: Path) -> None:
    done = analyze("verify", "--man=no", unit)
    assert done.returncode == 0, done.stderr
    assert unit.name not in done.stderr, done.stderr


@analyzed
def test_systemd_would_not_take_any(unit: Path) -> None:
    unit.write_text(unit.read_text().replace("ProtectHome=", "ProtectHouse="))
    assert "'ProtectHouse' in section" in analyze("verify", "--man=no", unit).stderr


@analyzed
def test_little_is_exposed(unit: Path) -> None:
    # In tenths: 0 is nothing, 100 a service that is let do everything.
    done = analyze("security", "--offline=true", "--no-pager", "--threshold=20", unit)
    assert done.returncode == 0, done.stdout[-500:]


def test_its_settings_are_settings_and_a_refusal_is_not_tried_again() -> None:
    named = dict(re.findall(r"^Environment=(CONTEXTENGINE_\w+)=(\S+)$", UNIT, re.MULTILINE))
    settings = load_settings(
        None, {}, {name: value.replace("%S", "/var/lib") for name, value in named.items()}
    )
    assert (
        kind_of(settings.store.url).place(settings.store.url)
        == "/var/lib/contextengine/contextengine.db"
    )
    assert f"RestartPreventExitStatus={REFUSED}\n" in UNIT


def number(name: str) -> int:
    """A setting of the unit that is a whole number."""
    found = re.search(rf"^{name}=(\d+)$", UNIT, re.MULTILINE)
    assert found, name
    return int(found.group(1))


def test_what_passes_is_tried_again_until_it_has() -> None:
    """A port or a store that another server still has: that one may drain as long as a stop may
    take, and systemd must not have given up by then."""
    assert "\nRestart=on-failure\n" in UNIT
    assert number("RestartPreventExitStatus") != PASSING
    trying_s = number("RestartSec") * number("StartLimitBurst")
    assert trying_s > number("TimeoutStopSec")
