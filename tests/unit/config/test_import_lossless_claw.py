"""lossless-claw's configuration, the plugin of OpenClaw and its kin, as that of the dag."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from contextengine_server.config.host_import import import_config
from tests.unit.config.test_import import ROOT, reasons, settings


def lossless(config: dict[str, Any], **rest: Any) -> str:
    plugin: dict[str, Any] = {"slots": {"contextEngine": "lossless-claw"}, "entries": {}}
    plugin["entries"] = {"lossless-claw": {"config": config}}
    return yaml.safe_dump({"plugins": plugin, **rest})


def test_every_option_of_lossless_claw_in_the_documents_is_mapped_or_has_its_reason() -> None:
    table = (ROOT / "docs/dag.md").read_text("utf-8").split("## Options of lossless-claw", 1)[1]
    rows = re.findall(r"^\| (`.*?) \|", table.split("\n## ")[0], re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert len(names) > 50
    numbers = {"contextThreshold": 0.5, "condensedMinFanout": 5}
    given: dict[str, Any] = {name: numbers.get(name, 5_000) for name in names}
    given |= {"summaryModel": "local/small", "summaryProvider": "local"}
    given |= {"fallbackProviders": "local/large"}
    provider = {"baseUrl": "http://127.0.0.1:8000/v1", "apiKey": "${LOCAL_KEY}"}
    config = import_config(
        lossless(given, models={"providers": {"local": provider}}), "openclaw.yaml"
    )
    entry = "plugins.entries.lossless-claw.config"
    mapped = {row.source.removeprefix(f"{entry}.") for row in config.mapped}
    why = {path.removeprefix(f"{entry}."): reason for path, reason in config.ignored}
    assert not [name for name in names if name not in mapped and name not in why]
    assert not [name for name, reason in why.items() if "no such setting" in reason]
    assert mapped >= {
        "summaryModel", "summaryProvider", "fallbackProviders", "maxAssemblyTokenBudget",
        "circuitBreakerThreshold", "circuitBreakerCooldownMs", "summaryTimeoutMs",
    }  # fmt: skip


def test_models_of_lossless_claws_summaries_become_endpoints(tmp_path: Path) -> None:
    given = {
        "summaryModel": "small",
        "summaryProvider": "Local",
        "fallbackProviders": [{"provider": "openai", "model": "gpt-5-mini"}, "strange/x"],
        "summaryTimeoutMs": 90_000,
        "maxAssemblyTokenBudget": 60_000,
        "circuitBreakerThreshold": 3,
        "circuitBreakerCooldownMs": 1_500,
    }
    local = {
        "baseUrl": "http://127.0.0.1:8000/v1",
        "api": "openai-completions",
        "apiKey": "sk-very-secret",
        "models": [{"id": "small", "contextWindow": 32_768}],
    }
    strange = {"baseUrl": "https://strange.example/v1", "api": "anthropic-messages"}
    text = lossless(
        given,
        models={"providers": {"Local": local, "strange": strange}},
        agents={"defaults": {"contextTokens": 200_000}},
    )
    config = import_config(text, "openclaw.yaml")
    read = settings(config, tmp_path)
    assert (read.summarizer.model, read.summarizer.fallbacks) == (
        "local:small",
        ("openai:gpt-5-mini", "strange:x"),
    )
    first, second = read.summarizer.endpoints
    assert (first.name, first.base_url, first.model, first.window, first.api_key_env) == (
        "local", "http://127.0.0.1:8000/v1", "small", 32_768, "LOCAL_API_KEY",
    )  # fmt: skip
    assert (second.name, second.api_key_env) == ("openai", "OPENAI_API_KEY")
    assert first.timeout == second.timeout == timedelta(seconds=90)
    assert read.budget.window_cap == 60_000
    assert read.summarizer.breaker.failure_threshold == 3
    assert read.summarizer.breaker.reset_timeout == timedelta(milliseconds=1_500)
    assert "sk-very-secret" not in repr(config)
    assert any("strange:x" in note and "anthropic-messages" in note for note in config.notes)
    assert "maxAssemblyTokenBudget" in reasons(config)["agents.defaults.contextTokens"]


@pytest.mark.parametrize("provider", ["", "anthropic", "Anthropic", "openai"])
def test_a_model_that_names_its_provider_is_taken_at_its_word(
    provider: str, tmp_path: Path
) -> None:
    """lossless-claw's README: then summaryProvider is ignored."""
    given = {"summaryModel": "anthropic/claude-haiku-4-5"}
    if provider:
        given["summaryProvider"] = provider
    config = import_config(lossless(given), "openclaw.yaml")
    assert settings(config, tmp_path).summarizer.model == "anthropic:claude-haiku-4-5"
    ignored = reasons(config).get("plugins.entries.lossless-claw.config.summaryProvider", "")
    assert ("names its provider itself, anthropic" in ignored) == (provider == "openai")


@pytest.mark.parametrize(
    ("given", "key", "why"),
    [
        ({"summaryModel": "small"}, "summaryModel", "no provider"),
        ({"summaryProvider": "local"}, "summaryProvider", "no model"),
        ({"fallbackProviders": []}, "fallbackProviders", "no model"),
        ({"summaryTimeoutMs": 5_000}, "summaryTimeoutMs", "`timeout` of an endpoint"),
        ({"surprise": 1}, "surprise", "no such setting"),
    ],
)
def test_what_says_too_little_of_a_model_is_named(given: Any, key: str, why: str) -> None:
    config = import_config(lossless(given), "openclaw.yaml")
    assert why in reasons(config)[f"plugins.entries.lossless-claw.config.{key}"]
    assert "summarizer" not in config.settings_yaml


def test_the_smaller_of_two_caps_holds(tmp_path: Path) -> None:
    text = lossless(
        {"maxAssemblyTokenBudget": 90_000}, agents={"defaults": {"contextTokens": 50_000}}
    )
    assert settings(import_config(text, "openclaw.yaml"), tmp_path).budget.window_cap == 50_000


LOSSLESS_PATTERNS = """{ plugins: {
  slots: { contextEngine: "lossless-claw" },
  entries: { "lossless-claw": { config: {
    ignoreSessionPatterns: ["agent:*:cron:**", "what?"],
    statelessSessionPatterns: ["agent:*:subagent:*"], %s
  } } },
} }"""


def test_sessions_that_a_host_keeps_apart_are_kept_apart_here(tmp_path: Path) -> None:
    config = import_config(LOSSLESS_PATTERNS % "", "openclaw.json")
    made = settings(config, tmp_path).sessions
    assert [one.key for one in made.ignored] == ["agent:*:cron:**", "what\\?"]
    assert [one.key for one in made.stateless] == ["agent:*:subagent:*"]
    unforced = import_config(LOSSLESS_PATTERNS % "skipStatelessSessions: false", "openclaw.json")
    assert settings(unforced, tmp_path).sessions.stateless == ()
    assert settings(unforced, tmp_path).sessions.ignored == made.ignored
