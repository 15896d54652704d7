"""What the keys of other runtimes' configuration mean here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic.alias_generators import to_camel

from contextengine_server.config import lossless_claw
from contextengine_server.config.policy import FORMER, GROUP
from contextengine_server.config.schema import OptionsError, Problem, describe
from contextengine_server.config.source import HostConfig, Path, show

_STAYS = "stays with the runtime"
_SUMMARIZER = "the runtime's own summarizer; ours are set by summarizer.endpoints"

_COUNTERPARTS = {
    "lossless-claw": (
        "the dag engine stands for lossless-claw: lossless store, summaries of summaries, recall"
    ),
    "lcm": "the dag engine stands for lcm: lossless store, summaries of summaries, recall",
    "dag-compressor": (
        "the layered engine stands for dag-compressor: four layers of different worth"
    ),
    "default": (
        "the legacy engine stands for PyClaw's default plugin: one summary of what is old, the"
        " newest verbatim"
    ),
}
"""Engines that have another name here, and why."""
_NAMES = {"lossless-claw": "dag", "lcm": "dag", "dag-compressor": "layered", "default": "legacy"}

_PIPELINE_OPTIONS = {
    "thinkingKeepTurns",
    "replayDriftIdleMs",
    "evictionMinAge",
    "historyTurns",
    "observationKeepWindow",
    "observationTriggerChars",
    "observationDeactivationChars",
    "ephemeralKeepWindow",
    "compactionCooldownTurns",
    "compactionPrefixAnchorTurns",
}

_PRUNING: dict[Path, str] = {
    ("mode",): "mode",
    ("ttl",): "ttl",
    ("keepLastAssistants",): "keep_last_assistants",
    ("softTrimRatio",): "soft_trim_ratio",
    ("hardClearRatio",): "hard_clear_ratio",
    ("minPrunableToolChars",): "min_prunable_tool_chars",
    ("softTrim", "maxChars"): "soft_trim.max_chars",
    ("softTrim", "headChars"): "soft_trim.head_chars",
    ("softTrim", "tailChars"): "soft_trim.tail_chars",
    ("hardClear", "enabled"): "hard_clear.enabled",
    ("hardClear", "placeholder"): "hard_clear.placeholder",
    ("tools", "allow"): "tools.allow",
    ("tools", "deny"): "tools.deny",
}
"""OpenClaw's settings of session pruning, below `agents.defaults.contextPruning`."""

_COMIS_AGENT: dict[Path, str] = {
    ("contextEngine", "outputEscalation", "enabled"): "usage.output_escalation.enabled",
    ("contextEngine", "outputEscalation", "escalatedMaxTokens"): (
        "usage.output_escalation.max_tokens"
    ),
    ("adaptiveCacheRetention",): "usage.cache_retention.adaptive",
    ("cacheRetention",): "usage.cache_retention.fixed",
    ("session", "compaction", "postCompactionSections"): "engine.pipeline.postCompactionSections",
    ("budgets", "perExecution"): "usage.guard.per_execution",
    ("budgets", "perHour"): "usage.guard.per_hour",
    ("budgets", "perDay"): "usage.guard.per_day",
    ("deferredTools", "neverDefer"): "usage.tool_deferral.never",
    ("deferredTools", "alwaysDefer"): "usage.tool_deferral.always",
    ("toolLifecycle", "demotionThreshold"): "usage.tool_deferral.demote_after",
    ("session", "compaction", "softThresholdRatio"): "summarizer.memory_flush.soft_ratio",
    ("session", "compaction", "hardThresholdRatio"): "summarizer.memory_flush.hard_ratio",
}
"""What an agent's configuration says of the usage of model calls, and of its memory, below the
agent."""


def recognise(data: Mapping[str, Any], name: str) -> str:
    """The host that a configuration is of, by its keys, else by its file's name. Raises
    OptionsError."""
    context, agents = _mapping(data, "context"), _mapping(data, "agents")
    if isinstance(context.get("engine"), Mapping):
        return "pyclaw"
    if "engine" in context or "compression" in data:
        return "hermes"
    if any("contextEngine" in agent for agent in agents.values() if isinstance(agent, Mapping)):
        return "comis"
    lowered = name.lower()
    kin = next((host for host in ("genesis", "fluffbuzz") if host in lowered), "openclaw")
    if "plugins" in data or "defaults" in agents:
        return kin
    for host in HOSTS:
        if host in lowered:
            return host
    raise OptionsError(
        [
            Problem(
                name or "the text",
                "is not the configuration of a known host; looked for plugins.slots or"
                " agents.defaults (OpenClaw,"
                " Genesis, FluffBuzz), context.engine or compression (Hermes),"
                " agents.*.contextEngine (Comis), context.engine.plugin (PyClaw)",
            )
        ]
    )


def openclaw(source: HostConfig) -> None:
    """OpenClaw, Genesis, FluffBuzz: the slot, the plugin in it, and what of the runtime's own
    compaction concerns us."""
    slot: Path = ("plugins", "slots", "contextEngine")
    chosen = ""
    if slot in source.leaves:
        value = source.leaves[slot]
        chosen = value.strip() if isinstance(value, str) else ""
        if value is not None and not isinstance(value, str):
            source.ignore(slot, "must be the id of an engine")
        elif (off := _switched_off(source, chosen)) is not None:
            source.choose(
                slot,
                "legacy",
                f"`{chosen}` is off ({show(off)}), and the runtime uses legacy then.",
            )
        elif chosen in ("", "none"):
            source.choose(slot, "legacy", "A blank slot means legacy.")
        else:
            _choose(source, slot, chosen)
    else:
        source.notes.append(
            "No plugins.slots.contextEngine: the default here is dag, while the runtime's own is"
            " legacy. Set engine.default to legacy to keep that."
        )
    _openclaw_plugins(source, chosen)
    compaction: Path = ("agents", "defaults", "compaction")
    keep: Path = (*compaction, "keepRecentTokens")
    if keep in source.leaves:
        source.map(keep, "engine.legacy.keepRecentTokens", source.leaves[keep])
    reserves = [(*compaction, key) for key in ("reserveTokens", "reserveTokensFloor")]
    given = {path: source.leaves[path] for path in reserves if _whole(source.leaves.get(path))}
    for path in given:
        # The runtime reserves the larger of the two.
        source.map(path, "budget.output_reserve", max(given.values()))
    cap: Path = ("agents", "defaults", "contextTokens")
    if cap in source.leaves:
        source.map(cap, "budget.window_cap", source.leaves[cap])
    source.ignore_rest(compaction, "belongs to the runtime's own summarizer, and " + _STAYS)
    pruning: Path = ("agents", "defaults", "contextPruning")
    for path in [path for path in source.leaves if path[:3] == pruning]:
        setting = _PRUNING.get(path[3:])
        if setting is not None:
            source.map(path, f"context_pruning.{setting}", source.leaves[path])
    source.ignore_rest(pruning, "is no setting of session pruning")


def _openclaw_plugins(source: HostConfig, chosen: str) -> None:
    config: Path = ("plugins", "entries", chosen, "config")
    if chosen == lossless_claw.PLUGIN:
        lossless_claw.take_over(source, _options(source, "dag"))
    source.ignore_rest(config, f"belongs to the plugin `{chosen}`, which takes its own settings")
    if chosen:
        source.ignore_rest(
            ("plugins", "entries", chosen),
            "engines are part of the server here, chosen by engine.default",
        )
    source.ignore_rest(
        ("plugins", "entries"), f"a plugin that is not the chosen context engine {_STAYS}"
    )
    source.ignore_rest(("plugins", "slots"), f"another slot {_STAYS}")
    source.ignore_rest(("plugins",), f"the loading of plugins {_STAYS}")


def _switched_off(source: HostConfig, chosen: str) -> Path | None:
    """The key that keeps the chosen plugin from being loaded."""
    if chosen in ("", "none", "legacy"):
        return None
    for path in (("plugins", "enabled"), ("plugins", "entries", chosen, "enabled")):
        if source.leaves.get(path) is False:
            return path
    denied, allowed = (
        source.leaves.get(("plugins", "deny")),
        source.leaves.get(("plugins", "allow")),
    )
    if isinstance(denied, list) and chosen in denied:
        return ("plugins", "deny")
    if isinstance(allowed, list) and allowed and chosen not in allowed:
        return ("plugins", "allow")
    return None


def hermes(source: HostConfig) -> None:
    """Hermes: the engine, and its block of compression, which is the compressor's here."""
    engine: Path = ("context", "engine")
    enabled: Path = ("compression", "enabled")
    if source.leaves.get(enabled) is False:
        source.ignore_rest(
            engine,
            "compression.enabled is false, which turns automatic compaction off for every engine",
        )
        source.choose(
            enabled,
            "legacy",
            "Compression is off: legacy evicts nothing, and compacts only when asked to.",
        )
    elif engine in source.leaves:
        value = source.leaves[engine]
        if isinstance(value, str) and value.strip():
            _choose(source, engine, value.strip())
        elif value is None or isinstance(value, str):
            source.choose(engine, "legacy", "A blank context.engine means legacy.")
        else:
            source.ignore(engine, "must be the name of an engine")
    else:
        source.notes.append(
            "No context.engine: the default here is dag, while the runtime's own is compressor."
            " Set engine.default to compressor to keep that."
        )
    length: Path = ("model", "context_length")
    if length in source.leaves:
        source.map(length, "budget.default_window", source.leaves[length])
    output: Path = ("model", "max_tokens")
    if _whole(source.leaves.get(output)):
        # As without configuration: the model's maximum output, and never more than 8,192.
        source.map(output, "budget.output_reserve", min(8192, source.leaves[output]))
    source.ignore_rest(enabled, "on is the default here")
    options = _options(source, "compressor")
    for path in [path for path in source.leaves if path[:1] == ("compression",)]:
        option = path[1] if len(path) > 1 else ""
        value = source.leaves[path]
        if option == "model_thresholds" and len(path) == 3:
            value = {path[2]: value}
        elif len(path) != 2 or to_camel(option) not in options:
            continue
        source.map(path, f"engine.compressor.{to_camel(option)}", value)
    source.ignore_rest(("compression",), "is not an option of the compressor engine")
    source.ignore_rest(("context",), f"memory of the runtime's own process {_STAYS}")
    source.ignore_rest(("auxiliary", "compression"), _SUMMARIZER)


def comis(source: HostConfig) -> None:
    """Comis: one agent's contextEngine becomes ours; where other agents differ, an operator
    assigns."""
    agents = dict.fromkeys(
        path[1] for path in source.leaves if path[0] == "agents" and "contextEngine" in path[2:3]
    )
    agent = "default" if "default" in agents else next(iter(agents), "")
    base: Path = ("agents", agent, "contextEngine")
    chosen = {path[3:]: value for path, value in source.leaves.items() if path[:3] == base}
    if len(agents) > 1:
        source.notes.append(
            f"Taken over from agent `{agent}`. For agents that differ, an operator assigns engine"
            " and options."
        )
    version, enabled = (*base, "version"), (*base, "enabled")
    if source.leaves.get(enabled) is False:
        source.ignore_rest(version, "contextEngine.enabled is false")
        source.choose(
            enabled,
            "legacy",
            "The context engine is off: legacy evicts nothing, and compacts when asked to.",
        )
    elif version in source.leaves:
        value = source.leaves[version]
        if isinstance(value, str) and value.strip():
            _choose(source, version, value.strip())
        else:
            source.ignore(version, "must be dag or pipeline")
    for below, ours in _COMIS_AGENT.items():
        leaf: Path = ("agents", agent, *below)
        if leaf in source.leaves:
            source.map(leaf, ours, source.leaves[leaf])
    for path in [path for path in source.leaves if path[:3] == base]:
        key = path[3] if len(path) > 3 else ""
        option = ".".join(path[3:])
        if option in FORMER:
            value = source.leaves[path]
            milliseconds = option.endswith("Ms") and _whole(value)
            source.map(path, f"{GROUP}.{FORMER[option]}", f"{value}ms" if milliseconds else value)
        elif option in _options(source, "dag"):
            source.map(path, f"engine.dag.{option}", source.leaves[path])
        elif {option, key} & _options(source, "pipeline"):  # a record's keys lie below it
            source.map(path, f"engine.pipeline.{option}", source.leaves[path])
        elif key in _PIPELINE_OPTIONS:
            source.ignore(path, "an option of the pipeline engine, not a setting of this version")
        elif key == "enabled":
            source.ignore(path, "on is the default here")
        else:
            source.ignore(path, "the dag engine has no such option in this version")
    for path in [
        path for path in source.leaves if path[0] == "agents" and path[2:3] == ("contextEngine",)
    ]:
        same = chosen.get(path[3:], ...) == source.leaves[path]
        other = (
            f"one set of options serves all agents; an operator assigns others to agent `{path[1]}`"
        )
        source.ignore(path, f"the same as agent `{agent}`'s" if same else other)
    source.ignore_rest(("agents",), f"not a setting of the context engine; {_STAYS}")


def pyclaw(source: HostConfig) -> None:
    """PyClaw: the plugin, and what it says of compaction and layers, which is the layered engine's
    here."""
    base: Path = ("context", "engine")
    plugin, enabled = (*base, "plugin"), (*base, "compaction", "enabled")
    named = source.leaves.get(plugin)
    if source.leaves.get(enabled) is False:
        source.ignore_rest(plugin, "compaction.enabled is false")
        source.choose(
            enabled,
            "legacy",
            "Compaction is off: legacy evicts nothing, and compacts only when asked to.",
        )
    elif plugin in source.leaves:
        value = source.leaves[plugin]
        if isinstance(value, str) and value.strip():
            _choose(source, plugin, value.strip())
        elif value is None or isinstance(value, str):
            source.choose(plugin, "legacy", "A blank plugin means legacy.")
        else:
            source.ignore(plugin, "must be the name of a plugin")
    source.ignore_rest(enabled, "on is the default here")
    ceiling: Path = (*base, "compaction", "max_tokens")
    if ceiling in source.leaves and named != "dag-compressor":
        source.map(ceiling, "budget.window_cap", source.leaves[ceiling])
    options = _options(source, "layered")
    for path in [path for path in source.leaves if path[:2] == base]:
        option = ".".join(to_camel(key) for key in path[2:])
        if option in options:
            source.map(path, f"engine.layered.{option}", source.leaves[path])
    source.ignore_rest(base, "is not an option of the layered engine")


HOSTS: dict[str, Callable[[HostConfig], None]] = {
    "openclaw": openclaw,
    "genesis": openclaw,
    "fluffbuzz": openclaw,
    "hermes": hermes,
    "comis": comis,
    "pyclaw": pyclaw,
}
"""How each host's leaves are taken over."""


def _choose(source: HostConfig, path: Path, name: str) -> None:
    why = _COUNTERPARTS.get(name, "")
    if name == "default" and source.format != "pyclaw":
        why, engine = "", name
    else:
        engine = _NAMES.get(name, name)
    source.choose(path, engine, why and f"{why[0].upper()}{why[1:]}.")


def _options(source: HostConfig, engine_id: str) -> set[str]:
    """The options that an engine has, by their paths."""
    models = (one.options for one in source.engines.registrations if one.id == engine_id)
    return {doc.path for model in models for doc in describe(model)}


def _mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    return value if isinstance(value, Mapping) else {}


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
