"""Objects that installed packages offer under the name of a group, by Python's entry points."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata
from typing import Any

import msgspec


class Plugin(msgspec.Struct, frozen=True):
    """An object of an installed package."""

    name: str
    """The entry point's name."""
    package: str
    """The distribution that brings it along, with its version."""
    value: Any


class PluginBroken(Exception):
    """An installed package brings along what cannot be used. The text names the package and the
    object, says what is wrong, and what to do."""

    def __init__(self, group: str, name: str, package: str, wrong: str) -> None:
        self.name = name
        self.package = package
        super().__init__(
            f"{package} brings along {name!r} in the group {group}, which {wrong}."
            f" Mend or uninstall {package.partition(' ')[0]}"
        )


def installed(group: str) -> list[Plugin]:
    """The objects of a group, by name. Reads the file system. Raises PluginBroken for one that
    cannot be imported."""
    found = []
    for plugin in offered(group):
        if isinstance(plugin, PluginBroken):
            raise plugin
        found.append(plugin)
    return found


def offered(group: str) -> Iterator[Plugin | PluginBroken]:
    """The same, with what is wrong in place of one that cannot be imported."""
    for entry in sorted(metadata.entry_points(group=group), key=lambda entry: entry.name):
        try:
            yield Plugin(entry.name, _package(entry), _value(group, entry))
        except PluginBroken as broken:
            yield broken


def _package(entry: metadata.EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "a package"


def _value(group: str, entry: metadata.EntryPoint) -> Any:
    try:
        return entry.load()
    except Exception as error:  # whatever importing a stranger's module raises
        wrong = f"cannot be imported: {type(error).__name__}: {error}"
        raise PluginBroken(group, entry.name, _package(entry), wrong) from error
