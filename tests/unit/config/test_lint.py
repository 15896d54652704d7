"""Checks across settings: what a single value cannot tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contextengine_server.config.lint import WINDOWS, SettingCheck, available, config_lint
from contextengine_server.config.load import load_settings

TOKENS = [{"sha256": "ab" * 32, "tenant": "t", "role": "operator"}]


def findings(**flags: Any) -> dict[str, SettingCheck]:
    """What is not in order, by the setting's path; flags with __ for dots."""
    settings = load_settings(
        flags={key.replace("__", "."): value for key, value in flags.items()}, environ={}
    )
    found = config_lint(settings)
    assert all(finding.advice for finding in found if finding.status != "ok")
    return {finding.name: finding for finding in found if finding.status != "ok"}


def test_the_defaults_are_in_order() -> None:
    assert findings() == {}


def test_what_a_power_cut_may_take_back_is_said() -> None:
    assert findings(store__durability="normal")["store.durability"].status == "warning"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    for name in ("cert", "key"):
        (tmp_path / f"{name}.pem").write_text("x")
    return {
        "server__tls__cert_file": str(tmp_path / "cert.pem"),
        "server__tls__key_file": str(tmp_path / "key.pem"),
    }


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("auth", [False, True])
@pytest.mark.parametrize("insecure", [False, True])
def test_an_open_address_needs_tls_and_tokens_or_the_word(
    files: dict[str, str], tls: bool, auth: bool, insecure: bool
) -> None:
    flags: dict[str, Any] = {"server__address": "0.0.0.0:50051", "server__insecure": insecure}
    flags |= files if tls else {}
    flags |= {"auth__tokens": TOKENS} if auth else {}
    found = findings(**flags).get("server.address")
    if tls and auth:
        assert found is None
        return
    assert found is not None
    assert found.status == ("warning" if insecure else "error")
    assert ("server.tls" in found.advice) == (not tls)
    assert ("auth.tokens" in found.advice) == (not auth)
    assert findings(**flags | {"server__address": "127.0.0.1:1"}) == {}


def test_files_of_tls_must_be_readable(files: dict[str, str], tmp_path: Path) -> None:
    found = findings(**files | {"server__tls__key_file": str(tmp_path / "none.pem")})
    assert found["server.tls.key_file"].status == "error"


def test_tokens_without_an_operator() -> None:
    assert (
        "operator" in findings(auth__tokens=[TOKENS[0] | {"role": "runtime"}])["auth.tokens"].found
    )


def test_reserves_against_windows() -> None:
    settings = load_settings(environ={})
    assert [available(settings.budget, window) > 0 for window in WINDOWS] == [True] * len(WINDOWS)
    assert available(settings.budget, 128_000) == 81_408
    assert available(settings.budget, 200_000) == 131_808
    assert findings(budget__output_reserve=12_000)["budget"].status == "warning"
    assert findings(budget__output_reserve=90_000)["budget"].status == "error"
    assert findings(budget__safety_margin_ratio=0.8)["budget"].status == "error"
    assert findings(budget__window_cap=9_000)["budget"].status == "error"


def test_less_than_a_quarter_of_the_default_window_is_a_warning() -> None:
    assert findings(budget__window_cap=20_470)["budget"].status == "warning"
    assert "budget" not in findings(budget__window_cap=20_480)
    assert findings(budget__rot_buffer_ratio=0.64)["budget"].status == "warning"


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        (
            {"engine.dag.leafTargetTokens": 1_500, "engine.dag.leafChunkTokens": 2_000},
            "engine.dag.leafTargetTokens",
        ),
        (
            {"engine.dag.leafTargetTokens": 1_200, "engine.dag.condensedTargetTokens": 4_800},
            "engine.dag.condensedTargetTokens",
        ),
        ({"engine.dag.leafChunkTokens": 81_409}, "engine.dag.leafChunkTokens"),
        (
            {"engine.legacy.summaryMaxTokens": 16_000, "budget.default_window": 50_000},
            "engine.legacy.summaryMaxTokens",
        ),
        ({"sessions.max_message_bytes": "65MiB"}, "sessions.max_message_bytes"),
        ({"sessions.cache_bytes": "63MiB"}, "sessions.cache_bytes"),
    ],
)
def test_settings_that_do_not_go_together(flags: dict[str, Any], name: str) -> None:
    found = findings(**flags)
    assert name in found
    assert found[name].status == "warning"


def test_on_the_edge_they_go_together() -> None:
    assert (
        findings(
            **{
                "engine.dag.leafChunkTokens": 81_408,
                "engine.dag.leafTargetTokens": 1_200,
                "engine.dag.condensedTargetTokens": 4_799,
            }
        )
        == {}
    )
    assert (
        findings(**{"sessions.max_message_bytes": "64MiB", "sessions.cache_bytes": "64MiB"}) == {}
    )
