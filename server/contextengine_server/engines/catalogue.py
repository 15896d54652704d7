"""Which engines there are, and which were refused."""

from __future__ import annotations

import re

import msgspec
from msgspec.structs import replace

from .registration import InvalidEngine, Registration, check

DEFAULT = "dag"
"""The engine that serves where nothing is configured."""

FALLBACK = "legacy"
"""The engine that stands in for one that fails, where the configuration says so."""

CORE = "core"
"""The owner of the engines that come with the server."""


class Refused(msgspec.Struct, frozen=True):
    """An engine that is installed and cannot be chosen."""

    id: str
    owner: str
    why: InvalidEngine


class Catalogue(msgspec.Struct, frozen=True):
    """The engines that can be chosen, and those that were refused."""

    registrations: tuple[Registration, ...] = ()
    refused: tuple[Refused, ...] = ()
    disabled: tuple[str, ...] = ()
    """The names of plugins that are there and that no operator enabled."""

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
