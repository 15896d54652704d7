"""Other hosts' configuration: the samples of the founding documents, OpenClaw and its kin here, and
that no key is ever lost silently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.config.host_import import ImportedConfig, import_config
from contextengine_server.config.load import load_settings
from contextengine_server.config.schema import OptionsError
from contextengine_server.config.settings import Settings
from contextengine_server.engines.legacy import LegacyEngine, LegacyOptions
from contextengine_server.engines.pruned import PruningRules
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
        "my-engine" in note and "refuses to start" in note and "dag, layered, legacy" in note
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
        contextPruning: { mode: "cache-ttl", ttl: "1h", keepLastAssistants: 4,
          softTrimRatio: 0.4, hardClearRatio: 0.6, minPrunableToolChars: 1000,
          softTrim: { maxChars: 9000, headChars: 4000, tailChars: 4000 },
          hardClear: { enabled: false, placeholder: "(gone)" },
          tools: { allow: ["exec"], deny: ["read", "*image*"] }, other: 1 },
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
    assert dag.leaf_target_tokens is None
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
    assert "no setting" in why["agents.defaults.contextPruning.other"]
    assert read.context_pruning.rules == PruningRules(
        on=True, ttl_ms=3_600_000, keep_last_assistants=4, soft_trim_ratio=0.4,
        hard_clear_ratio=0.6, min_prunable_chars=1_000, max_chars=9_000, head_chars=4_000,
        tail_chars=4_000, clears=False, placeholder="(gone)", allow=("exec",),
        deny=("read", "*image*"),
    )  # fmt: skip
    assert "plugins.entries.voice-call.config.apiKey" in why
    assert "sk-very-secret" not in repr(config)


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
