"""What the package of a plugin brings along: an engine of ours, or one for Hermes or PyClaw."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
from pydantic import BaseModel, Field, create_model

from contextengine_server.engines.hosted.engine import HostedEngine
from contextengine_server.engines.hosted.hermes import HermesHost, accepted
from contextengine_server.engines.hosted.host import EngineHost, HostedFacts
from contextengine_server.engines.hosted.options import HostedOptions
from contextengine_server.engines.hosted.pyclaw import PyclawHost
from contextengine_server.engines.registration import InvalidEngine, Registration
from contextengine_server.plugins import hermes, pyclaw
from contextengine_server.plugins.folder.manifest import PluginManifest

Settings = Mapping[str, Any]
"""The options that a plugin's `config` declares, by name."""
HERMES_THRESHOLD = 0.75
"""The share of the budget from which on an engine compacts that does not say: Hermes's default."""
PYCLAW_THRESHOLD = 0.7
"""The same for PyClaw: all but its `reserve_ratio`."""


class HermesContext:
    """What `register(ctx)` is given. It takes an engine; whatever else a plugin registers with its
    host has no place here, and is let be."""

    def __init__(self, config: Settings) -> None:
        self.config = dict(config)
        self.engines: list[Any] = []

    def register_context_engine(self, engine: Any) -> None:
        """Takes the first: an engine is alone in its slot."""
        if not self.engines:
            self.engines.append(engine)

    def get_config(self, name: str, default: Any = None) -> Any:
        """An option of the plugin's block of settings."""
        return self.config.get(name, default)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("register_"):
            return lambda *arguments, **named: None
        raise AttributeError(name)


class HostedKind(msgspec.Struct, frozen=True):
    """How engines of another host are made, and asked."""

    make: Callable[[Settings], Any]
    """Makes an engine for a session, of its own."""
    required: tuple[str, ...]
    host: Callable[[Callable[[], Any]], EngineHost]
    threshold: float


def load_offer(
    load: Callable[[], ModuleType], manifest: PluginManifest, folder: Path, home: Path
) -> Registration:
    """The engine of a package that `load` imports; `folder`: the plugin's. Runs its code. Raises
    InvalidEngine, and what its code raises."""
    registry = pyclaw.ContextEnginePluginRegistry
    registry.reset()
    try:
        module = load()
        native = getattr(module, "ENGINE", None)
        if isinstance(native, Registration):
            return native
        registered = registry.get_instance().get_default()
        kind = _hermes(module, home) or _pyclaw(module, registered, manifest.name, folder)
    finally:
        registry.reset()
    if kind is None:
        raise InvalidEngine(
            "it brings no engine along: its package has neither an ENGINE, nor register(ctx), nor a"
            " subclass of ContextEngine or of ContextEnginePlugin"
        )
    return _hosted(kind, manifest)


def _hosted(kind: HostedKind, manifest: PluginManifest) -> Registration:
    options = options_of(manifest)
    probe = kind.make(_settings(options(), manifest))
    _require(probe, kind.required)
    share = getattr(probe, "threshold_percent", None)
    says = isinstance(share, (int, float)) and 0 < share <= 1
    facts = HostedFacts(
        manifest.engine or probe.name,
        manifest.version,
        manifest.description,
        float(share) if share is not None and says else kind.threshold,
    )

    def engine(chosen: HostedOptions) -> HostedEngine:
        settings = _settings(chosen, manifest)
        return HostedEngine(chosen, facts, kind.host(lambda: kind.make(settings)))

    return Registration(facts.id, options, engine)


def _hermes(module: ModuleType, home: Path) -> HostedKind | None:
    """By `register(ctx)`, as most plugins for Hermes have it, else of the first class that is an
    engine for it."""

    def of(make: Callable[[Settings], Any]) -> HostedKind:
        return HostedKind(
            make, hermes.REQUIRED, lambda one: HermesHost(one, str(home)), HERMES_THRESHOLD
        )

    register = getattr(module, "register", None)
    if not callable(register):
        kind = _class_of(module, _base("agent.context_engine", hermes.ContextEngine))
        return of(partial(_made, kind)) if kind is not None else None
    seen: list[Any] = []

    def registered(config: Settings) -> Any:
        context = HermesContext(config)
        register(context)
        if not context.engines:
            raise InvalidEngine("its register(ctx) registers no engine")
        engine = context.engines[0]
        shared = any(engine is one for one in seen)
        seen[:] = [engine]
        return cloned(engine) if shared else engine

    return of(registered)


def _pyclaw(module: ModuleType, registered: Any, plugin: str, folder: Path) -> HostedKind | None:
    """What the package registered when it was imported, else of the first class that is a plugin
    for PyClaw."""
    kind = _class_of(module, _base("pyclaw.agents.context.plugins", pyclaw.ContextEnginePlugin))
    if registered is None and kind is None:
        return None

    def make(config: Settings) -> Any:
        return (
            _made(kind, config) if kind is not None and registered is None else cloned(registered)
        )

    return HostedKind(
        make,
        pyclaw.REQUIRED,
        lambda one: PyclawHost(one, pyclaw.ContextState, plugin, folder),
        PYCLAW_THRESHOLD,
    )


def _class_of(module: ModuleType, base: type[Any]) -> type[Any] | None:
    """The first class of a package that is of this kind: its own, and none that it imports. Raises
    InvalidEngine where that lacks a member."""
    for kind in vars(module).values():
        if not isinstance(kind, type) or not issubclass(kind, base):
            continue
        if (kind.__module__ + ".").startswith(f"{module.__name__}."):
            lacking = sorted(getattr(kind, "__abstractmethods__", ()))
            if lacking:
                raise InvalidEngine(f"its engine {kind.__name__} lacks {', '.join(lacking)}")
            return kind
    return None


def _made(kind: type[Any], config: Settings) -> Any:
    return kind(**accepted(kind, config))


def _base(module_name: str, ours: type[Any]) -> type[Any]:
    """A base class: that of the other host where it is installed, else ours."""
    kind = getattr(sys.modules.get(module_name), ours.__name__, ours)
    return kind if isinstance(kind, type) else ours


def cloned(engine: Any) -> Any:
    """An engine of its own for a session, of one that a plugin gives to all."""
    clone = getattr(engine, "clone_for_agent", None)
    return clone() if callable(clone) else copy.deepcopy(engine)


def _require(engine: Any, members: tuple[str, ...]) -> None:
    lacking = [name for name in members if not hasattr(engine, name)]
    if lacking:
        raise InvalidEngine(f"its engine {type(engine).__name__} lacks {', '.join(lacking)}")
    if not isinstance(engine.name, str) or not engine.name.strip():
        raise InvalidEngine(f"its engine {type(engine).__name__} has no name")
    available = getattr(engine, "is_available", None)
    if callable(available) and not available():
        raise InvalidEngine(f"its engine {type(engine).__name__} says that it is not available")


TAKEN = frozenset({*HostedOptions.model_fields, *dir(BaseModel), "summarizer"})
"""What no option of a plugin may be called."""

_EMPTY: dict[str, tuple[type[Any], Any]] = {
    "string": (str, ""),
    "integer": (int, 0),
    "number": (float, 0.0),
    "boolean": (bool, False),
}


def options_of(manifest: PluginManifest) -> type[HostedOptions]:
    """The block of settings of a hosted engine: every such engine's, and what `config` declares.
    Raises InvalidEngine."""
    fields: dict[str, Any] = {}
    for name, declared in manifest.config.items():
        kind, empty = _EMPTY[declared.type]
        default = empty if declared.default is None else declared.default
        if not name.isidentifier() or name in TAKEN:
            raise InvalidEngine(f"its config has an option {name!r}, which cannot be one's name")
        fields[name] = (kind, Field(default, description=declared.description or name))
    model: type[HostedOptions] = create_model(
        "HostedPluginOptions", __base__=HostedOptions, __doc__=HostedOptions.__doc__, **fields
    )
    return model


def _settings(options: HostedOptions, manifest: PluginManifest) -> Settings:
    return {name: getattr(options, name) for name in manifest.config}
