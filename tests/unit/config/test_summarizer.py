"""The settings of summarizers: endpoints, the options that name them, and what is wrong with
either."""

from __future__ import annotations

from typing import Any

import pytest

from contextengine_server.app import endpoints_of
from contextengine_server.compaction.summary_request import policy_of
from contextengine_server.config.lint import config_lint
from contextengine_server.config.loading import SettingsError, load_settings
from contextengine_server.config.settings import Settings
from contextengine_server.engines.options import DagOptions
from contextengine_server.engines.registry import Registry
from contextengine_server.errors import InvalidField
from contextengine_server.summarize import SummaryPolicy
from contextengine_server.summarize.openai import Endpoint

LOCAL: dict[str, Any] = {"name": "local", "base_url": "http://127.0.0.1:11434/v1", "model": "small"}


def load(*endpoints: dict[str, Any], **dag: Any) -> Settings:
    flags = {"summarizer.endpoints": list(endpoints), "engine.dag": dag}
    return load_settings(None, flags, {})


def complaint(*endpoints: dict[str, Any], **dag: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        load(*endpoints, **dag)
    return str(caught.value)


def test_without_endpoints_there_are_none() -> None:
    assert endpoints_of(Settings()) == []


def test_the_defaults_are_one_policy_everywhere() -> None:
    assert policy_of(DagOptions()) == SummaryPolicy()
    assert endpoints_of(load(LOCAL)) == [Endpoint(**LOCAL)]


def test_options_have_the_names_of_comis_and_reach_the_policy() -> None:
    settings = load(
        LOCAL,
        compactionModel="local:large",
        compaction={"summarizerFallbackProviders": ["local"]},
        summarizerSpend={"maxTokensPerTenantPerHour": 0},
        summarizerBreaker={"failureThreshold": 2, "halfOpenTimeoutMs": 7},
    )
    policy = policy_of(settings.engine.dag)
    assert (policy.model, policy.fallbacks) == ("local:large", ("local",))
    assert (policy.spend.per_hour, policy.spend.per_day) == (0, 5_000_000)
    breaker = policy.breaker
    assert (breaker.failure_threshold, breaker.reset_timeout_ms, breaker.half_open_timeout_ms) == (
        2,
        60_000,
        7,
    )


def test_a_sessions_override_of_one_limit_leaves_the_others_as_configured() -> None:
    configured = DagOptions(summarizer_spend={"max_tokens_per_tenant_per_day": 7})
    registry = Registry({"dag": configured})
    options = registry.options("dag", {"summarizerSpend": {"maxTokensPerTenantPerHour": 5}})
    assert isinstance(options, DagOptions)
    assert options.summarizer_spend.max_tokens_per_tenant_per_hour == 5
    assert options.summarizer_spend.max_tokens_per_tenant_per_day == 7
    with pytest.raises(
        InvalidField, match=r"summarizerBreaker.failureThreshold: must be at least 1, got 0"
    ):
        registry.options("dag", {"summarizerBreaker": {"failureThreshold": 0}})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "Local One"}, "endpoints[0].name: must be at most 64 lower-case letters"),
        (
            {"base_url": "127.0.0.1:1"},
            "endpoints[0].base_url: must be an address that begins with http://",
        ),
        ({"base_url": "http://h/v1?key=x"}, "endpoints[0].base_url: must be an address"),
        (
            {"base_url": "https://user:hunter2@h/v1"},
            "endpoints[0].base_url: must hold no credentials",
        ),
        (
            {"api_key_env": "sk-hunter2"},
            "endpoints[0].api_key_env: must be the name of an environment variable",
        ),
        ({"model": ""}, "endpoints[0].model: must not be empty"),
        (
            {"window": 100},
            "endpoints[0].window: must be at least 4096 and at most 10000000, got 100",
        ),
        (
            {"length_parameter": "n"},
            "endpoints[0].length_parameter: must be one of max_completion_tokens",
        ),
        ({"key": "x"}, "endpoints[0].key: is not a known name"),
    ],
)
def test_what_is_wrong_with_an_endpoint_is_named_without_its_secrets(
    change: dict[str, Any], said: str
) -> None:
    found = complaint(LOCAL | change)
    assert f"summarizer.{said}" in found
    assert "hunter2" not in found


def test_an_endpoint_cannot_have_the_name_of_the_harnesses() -> None:
    assert "summarizer.endpoints[0].name: must not be `runtime`" in complaint(
        LOCAL | {"name": "runtime"}
    )


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ([], "order is empty: name at least one of runtime, endpoints, extractive"),
        (["model"], "summarizer.order[0]: must be one of runtime, endpoints, extractive"),
        (["runtime", "runtime"], "order names one twice: runtime, runtime; each is asked once"),
        (["extractive", "endpoints"], "put extractive last, since it always answers"),
    ],
)
def test_an_order_that_cannot_be_is_refused(order: list[str], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(None, {"summarizer.order": order}, {})
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("order", "asked"),
    [
        (None, ["runtime", "endpoints", "extractive"]),
        (["extractive"], ["extractive"]),
        (["endpoints", "runtime"], ["endpoints", "runtime"]),
    ],
)
def test_an_order_is_taken(order: list[str] | None, asked: list[str]) -> None:
    flags = {} if order is None else {"summarizer.order": order}
    assert list(load_settings(None, flags, {}).summarizer.order) == asked


def test_two_endpoints_of_one_name_are_refused() -> None:
    assert "endpoints[0] and endpoints[1] have the same name 'local'" in complaint(LOCAL, LOCAL)


@pytest.mark.parametrize(
    ("dag", "option"),
    [
        (
            {"summarizerSpend": {"maxTokensPerTenantPerHour": -1}},
            "summarizerSpend.maxTokensPerTenantPerHour",
        ),
        ({"summarizerBreaker": {"resetTimeoutMs": 0}}, "summarizerBreaker.resetTimeoutMs"),
        ({"compaction": {"fallbacks": []}}, "compaction.fallbacks"),
    ],
)
def test_limits_outside_their_range_are_named(dag: dict[str, Any], option: str) -> None:
    assert f"engine.dag.{option}: " in complaint(**dag)


def test_doctor_names_what_will_be_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    far = {
        "name": "far",
        "base_url": "http://models.example/v1",
        "model": "m",
        "api_key_env": "NO_SUCH_KEY",
    }
    settings = load(
        LOCAL | {"window": 16_000},
        far,
        compactionModel="anthropic:small",
        compaction={"summarizerFallbackProviders": ["far", "openai:x"]},
    )
    found = {finding.name: finding for finding in config_lint(settings) if finding.status != "ok"}
    assert set(found) == {
        "engine.dag.compactionModel",
        "engine.dag.compaction.summarizerFallbackProviders",
        "summarizer.endpoints[0].window",
        "summarizer.endpoints[1].api_key_env",
        "summarizer.endpoints[1].base_url",
    }
    assert all(finding.status == "warning" and finding.advice for finding in found.values())
    ignored = load_settings(
        None, {"summarizer.endpoints": [LOCAL], "summarizer.order": ["runtime"]}, {}
    )
    assert [one.name for one in config_lint(ignored) if one.status != "ok"] == ["summarizer.order"]
    assert all(
        one.status == "ok" for one in config_lint(load(LOCAL, compactionModel="runtime:big"))
    )
    monkeypatch.setenv("NO_SUCH_KEY", "x")
    in_order = load(LOCAL, far | {"base_url": "https://models.example/v1"}, compactionModel="far:x")
    assert all(finding.status == "ok" for finding in config_lint(in_order))
