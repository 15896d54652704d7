"""Which engines there are. One authoritative table; resolution fails closed and the error lists the
ids that exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from contextengine_server.config.schema import OptionsError, merge, parse, read_names
from contextengine_server.errors import InvalidField, UnknownEngine

from .contract import Engine
from .dag import DagEngine
from .legacy import LegacyEngine
from .options import DagOptions, LegacyOptions

DEFAULT = "dag"


@dataclass(slots=True, frozen=True)
class Registration:
    """An engine that can be chosen."""

    id: str
    owner: str
    options: type[BaseModel]
    make: Callable[[Any], Engine]


class InvalidEngine(ValueError):
    """What a factory made is not an engine."""


class Registry:
    """The engines by id, and their instances by options."""

    def __init__(self, configured: Mapping[str, BaseModel]) -> None:
        self._known: dict[str, Registration] = {}
        self._configured = dict(configured)
        self._instances: dict[tuple[str, str], Engine] = {}
        self.register(Registration("dag", "core", DagOptions, DagEngine))
        self.register(Registration("legacy", "core", LegacyOptions, LegacyEngine))

    def register(self, registration: Registration) -> None:
        """Adds an engine. An id that is taken is refused, naming its owner."""
        known = self._known.get(registration.id)
        if known is not None:
            raise ValueError(
                f"engine id {registration.id!r} is registered already by {known.owner}"
            )
        self._known[registration.id] = registration

    @property
    def ids(self) -> list[str]:
        """The ids that exist, sorted."""
        return sorted(self._known)

    def registration(self, engine_id: str) -> Registration:
        """The engine's registration. Raises UnknownEngine."""
        known = self._known.get(engine_id)
        if known is None:
            raise UnknownEngine(
                f"engine {engine_id!r} is not registered. Available engines:"
                f" {', '.join(self.ids) or '(none)'}",
                metadata={"engine": engine_id, "available": ",".join(self.ids)},
            )
        return known

    def model(self, engine_id: str) -> type[BaseModel]:
        """What the engine's options are declared as. Raises UnknownEngine."""
        return self.registration(engine_id).options

    def options(self, engine_id: str, *layers: Mapping[str, Any]) -> BaseModel:
        """The configured options with others over them, layer by layer, validated. Raises
        InvalidField, UnknownEngine."""
        model = self.model(engine_id)
        base = self._configured.get(engine_id) or model()
        given: dict[str, Any] = {}
        try:
            for layer in layers:
                # What is given is checked by itself first, so that its own names stand in the
                # message.
                named, problems = read_names(model, layer)
                if problems:
                    raise OptionsError(problems)
                given = merge(given, named)
            return parse(model, merge(base.model_dump(), given)) if given else base
        except OptionsError as error:
            raise InvalidField("options_json", str(error)) from error

    def named(self, engine_id: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options that were found valid, under their Python names."""
        return read_names(self.registration(engine_id).options, options)[0]

    def engine(self, engine_id: str, options: BaseModel) -> Engine:
        """The engine with these options, made once. Raises UnknownEngine, InvalidEngine."""
        key = (engine_id, options.model_dump_json())
        made = self._instances.get(key)
        if made is None:
            make = self.registration(engine_id).make
            try:
                made = make(options)
            except Exception as error:
                raise InvalidEngine(
                    f"engine {engine_id!r} cannot be made: {type(error).__name__}"
                ) from error
            check_contract(engine_id, made)
            self._instances[key] = made
        return made

    def instances(self) -> list[Engine]:
        """Every engine that was made, to be disposed of once each."""
        return list(self._instances.values())


_MEMBERS = ("reach", "addition", "plan", "due", "compaction", "dispose")
_FACTS = (
    "id",
    "name",
    "version",
    "owns_compaction",
    "threshold",
    "declared",
    "defers",
    "notices",
    "summary_tokens",
    "options",
    "tools",
    "fingerprint",
)


def check_contract(engine_id: str, made: object) -> None:
    """Raises InvalidEngine, listing what is missing."""
    missing = [f"missing {name}" for name in _FACTS if getattr(made, name, None) is None]
    missing += [] if hasattr(made, "chunk") else ["missing chunk"]
    missing += [f"missing {name}()" for name in _MEMBERS if not callable(getattr(made, name, None))]
    missing += [
        f"blank {name}" for name in ("id", "name") if not str(getattr(made, name, "x")).strip()
    ]
    if missing:
        raise InvalidEngine(f"engine {engine_id!r} is no valid engine: {', '.join(missing)}")
