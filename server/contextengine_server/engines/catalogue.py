"""Which engines are installed: those behind the entry points of the group `contextengine.engines`,
ours among them."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

import msgspec
from msgspec.structs import replace

from .registration import InvalidEngine, Registration, check

GROUP = "contextengine.engines"
"""The entry points that name a `Registration` each, by the engine's id."""

OURS = "contextengine-server"
"""The distribution whose engines are `core`."""

DEFAULT = "dag"
"""The engine that serves where nothing is configured."""

FALLBACK = "legacy"
"""The engine that stands in for one that fails, where the configuration says so."""


class Refused(msgspec.Struct, frozen=True):
    """An engine that is installed and cannot be chosen."""

    id: str
    owner: str
    why: InvalidEngine


class Catalogue(msgspec.Struct, frozen=True):
    """The engines that can be chosen, and those that were refused."""

    registrations: tuple[Registration, ...] = ()
    refused: tuple[Refused, ...] = ()

    @property
    def ids(self) -> list[str]:
        """The ids that can be chosen, sorted."""
        return sorted(registration.id for registration in self.registrations)

    def plus(self, registration: Registration) -> Catalogue:
        """With one more engine. Raises InvalidEngine where it cannot be registered."""
        check(registration)
        for known in self.registrations:
            if known.id == registration.id:
                raise InvalidEngine(
                    f"engine id {registration.id!r} is registered already by {known.owner}"
                )
            if block_name(known.id) == block_name(registration.id):
                raise InvalidEngine(
                    f"engine id {registration.id!r} has the settings of {known.id!r} of"
                    f" {known.owner}"
                )
        return replace(self, registrations=(*self.registrations, registration))

    def without(self, engine_id: str, owner: str, why: InvalidEngine) -> Catalogue:
        """With one more that was refused."""
        return replace(self, refused=(*self.refused, Refused(engine_id, owner, why)))

    def tried(self, registration: Registration) -> Catalogue:
        """With one more engine, or with why it was refused."""
        try:
            return self.plus(registration)
        except InvalidEngine as why:
            return self.without(registration.id, registration.owner, why)

    def of(self, owner: str) -> Catalogue:
        """The engines of one owner."""
        return Catalogue(tuple(one for one in self.registrations if one.owner == owner))


def block_name(engine_id: str) -> str:
    """The Python name of an engine's block of settings: what an environment variable can say."""
    return re.sub(r"\W+", "_", engine_id).strip("_").lower()


@lru_cache(maxsize=1)
def discovered() -> Catalogue:
    """What is installed. A plugin that is broken is refused and stops nothing."""
    catalogue = Catalogue()
    for entry in sorted(entry_points(group=GROUP), key=_order):
        owner = _owner(entry)
        try:
            registration = _load(entry)
        except InvalidEngine as why:
            catalogue = catalogue.without(entry.name, owner, why)
        else:
            catalogue = catalogue.tried(replace(registration, owner=owner))
    return catalogue


def _load(entry: EntryPoint) -> Registration:
    try:
        loaded = entry.load()
    except Exception as error:
        raise InvalidEngine(
            f"the plugin of engine {entry.name!r} cannot be loaded: {type(error).__name__}"
        ) from error
    if not isinstance(loaded, Registration):
        raise InvalidEngine(f"{entry.value} is a {type(loaded).__name__} and no Registration")
    if loaded.id != entry.name:
        raise InvalidEngine(f"entry point {entry.name!r} names the engine {loaded.id!r}")
    return loaded


def _owner(entry: EntryPoint) -> str:
    name = entry.dist.name if entry.dist is not None else "unknown"
    return "core" if name == OURS else f"plugin:{name}"


def _order(entry: EntryPoint) -> tuple[bool, str, str]:
    """Ours come first, so that no plugin takes their ids."""
    owner = _owner(entry)
    return owner != "core", owner, entry.name
