"""Other hosts' configuration: the samples of the five founding documents, and that no key is ever
lost silently."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.config.host_import import ImportedConfig, import_config
from contextengine_server.config.load import load_settings
from contextengine_server.config.policy import FORMER
from contextengine_server.config.schema import OptionsError
from contextengine_server.config.settings import Settings
from contextengine_server.engines.dag import DagOptions
from contextengine_server.engines.legacy import LegacyEngine, LegacyOptions
from contextengine_server.engines.registration import Registration
from contextengine_server.plugins.engines import installed_engines

ROOT = Path(__file__).parents[3]


def taken(config: ImportedConfig) -> dict[str, Any]:
    """What was mapped, by our path."""
    return {entry.ours: entry.value for entry in config.mapped}


def reasons(config: ImportedConfig) -> dict[str, str]:
    return dict(config.ignored)


def settings(config: ImportedConfig, tmp_path: Path) -> Settings:
    """The settings that the server would run with."""
    file = tmp_path / "contextengine.yaml"
    file.write_text(config.settings_yaml, encoding="utf-8")
    return load_settings(file, environ={})


GENESIS_PLUGIN = """
// genesis.json
{
  plugins: {
    slots: { contextEngine: "lossless-claw" },  // the engine id of the plugin
    entries: { "lossless-claw": { enabled: true, /* its own settings */ } },
  },
}
"""
GENESIS_OWN = (
    '{plugins: {slots: {contextEngine: "my-engine"}, entries: {"my-engine": {enabled: true}}}}'
)
LEGACY = (
    '{\n  plugins: {\n    slots: {\n      // the default\n      contextEngine: "legacy",\n    },\n '
    " },\n}\n"
)
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


def test_genesis_with_lossless_claw_gets_the_dag(tmp_path: Path) -> None:
    config = import_config(GENESIS_PLUGIN, "genesis.json")
    assert config.format == "genesis"
    assert config.mapped == [("plugins.slots.contextEngine", "engine.default", "dag")]
    assert list(reasons(config)) == ["plugins.entries.lossless-claw.enabled"]
    assert any("lossless-claw" in note for note in config.notes)
    assert settings(config, tmp_path) == load_settings(environ={})


def test_genesis_with_an_engine_of_its_own_keeps_the_name_and_warns() -> None:
    config = import_config(GENESIS_OWN, "~/.genesis/genesis.json")
    assert taken(config) == {"engine.default": "my-engine"}
    assert any(
        "my-engine" in note and "refuses to start" in note and "dag, legacy" in note
        for note in config.notes
    )
    mine = Registration("my-engine", LegacyOptions, LegacyEngine, "plugin:mine")
    there = import_config(GENESIS_OWN, "genesis.json", installed_engines().plus(mine))
    assert not any("refuses" in note for note in there.notes)


@pytest.mark.parametrize(
    ("name", "host"),
    [("genesis.json", "genesis"), ("fluffbuzz.json", "fluffbuzz"), ("", "openclaw")],
)
def test_the_kin_of_openclaw_are_told_by_the_name_of_the_file(
    name: str, host: str, tmp_path: Path
) -> None:
    config = import_config(LEGACY, name)
    assert config.format == host
    assert taken(config) == {"engine.default": "legacy"}
    assert settings(config, tmp_path).engine.default == "legacy"


@pytest.mark.parametrize("slot", ['""', '"   "', "null", '"none"', '" legacy "'])
def test_a_blank_slot_means_legacy(slot: str) -> None:
    config = import_config(f"{{plugins: {{slots: {{contextEngine: {slot}}}}}}}")
    assert taken(config) == {"engine.default": "legacy"}


def test_no_slot_at_all_means_dag_and_says_that_the_host_differs(tmp_path: Path) -> None:
    config = import_config('{plugins: {slots: {memory: "memory-core"}}}', "openclaw.json")
    assert config.mapped == []
    assert settings(config, tmp_path).engine.default == "dag"
    assert "legacy" in config.notes[0]
    assert "stays with the runtime" in reasons(config)["plugins.slots.memory"]


@pytest.mark.parametrize(
    "plugins",
    [
        '{enabled: false, slots: {contextEngine: "lossless-claw"}}',
        '{slots: {contextEngine: "lossless-claw"}, entries: {"lossless-claw": {enabled: false}}}',
        '{slots: {contextEngine: "lossless-claw"}, deny: ["lossless-claw"]}',
        '{slots: {contextEngine: "lossless-claw"}, allow: ["memory-core"]}',
    ],
)
def test_a_plugin_that_is_off_means_legacy_and_is_noted(plugins: str) -> None:
    config = import_config(f"{{plugins: {plugins}}}")
    assert taken(config)["engine.default"] == "legacy"
    assert any("`lossless-claw` is off" in note for note in config.notes)


def test_openclaw_compaction_and_the_plugins_settings(tmp_path: Path) -> None:
    text = """{
      agents: { defaults: {
        model: "some/model", contextTokens: 200000,
        compaction: { mode: "safeguard", reserveTokens: 16384, reserveTokensFloor: 20000,
        keepRecentTokens: 24000 },
        contextPruning: { mode: "cache-ttl", ttl: "5m" },
      } },
      plugins: {
        slots: { contextEngine: "lossless-claw" },
        entries: {
          "lossless-claw": { enabled: true, config: {
            contextThreshold: 0.8, leafChunkTokens: 30000, freshTailCount: 64,
            contextThresholdOverrides: [],
            proactiveThresholdCompactionMode: "inline", leafTargetTokens: 999999, databasePath:
            "/x/lcm.db" } },
          "voice-call": { enabled: true, config: { apiKey: "sk-very-secret" } },
        },
      },
    }"""
    config = import_config(text, "openclaw.json")
    read = settings(config, tmp_path)
    dag = read.engine.options("dag")
    assert (dag.context_threshold, dag.leaf_chunk_tokens) == (0.8, 30_000)
    assert dag.defer_compaction is False
    assert dag.leaf_target_tokens == 1200
    assert read.engine.options("legacy").keep_recent_tokens == 24_000
    assert read.budget.output_reserve == 20_000, "the runtime reserves the larger of the two"
    assert read.budget.window_cap == 200_000
    why = reasons(config)
    entry = "plugins.entries.lossless-claw.config"
    assert "counts messages" in why[f"{entry}.freshTailCount"]
    assert "at most 5000" in why[f"{entry}.leafTargetTokens"]
    assert "999999" in why[f"{entry}.leafTargetTokens"]
    assert {f"{entry}.databasePath", f"{entry}.contextThresholdOverrides"} <= why.keys()
    assert "own summarizer" in why["agents.defaults.compaction.mode"]
    assert "pruning" in why["agents.defaults.contextPruning.ttl"]
    assert "plugins.entries.voice-call.config.apiKey" in why
    assert "sk-very-secret" not in repr(config)


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


@pytest.mark.parametrize(
    ("text", "engine"), [(HERMES_COMPRESSOR, "compressor"), (HERMES_LCM, "dag")]
)
def test_hermes_engines(text: str, engine: str) -> None:
    config = import_config(text, "config.yaml")
    assert config.format == "hermes"
    assert taken(config) == {"engine.default": engine}
    assert any("refuses to start" in note for note in config.notes) == (engine == "compressor")


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
compression: {enabled: true, threshold: 0.5, protect_last_n: 20}
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
    assert "compressor engine" in why["compression.protect_last_n"]
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
    assert any(
        "`pipeline`, the engine of Comis, is not in this build" in note for note in config.notes
    )


def test_comis_options_of_the_pipeline_are_listed_each(tmp_path: Path) -> None:
    config = import_config(COMIS_OPTIONS, "~/.comis/config.yaml")
    assert taken(config) == {"summarizer.model": ""}
    assert settings(config, tmp_path) == load_settings(environ={})
    why = reasons(config)
    assert len(why) == 9
    assert all(path.startswith("agents.default.contextEngine.") for path in why)
    assert "pipeline engine" in why["agents.default.contextEngine.historyTurnOverrides.dm"]


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
    assert taken(config) == {"engine.default": "layered", "budget.window_cap": 128_000}
    assert settings(config, tmp_path).engine.default == "layered"
    assert any("layered" in note and "refuses to start" in note for note in config.notes)
    why = reasons(config)
    assert len(why) == 11
    assert "rot_buffer_ratio" in why["context.engine.compaction.reserve_ratio"]
    assert "layered engine" in why["context.engine.layers.transient.max_tokens"]


def test_pyclaw_without_layers() -> None:
    config = import_config('{context: {engine: {plugin: "default"}}}')
    assert taken(config) == {"engine.default": "legacy"}
    assert (
        import_config("{context: {engine: {plugin: 7}}}").ignored[0].reason
        == "must be the name of a plugin"
    )


@pytest.mark.parametrize("off", ["", ", deny: [EVIL]"])
def test_a_name_cannot_smuggle_settings_in(off: str, tmp_path: Path) -> None:
    evil = "'x\\nserver: {insecure: true}\\n#'"
    config = import_config(
        f"{{plugins: {{slots: {{contextEngine: {evil}}}{off.replace('EVIL', evil)}}}}}"
    )
    assert settings(config, tmp_path).server.insecure is False
    assert taken(config) == ({"engine.default": "legacy"} if off else {})
    assert ("must be the id of an engine" in config.ignored[0].reason) == (not off)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "mapping"),
        ("- 1\n- 2", "mapping"),
        ("{plugins: ", "is not JSON5"),
        ("a: [", "is not YAML"),
        ("gateway: {port: 1}", "is not the configuration of a known host"),
        ("{}", "is not the configuration of a known host"),
        ("? [a, b]\n: 1", "YAML"),
        ("[" * 5000, "YAML"),
        ("{a:" * 3000, "JSON5"),
    ],
)
def test_what_is_no_configuration_is_refused_by_name(text: str, complaint: str) -> None:
    with pytest.raises(OptionsError, match=complaint) as caught:
        import_config(text, "thing.conf")
    assert caught.value.problems[0].path == "thing.conf"


def test_a_comment_before_the_brace_is_still_json5() -> None:
    assert import_config("/* by hand\n   in May */\n// again\n" + LEGACY).format == "openclaw"


names = st.sampled_from(
    [
        "engine",
        "plugin",
        "slots",
        "contextEngine",
        "enabled",
        "version",
        "x",
        "compaction",
        "entries",
    ]
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 300_000)
    | st.floats(allow_nan=False)
    | st.text(max_size=8),
    lambda inner: st.dictionaries(names, inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=8,
)


def leaf_paths(value: Any, path: str = "") -> list[str]:
    if isinstance(value, dict) and value:
        return [
            leaf
            for key, inner in value.items()
            for leaf in leaf_paths(inner, f"{path}.{key}" if path else key)
        ]
    return [path]


@hypothesis.settings(deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "plugins": st.dictionaries(names, values, max_size=3),
            "agents": st.dictionaries(
                st.sampled_from(["default", "defaults", "a"]), values, max_size=2
            ),
            "context": st.dictionaries(names, values, max_size=3),
            "compression": values,
            "other": values,
        },
    )
)
def test_every_key_is_mapped_or_ignored_exactly_once(data: dict[str, Any]) -> None:
    config = import_config(yaml.safe_dump(data), "openclaw.yaml")
    told = sorted(
        [entry.source for entry in config.mapped] + [entry.source for entry in config.ignored]
    )
    assert told == (sorted(leaf_paths(data)) if data else [])
    Settings(**yaml.safe_load(config.settings_yaml) or {})


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
