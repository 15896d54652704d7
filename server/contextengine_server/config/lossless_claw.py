"""What the settings of the OpenClaw plugin lossless-claw mean here (docs/dag.md, "Options of
lossless-claw")."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from contextengine_server.config.policy import GROUP
from contextengine_server.config.source import HostConfig, Mapped, Path, show

PLUGIN = "lossless-claw"

_SETTINGS = {
    "maxAssemblyTokenBudget": "budget.window_cap",
    "circuitBreakerThreshold": f"{GROUP}.breaker.failure_threshold",
    "circuitBreakerCooldownMs": f"{GROUP}.breaker.reset_timeout",
}

_TREATMENT = {
    "ignoreSessionPatterns": "sessions.ignored",
    "statelessSessionPatterns": "sessions.stateless",
}
"""Globs over session keys; `*` and `**` mean the same here."""

_SPEND = "calls are not counted here: summarizer.spend bounds a tenant's tokens per hour and day"
_PAYLOADS = "payloads stay in their messages, and over a cap are shown head and tail"
_HARNESS = "a harness runs its own subagents, with a grant of PrepareSubagentSpawn"
_FANOUT = "summaries are folded by engine.dag.condensedMinFanout alone"
_BOUNDS = "the passes of a job are bounded, each summary by summarizer.deadline"
_IDS = "ids say what was stored: no burst is refused or lost"
_STORE = "our store is a file of its own: store.url"

_REASONS = {
    "freshTailCount": "counts messages, while engine.dag.freshTailTurns counts steps of several",
    "freshTailMaxTokens": "the budget bounds the tail",
    "promptAwareEviction": "what is shown does not depend on a prompt, so that it can be cached",
    "contextThresholdOverrides": "an operator assigns options by pattern, model and window",
    **dict.fromkeys(
        (
            "stubLargeToolPayloads",
            "largeFileThresholdTokens",
            "largeFileTokenThreshold",
            "largeFilesDir",
            "largeFileSummaryModel",
            "largeFileSummaryProvider",
        ),
        _PAYLOADS,
    ),
    "skipStatelessSessions": "sessions.stateless says which there are",
    "newSessionRetainDepth": "Bootstrap with `continues` carries a view into a new session",
    **dict.fromkeys(
        (
            "leafMinFanout",
            "condensedMinFanoutHard",
            "sweepMaxDepth",
            "incrementalMaxDepth",
            "summaryPrefixTargetTokens",
        ),
        _FANOUT,
    ),
    "summaryMaxOverageFactor": "a summary far over its target is cut, and no larger one is taken",
    "fallbackMaxTokens": "the last resort is a note of at most 96 tokens that counts",
    **dict.fromkeys(
        ("maxSweepIterations", "sweepDeadlineMs", "compactUntilUnderDeadlineMs"), _BOUNDS
    ),
    "bootstrapMaxTokens": "history is stored whole",
    "enableSummaryThinking": "how a model thinks is its endpoint's affair",
    **dict.fromkeys(("expansionModel", "expansionProvider", "delegationTimeoutMs"), _HARNESS),
    **dict.fromkeys(
        ("summaryCallWindowMs", "summaryMaxCallsPerWindow", "summarySpendBackoffMs"), _SPEND
    ),
    "customInstructions": "`focus` of Compact steers a summary, and never stands in one",
    **dict.fromkeys(("replayFloodThresholdExternal", "replayFloodThresholdInternal"), _IDS),
    "stripInjectedContextTags": "what a harness stores it sees again; our own items are known",
    "pruneHeartbeatOk": "a heartbeat (AfterTurn.is_heartbeat) is stored like every other turn",
    "timezone": "times are in UTC",
    **dict.fromkeys(("databasePath", "dbPath"), _STORE),
    "independentLogFile": "logs are set by telemetry.logs",
    "enabled": "on is the default here",
    "hostFallbackMode": (
        "a host that cannot assemble is served all the same, and told what it does without"
    ),
    **dict.fromkeys(
        ("transcriptGcEnabled", "autoRotateSessionFiles"),
        "transcripts are the harness's: Maintain may propose, the harness rewrites",
    ),
    **dict.fromkeys(
        ("cacheAwareCompaction", "dynamicLeafChunkTokens"), "does nothing in lossless-claw either"
    ),
}
"""Why a setting has no counterpart."""

_KNOWN_SERVICES = {
    "openai": "https://api.openai.com/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "ollama": "http://127.0.0.1:11434/v1",
}
"""Addresses of services that OpenClaw knows without a configuration."""
_WIRES = ("openai-completions", "openai-responses", "")
"""The wires of providers whose address takes OpenAI's chat completions as well."""
_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)\}")


def take_over(source: HostConfig, options: Collection[str]) -> None:
    """Takes the plugin's settings over. `options` are those of the engine dag."""
    config: Path = ("plugins", "entries", PLUGIN, "config")
    given = {path[4]: path for path in source.leaves if path[:4] == config and len(path) == 5}
    for key in ("summaryProvider", "summaryModel", "fallbackProviders", "summaryTimeoutMs"):
        given.pop(key, None)
    for key, path in given.items():
        value = source.leaves[path]
        if key in options:
            source.map(path, f"engine.dag.{key}", value)
        elif key in _SETTINGS:
            _setting(source, path, _SETTINGS[key], value)
        elif key == "proactiveThresholdCompactionMode":
            source.map(path, "engine.dag.deferCompaction", value != "inline")
        elif key in _TREATMENT:
            _treatment(source, path, config, value)
        elif key in _REASONS:
            source.ignore(path, _REASONS[key])
    _models(source, config)
    source.ignore_rest(config, "the dag engine has no such setting")


def _setting(source: HostConfig, path: Path, ours: str, value: Any) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if ours == "budget.window_cap" and whole:
        host: Any = source.leaves.get(("agents", "defaults", "contextTokens"))
        if isinstance(host, int) and 0 < host < value:
            source.ignore(path, f"agents.defaults.contextTokens is smaller: {host}")
            return
    milliseconds = path[-1].endswith("Ms") and whole
    if source.map(path, ours, f"{value}ms" if milliseconds else value) and (
        ours == "budget.window_cap"
    ):
        source.ignore_rest(
            ("agents", "defaults", "contextTokens"),
            "lossless-claw's maxAssemblyTokenBudget is smaller",
        )


def _treatment(source: HostConfig, path: Path, config: Path, value: Any) -> None:
    """Globs over session keys as ours: there `?` and a backslash are characters like others."""
    stateless = path[-1] == "statelessSessionPatterns"
    if stateless and source.leaves.get((*config, "skipStatelessSessions")) is False:
        source.ignore(path, "skipStatelessSessions is off, so nothing follows from it")
    elif isinstance(value, list) and all(isinstance(glob, str) for glob in value):
        globs = [re.sub(r"([?\\])", r"\\\1", glob) for glob in value]
        source.map(path, _TREATMENT[path[-1]], [{"key": glob} for glob in globs if glob])
    else:
        source.ignore(path, "is no list of patterns")


def _models(source: HostConfig, config: Path) -> None:
    """Models of summaries as endpoints: a setting that names one without an address would leave
    summaries to extraction, which nobody chose."""
    timeout: Path = (*config, "summaryTimeoutMs")
    named = [*_summary_model(source, config), *_fallbacks(source, config)]
    endpoints: dict[str, dict[str, Any]] = {}
    for provider, model in named:
        if provider.lower() not in endpoints:
            endpoint = _endpoint(source, provider, model)
            if endpoint is not None:
                endpoints[provider.lower()] = endpoint
    milliseconds = source.leaves.get(timeout)
    if isinstance(milliseconds, int) and not isinstance(milliseconds, bool) and endpoints:
        for endpoint in endpoints.values():
            endpoint["timeout"] = f"{milliseconds}ms"
    if not endpoints:
        source.ignore_rest(
            timeout,
            "is the `timeout` of an endpoint, and no model of summaries has an address here",
        )
        return
    path: Path = ("models", "providers", next(iter(endpoints)), "baseUrl")
    if (
        source.map(path, f"{GROUP}.endpoints", list(endpoints.values()))
        and timeout in source.leaves
    ):
        source.leaves.pop(timeout)
        source.mapped.append(Mapped(show(timeout), f"{GROUP}.endpoints", f"{milliseconds}ms"))


def _summary_model(source: HostConfig, config: Path) -> list[tuple[str, str]]:
    provider_at, model_at = (*config, "summaryProvider"), (*config, "summaryModel")
    provider, model = (_text(source, path) for path in (provider_at, model_at))
    if "/" in model:  # as OpenClaw writes a model of a provider, which counts before the other name
        named, _, model = model.partition("/")
        if provider and provider.lower() != named.lower():
            source.ignore(provider_at, f"{show(model_at)} names its provider itself, {named}")
        provider = named
    if not model:
        for path in (provider_at, model_at):
            source.ignore_rest(path, "names no model: summaries are made as summarizer.order says")
        return []
    if not provider:
        source.ignore_rest(
            model_at, f"names no provider: set {GROUP}.model to the name of an endpoint and a model"
        )
        return []
    if not source.map(model_at, f"{GROUP}.model", f"{provider.lower()}:{model}"):
        return []
    if provider_at in source.leaves:
        source.leaves.pop(provider_at)
        source.mapped.append(Mapped(show(provider_at), f"{GROUP}.model", provider.lower()))
    return [(provider, model)]


def _fallbacks(source: HostConfig, config: Path) -> list[tuple[str, str]]:
    path: Path = (*config, "fallbackProviders")
    if path not in source.leaves:
        return []
    value = source.leaves[path]
    entries = value.split(",") if isinstance(value, str) else value
    named: list[tuple[str, str]] = []
    for entry in entries if isinstance(entries, list) else []:
        provider, model = "", ""
        if isinstance(entry, str):
            provider, _, model = entry.strip().partition("/")
        elif isinstance(entry, Mapping):
            provider, model = str(entry.get("provider", "")), str(entry.get("model", ""))
        if provider.strip() and model.strip():
            named.append((provider.strip(), model.strip()))
    if not named:
        source.ignore(path, "names no model of a provider")
        return []
    models = [f"{provider.lower()}:{model}" for provider, model in named]
    return named if source.map(path, f"{GROUP}.fallbacks", models) else []


def _endpoint(source: HostConfig, provider: str, model: str) -> dict[str, Any] | None:
    """The provider as an endpoint, by what the file says of it. None: not enough, and a note says
    what to add."""
    base: Path = ("models", "providers", provider)
    address = _text(source, (*base, "baseUrl")) or _KNOWN_SERVICES.get(provider.lower(), "")
    wire = _text(source, (*base, "api"))
    name = provider.lower()
    if not address or wire not in _WIRES:
        why = f"its wire is {wire}" if wire not in _WIRES else "the file has no address of it"
        source.notes.append(
            f"Summaries by {name}:{model} need an endpoint named {name} in {GROUP}.endpoints that"
            f" speaks OpenAI's chat completions ({why}); until then they are made without a model."
        )
        return None
    key = source.leaves.get((*base, "apiKey"))
    variable = _VARIABLE.fullmatch(key) if isinstance(key, str) else None
    made: dict[str, Any] = {"name": name, "base_url": address, "model": model}
    if variable is not None:
        made["api_key_env"] = variable[1]
    elif name != "ollama":
        made["api_key_env"] = re.sub(r"\W", "_", provider.upper()) + "_API_KEY"
        source.notes.append(
            f"Put the key of {name} into the environment variable {made['api_key_env']}: no key is"
            " taken over."
        )
    models = source.leaves.get((*base, "models"))
    for known in models if isinstance(models, list) else []:
        if isinstance(known, Mapping) and known.get("id") == model:
            window = known.get("contextWindow")
            if isinstance(window, int) and not isinstance(window, bool) and window >= 4096:
                made["window"] = window
    return made


def _text(source: HostConfig, path: Path) -> str:
    value = source.leaves.get(path)
    return value.strip() if isinstance(value, str) else ""
