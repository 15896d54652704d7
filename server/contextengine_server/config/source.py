"""A host's configuration while it is taken over: its leaves, and what became of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from contextengine_server.config.schema import OptionsError, merge, parse
from contextengine_server.config.settings import settings_with
from contextengine_server.engines.catalogue import DEFAULT, Catalogue

Path = tuple[str, ...]

COMING = {"layered": "PyClaw"}
"""Engines that are kept by name, though a build may not have them yet, and the host that each comes
from."""


class Mapped(NamedTuple):
    """A key that was taken over."""

    source: str
    ours: str
    value: Any


class Ignored(NamedTuple):
    """A key that was not, and why. Its value is left out: it may be a secret."""

    source: str
    reason: str


@dataclass
class HostConfig:
    """A file being taken over: its leaves by path, and what became of each."""

    format: str
    leaves: dict[Path, Any]
    engines: Catalogue
    mapped: list[Mapped] = field(default_factory=list)
    ignored: list[Ignored] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)

    def map(self, path: Path, ours: str, value: Any) -> bool:
        """Takes a leaf over as the setting `ours`. A value that the setting does not admit is
        ignored with the reason, and the answer is False."""
        self.leaves.pop(path, None)
        nested: Any = value
        for part in reversed(ours.split(".")):
            nested = {part: nested}
        try:
            parse(settings_with(self.engines), nested)
        except OptionsError as error:
            self.ignored.append(Ignored(show(path), f"{error.problems[0]}; our default stays"))
            return False
        self.settings = merge(self.settings, nested)
        self.mapped.append(Mapped(show(path), ours, value))
        return True

    def ignore(self, path: Path, reason: str) -> None:
        """Lists a leaf as ignored."""
        self.leaves.pop(path, None)
        self.ignored.append(Ignored(show(path), reason))

    def ignore_rest(self, prefix: Path, reason: str) -> None:
        """Lists every leaf below a path that nothing has taken yet as ignored."""
        for path in [path for path in self.leaves if path[: len(prefix)] == prefix]:
            self.ignore(path, reason)

    def choose(self, path: Path, engine: str, why: str = "") -> None:
        """Makes `engine` the default, and notes what must be known of the choice."""
        if self.map(path, "engine.default", engine) and why:
            self.notes.append(why)

    def note_engine(self) -> None:
        """Notes an engine that this build does not have."""
        engine = self.settings.get("engine", {}).get("default", DEFAULT)
        if engine in self.engines.ids:
            return
        origin = f", the engine of {COMING[engine]}," if engine in COMING else ""
        self.notes.append(
            f"Engine `{engine}`{origin} is not in this build: the server refuses to start until it"
            f" is there. Available now: {', '.join(self.engines.ids)}."
        )


def show(path: Path) -> str:
    """A path as one would write it."""
    return ".".join(path)
