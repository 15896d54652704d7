"""The settings of summarizers: endpoints, the options that name them, and what is wrong with
either."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from contextengine_server.config.lint import config_lint
from contextengine_server.config.load import SettingsError, load_settings
from contextengine_server.config.settings import Settings
from contextengine_server.engines.dag import DagOptions
from contextengine_server.engines.legacy import LegacyOptions
from contextengine_server.errors import InvalidField
from contextengine_server.session.policies import AssignedOptions, Policies, policy_of
from contextengine_server.summarize import SummaryPolicy
from contextengine_server.summarize.models.openai import Endpoint
from contextengine_server.wiring.summarizers import endpoints_of

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
    assert policy_of(Settings().summarizer) == SummaryPolicy()
    assert endpoints_of(load(LOCAL)) == [Endpoint(**LOCAL)]


def test_options_have_the_names_of_comis_and_reach_the_policy() -> None:
    settings = load(
        LOCAL,
        compactionModel="local:large",
        compaction={"summarizerFallbackProviders": ["local"]},
        summarizerSpend={"maxTokensPerTenantPerHour": 0},
        summarizerBreaker={"failureThreshold": 2, "halfOpenTimeoutMs": 7},
    )
    policy = policy_of(settings.summarizer)
    assert (policy.model, policy.fallbacks) == ("local:large", ("local",))
    assert (policy.spend.per_hour, policy.spend.per_day) == (0, 5_000_000)
    breaker = policy.breaker
    assert (breaker.failure_threshold, breaker.reset_timeout_ms, breaker.half_open_timeout_ms) == (
        2,
        60_000,
        7,
    )


def test_the_names_of_comis_and_ours_say_the_same() -> None:
    former = load(compactionModel="a:b", summarizerBreaker={"resetTimeoutMs": 1_500})
    ours = {"summarizer.model": "a:b", "summarizer.breaker.reset_timeout": "1500ms"}
    assert load_settings(None, ours, {}) == former


def test_a_name_is_not_given_twice_under_both_names() -> None:
    flags = {"summarizer.model": "a", "engine.dag": {"compactionModel": "b"}}
    with pytest.raises(SettingsError) as caught:
        load_settings(None, flags, {})
    assert str(caught.value) == (
        "summarizer.model: is given twice, also as engine.dag.compactionModel; keep one"
        " (in the command line)"
    )


def test_a_nearer_source_wins_whichever_name_it_has() -> None:
    environ = {"CONTEXTENGINE_ENGINE__DAG__COMPACTION_MODEL": "near"}
    assert load_settings(None, {}, environ).summarizer.model == "near"
    assert load_settings(None, {"summarizer.model": "nearer"}, environ).summarizer.model == "nearer"


def test_a_sessions_override_of_one_limit_leaves_the_others_as_configured() -> None:
    policies = Policies(load(summarizerSpend={"maxTokensPerTenantPerDay": 7}).summarizer)
    given = policies.parted({"summarizerSpend": {"maxTokensPerTenantPerHour": 5}}, DagOptions)
    policy = policies.policy([given.policy])
    assert (policy.spend.per_hour, policy.spend.per_day) == (5, 7)
    with pytest.raises(
        InvalidField, match=r"summarizerBreaker.failureThreshold: must be at least 1, got 0"
    ):
        policies.parted({"summarizerBreaker": {"failureThreshold": 0}}, DagOptions)


@pytest.mark.parametrize("model", [DagOptions, LegacyOptions])
def test_what_an_operator_gives_is_parted_whatever_the_engine(model: type[BaseModel]) -> None:
    parted = Policies(Settings().summarizer).parted(
        {
            "anOption": 3,
            "compactionModel": "a:b",
            "summarizer": {"breaker": {"reset_timeout": "2s"}, "fallbacks": ["c"]},
        },
        model,
    )
    assert parted == AssignedOptions(
        {"anOption": 3},
        {"model": "a:b", "breaker": {"reset_timeout": "PT2S"}, "fallbacks": ["c"]},
        {"summarizer.model": "compactionModel"},
    )


def test_an_engines_own_option_of_a_former_name_is_its_own() -> None:
    class Own(BaseModel):
        compaction: dict[str, int] = {}

    given = {"compaction": {"x": 1}, "compactionModel": "a"}
    parted = Policies(Settings().summarizer).parted(given, Own)
    assert (parted.engine, parted.policy) == ({"compaction": {"x": 1}}, {"model": "a"})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"summarizer": 3}, "summarizer: must be a mapping of names to values"),
        ({"summarizer": {"modell": "x"}}, "summarizer.modell: is not a known name"),
        ({"summarizerSpend": {"perHour": 1}}, "summarizerSpend.perHour: is not a known name"),
        ({"summarizerSpend": 3}, "summarizerSpend: is not a known name"),
        (
            {"summarizer": {"model": "a"}, "compactionModel": "b"},
            "summarizer.model: is given twice, also as compactionModel; keep one",
        ),
        ({"compactionModel": "a", "compaction_model": "b"}, "is given twice"),
        ({"summarizerBreaker": {"resetTimeoutMs": True}}, "must be a number"),
        ({"summarizerBreaker": {"resetTimeoutMs": 1e400}}, "must be a duration"),
    ],
)
def test_a_policy_that_cannot_be_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidField) as caught:
        Policies(Settings().summarizer).parted(options, DagOptions)
    assert said in str(caught.value)


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
        "summarizer.model",
        "summarizer.fallbacks",
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


@pytest.mark.parametrize(("soft", "hard"), [(0.8, 0.7), (0.0, 0.9), (0.5, 1.1)])
def test_shares_at_which_memory_is_told_that_cannot_be(soft: float, hard: float) -> None:
    flush = {"soft_ratio": soft, "hard_ratio": hard}
    with pytest.raises(SettingsError, match=r"summarizer\.memory_flush"):
        load_settings(None, {"summarizer.memory_flush": flush}, {})
    assert Settings().summarizer.memory_flush.model_dump() == {
        "soft_ratio": 0.75,
        "hard_ratio": 0.90,
    }
