"""What the package of a plugin brings along: an engine of ours, or one for Hermes."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel, Field, create_model

from contextengine_server.engines.hosted.engine import HostedEngine
from contextengine_server.engines.hosted.hermes import HermesHost, accepted
from contextengine_server.engines.hosted.host import EngineHost, HostedFacts
from contextengine_server.engines.hosted.options import HostedOptions
from contextengine_server.engines.registration import InvalidEngine, Registration
from contextengine_server.plugins import hermes
from contextengine_server.plugins.folder.manifest import PluginManifest

Settings = Mapping[str, Any]
"""The options that a plugin's `config` declares, by name."""
THRESHOLD = 0.75
"""Where an engine does not say from which share of the budget on it compacts: Hermes's default."""


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

    def __getattr__(self, name: str) -> Any:
        if name.startswith("register_"):
            return lambda *arguments, **named: None
        raise AttributeError(name)


def offer_of(module: ModuleType, manifest: PluginManifest, home: Path) -> Registration:
    """The engine of a package. Runs its code. Raises InvalidEngine, and what its code raises."""
    native = getattr(module, "ENGINE", None)
    if isinstance(native, Registration):
        return native
    make = _hermes_factory(module)
    if make is None:
        raise InvalidEngine(
            "it brings no engine along: its package has neither an ENGINE, nor register(ctx), nor a"
            " subclass of ContextEngine"
        )
    options = options_of(manifest)
    probe = make(_settings(options(), manifest))
    _require(probe, hermes.REQUIRED)
    facts = HostedFacts(
        str(probe.name), manifest.version, manifest.description, _share(probe, "threshold_percent")
    )

    def engine(chosen: HostedOptions) -> HostedEngine:
        settings = _settings(chosen, manifest)
        host: EngineHost = HermesHost(lambda: make(settings), str(home))
        return HostedEngine(chosen, facts, host)

    return Registration(facts.id, options, engine)


def _hermes_factory(module: ModuleType) -> Callable[[Settings], Any] | None:
    """Makes an engine for a session: by `register(ctx)`, as most plugins have it, else of the first
    class that is one."""
    register = getattr(module, "register", None)
    if callable(register):
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

        return registered
    base = _hermes_class()
    for kind in vars(module).values():
        if isinstance(kind, type) and issubclass(kind, base) and _is_of(kind, module):
            _require_whole(kind)
            return partial(_made, kind)
    return None


def _is_of(kind: type[Any], module: ModuleType) -> bool:
    """True for a class of the package itself, and not one that it imports."""
    return kind.__module__ == module.__name__ or kind.__module__.startswith(f"{module.__name__}.")


def _made(kind: type[Any], config: Settings) -> Any:
    return kind(**accepted(kind, config))


def _hermes_class() -> type[Any]:
    """The base class: that of Hermes where it is installed, else ours."""
    module = sys.modules.get("agent.context_engine", hermes)
    kind = getattr(module, "ContextEngine", hermes.ContextEngine)
    return kind if isinstance(kind, type) else hermes.ContextEngine


def cloned(engine: Any) -> Any:
    """An engine of its own for a session, of one that a plugin gives to all."""
    clone = getattr(engine, "clone_for_agent", None)
    return clone() if callable(clone) else copy.deepcopy(engine)


def _require_whole(kind: type[Any]) -> None:
    lacking = sorted(getattr(kind, "__abstractmethods__", ()))
    if lacking:
        raise InvalidEngine(f"its engine {kind.__name__} lacks {', '.join(lacking)}")


def _require(engine: Any, members: tuple[str, ...]) -> None:
    lacking = [name for name in members if not hasattr(engine, name)]
    if lacking:
        raise InvalidEngine(f"its engine {type(engine).__name__} lacks {', '.join(lacking)}")
    if not isinstance(engine.name, str) or not engine.name.strip():
        raise InvalidEngine(f"its engine {type(engine).__name__} has no name")


def _share(engine: Any, name: str) -> float:
    share = getattr(engine, name, THRESHOLD)
    return float(share) if isinstance(share, (int, float)) and 0 < share <= 1 else THRESHOLD


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
        if (
            not name.isidentifier()
            or name in HostedOptions.model_fields
            or hasattr(BaseModel, name)
        ):
            raise InvalidEngine(f"its config has an option {name!r}, which cannot be one's name")
        fields[name] = (kind, Field(default, description=declared.description or name))
    model: type[HostedOptions] = create_model(
        "HostedPluginOptions", __base__=HostedOptions, __doc__=HostedOptions.__doc__, **fields
    )
    return model


def _settings(options: HostedOptions, manifest: PluginManifest) -> Settings:
    return {name: getattr(options, name) for name in manifest.config}
