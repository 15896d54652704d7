"""The configuration of Hermes, Comis and PyClaw: the samples of the founding documents."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from contextengine_server.config.host_import import import_config
from contextengine_server.config.load import load_settings
from contextengine_server.config.policy import FORMER
from contextengine_server.engines.dag import DagOptions
from contextengine_server.engines.layered import LayeredOptions
from contextengine_server.engines.pipeline import PipelineOptions
from tests.unit.config.test_import import reasons, settings, taken

HERMES_COMPRESSOR = 'context:\n  engine: "compressor"    # built in\n'
HERMES_LCM = 'context:\n  engine: "lcm"   # the name of a plugin\n'
HERMES_BOTH = 'context:\n  engine: "compressor"\n  engine: "lcm"\n'
COMIS_VERSION = 'agents:\n  default:\n    contextEngine:\n      version: "pipeline"   # else dag\n'
COMIS_OPTIONS = """
agents:
  default:
    contextEngine:
      enabled: true
      # version: "dag"
      thinkingKeepTurns: 10
      historyTurns: 15
      historyTurnOverrides:
        dm: 10
        group: 5
      observationKeepWindow: 25
      observationTriggerChars: 120000
      compactionCooldownTurns: 5
      compactionPrefixAnchorTurns: 2
      compactionModel: ""
"""
PYCLAW = """
{
  context: { engine: {
    plugin: "dag-compressor",
    compaction: { enabled: true, max_tokens: 128000, reserve_ratio: 0.3, strategy: "dag" },
    // or linear, hybrid
    layers: {
      critical:   { max_tokens: 2000, strategy: "keep" },
      important:  { max_tokens: 3000, strategy: "summarize" },
      contextual: { max_tokens: 2000, strategy: "extract_facts" },
      transient:  { max_tokens: 0, strategy: "drop" },
    },
  } },
}
"""


@pytest.mark.parametrize(
    ("text", "engine"), [(HERMES_COMPRESSOR, "compressor"), (HERMES_LCM, "dag")]
)
def test_hermes_engines(text: str, engine: str) -> None:
    config = import_config(text, "config.yaml")
    assert config.format == "hermes"
    assert taken(config) == {"engine.default": engine}
    assert not any("refuses to start" in note for note in config.notes)


def test_a_key_that_is_given_twice_is_not_lost() -> None:
    config = import_config(HERMES_BOTH)
    assert taken(config) == {"engine.default": "dag"}
    assert config.ignored == [("context.engine", "given again further down; the last one counts")]
    twice = import_config(
        '{plugins: {slots: {contextEngine: "a"}, slots: {contextEngine: "legacy"}}}'
    )
    assert twice.ignored == [
        ("plugins.slots.contextEngine", "given again further down; the last one counts")
    ]
    assert taken(twice) == {"engine.default": "legacy"}


def test_hermes_compression_and_model(tmp_path: Path) -> None:
    text = """
compression: {enabled: true, threshold: 0.6, protect_last_n: 12, max_attempts: 99, nonsense: 1,
  model_thresholds: {gpt-5: 0.7}}
model: {context_length: 262144, max_tokens: 4096, name: x}
auxiliary: {compression: {model: y, api_key: sk-very-secret}}
prompt_caching: {cache_ttl: 5m}
"""
    config = import_config(text, "hermes.yaml")
    read = settings(config, tmp_path)
    assert (read.budget.default_window, read.budget.output_reserve) == (262_144, 4096)
    assert read.engine.default == "dag"
    assert any("compressor" in note for note in config.notes)
    why = reasons(config)
    assert taken(config)["engine.compressor.threshold"] == 0.6
    assert read.engine.options("compressor").protect_last_n == 12
    assert read.engine.options("compressor").model_thresholds == {"gpt-5": 0.7}
    assert "at most 10" in why["compression.max_attempts"]
    assert "not an option" in why["compression.nonsense"]
    assert "summarizer.endpoints" in why["auxiliary.compression.api_key"]
    assert "sk-very-secret" not in repr(config)


@pytest.mark.parametrize(
    "text",
    [
        'context: {engine: "lcm"}\ncompression: {enabled: false}',
        "agents: {default: {contextEngine: {enabled: false, version: dag}}}",
        "{context: {engine: {plugin: 'dag-compressor', compaction: {enabled: false}}}}",
    ],
)
def test_what_is_switched_off_stays_off(text: str) -> None:
    config = import_config(text)
    assert taken(config)["engine.default"] == "legacy"
    assert len(config.ignored) == 1


def test_comis_pipeline_is_kept_by_name() -> None:
    config = import_config(COMIS_VERSION, "config.yaml")
    assert config.format == "comis"
    assert taken(config) == {"engine.default": "pipeline"}
    assert not any("is not in this build" in note for note in config.notes)


def test_comis_options_of_the_pipeline_are_listed_each(tmp_path: Path) -> None:
    config = import_config(COMIS_OPTIONS, "~/.comis/config.yaml")
    assert taken(config) == {
        "summarizer.model": "",
        "engine.pipeline.thinkingKeepTurns": 10,
        "engine.pipeline.historyTurns": 15,
        "engine.pipeline.historyTurnOverrides.dm": 10,
        "engine.pipeline.historyTurnOverrides.group": 5,
        "engine.pipeline.observationKeepWindow": 25,
        "engine.pipeline.observationTriggerChars": 120_000,
        "engine.pipeline.compactionCooldownTurns": 5,
        "engine.pipeline.compactionPrefixAnchorTurns": 2,
    }
    assert settings(config, tmp_path).engine.options("pipeline") == PipelineOptions(
        history_turn_overrides={"dm": 10, "group": 5}
    )
    why = reasons(config)
    assert list(why) == ["agents.default.contextEngine.enabled"]


def test_what_comis_says_of_usage_carries_over(tmp_path: Path) -> None:
    agent = {
        "contextEngine": {"outputEscalation": {"enabled": False, "escalatedMaxTokens": 64_000}},
        "adaptiveCacheRetention": False,
        "cacheRetention": "short",
        "budgets": {"perExecution": 1, "perHour": 2, "perDay": 3},
        "deferredTools": {"mode": "auto", "neverDefer": ["a"], "alwaysDefer": ["b", "c"]},
        "session": {
            "compaction": {
                "softThresholdRatio": 0.6,
                "hardThresholdRatio": 0.8,
                "postCompactionSections": ["Rules"],
            }
        },
    }
    config = import_config(yaml.safe_dump({"agents": {"scout": agent}}))
    assert list(reasons(config)) == ["agents.scout.deferredTools.mode"]
    usage = settings(config, tmp_path).usage
    assert usage.output_escalation.model_dump() == {"enabled": False, "max_tokens": 64_000}
    assert usage.cache_retention.model_dump() == {"adaptive": False, "fixed": "short"}
    guard = usage.guard
    assert (guard.per_execution, guard.per_hour, guard.per_day) == (1, 2, 3)
    assert (usage.tool_deferral.never, usage.tool_deferral.always) == (("a",), ("b", "c"))
    flush = settings(config, tmp_path).summarizer.memory_flush
    assert flush.model_dump() == {"soft_ratio": 0.6, "hard_ratio": 0.8}
    pipeline = settings(config, tmp_path).engine.options("pipeline")
    assert pipeline == PipelineOptions(post_compaction_sections=("Rules",))


def test_every_dag_option_of_comis_carries_over(tmp_path: Path) -> None:
    values = {
        "contextThreshold": 0.6,
        "freshTailTurns": 12,
        "leafChunkTokens": 15_000,
        "leafTargetTokens": 900,
        "condensedMinFanout": 5,
        "condensedTargetTokens": 1_500,
        "maxExpandTokens": 6_000,
        "deferCompaction": False,
        "compactionModel": "local:small",
        "compaction": {"summarizerFallbackProviders": ["local:large"]},
        "summarizerSpend": {"maxTokensPerTenantPerHour": 0, "maxTokensPerTenantPerDay": 1_000_000},
        "summarizerBreaker": {
            "failureThreshold": 3,
            "resetTimeoutMs": 1_000,
            "halfOpenTimeoutMs": 500,
        },
    }
    own = {field.alias for field in DagOptions.model_fields.values()}
    assert set(values) - own == {former.partition(".")[0] for former in FORMER}
    text = yaml.safe_dump({"agents": {"scout": {"contextEngine": {"version": "dag", **values}}}})
    config = import_config(text)
    assert config.ignored == []
    taken_over = settings(config, tmp_path)
    given = load_settings(None, {"engine.dag": values}, {})
    dag = DagOptions(**{name: value for name, value in values.items() if name in own})
    assert taken_over.engine.options("dag") == given.engine.options("dag") == dag
    assert taken_over.summarizer == given.summarizer
    assert taken_over.summarizer.breaker.half_open_timeout == timedelta(milliseconds=500)


def test_comis_agents_that_differ_are_named(tmp_path: Path) -> None:
    text = """
agents:
  coder: {contextEngine: {freshTailTurns: 20, contextThreshold: 0.7}}
  default: {contextEngine: {freshTailTurns: 6, contextThreshold: 0.7}, name: Max}
"""
    config = import_config(text)
    assert settings(config, tmp_path).engine.options("dag").fresh_tail_turns == 6
    why = reasons(config)
    assert "agent `coder`" in why["agents.coder.contextEngine.freshTailTurns"]
    assert "the same as" in why["agents.coder.contextEngine.contextThreshold"]
    assert "agents.default.name" in why


def test_pyclaw_layers(tmp_path: Path) -> None:
    config = import_config(PYCLAW, "pyclaw.json")
    assert config.format == "pyclaw"
    mapped = taken(config)
    assert mapped["engine.default"] == "layered"
    assert mapped["engine.layered.compaction.maxTokens"] == 128_000
    assert mapped["engine.layered.layers.transient.strategy"] == "drop"
    assert len(mapped) == 12
    assert reasons(config) == {"context.engine.compaction.enabled": "on is the default here"}
    read = settings(config, tmp_path).engine
    assert (read.default, read.options("layered")) == ("layered", LayeredOptions())


def test_what_pyclaw_says_otherwise_holds(tmp_path: Path) -> None:
    text = """{context: {engine: {plugin: "dag-compressor",
      compaction: {max_tokens: 64000, reserve_ratio: 0.2, strategy: "hybrid"},
      layers: {important: {max_tokens: 500}, contextual: {strategy: "graph"}, vital: {}}}}}"""
    config = import_config(text)
    options = settings(config, tmp_path).engine.options("layered")
    assert options.compaction.max_tokens == 64_000
    assert (options.compaction.reserve_ratio, options.compaction.strategy) == (0.2, "hybrid")
    assert options.layers.important.max_tokens == 500
    assert options.layers.contextual.strategy == "extract_facts"
    why = reasons(config)
    assert "our default stays" in why["context.engine.layers.contextual.strategy"]
    assert "not an option" in why["context.engine.layers.vital"]


def test_pyclaw_without_layers() -> None:
    config = import_config('{context: {engine: {plugin: "default"}}}')
    assert taken(config) == {"engine.default": "legacy"}
    ceiling = import_config(
        "{context: {engine: {plugin: 'default', compaction: {max_tokens: 9000}}}}"
    )
    assert taken(ceiling) == {"engine.default": "legacy", "budget.window_cap": 9_000}
    assert (
        import_config("{context: {engine: {plugin: 7}}}").ignored[0].reason
        == "must be the name of a plugin"
    )
