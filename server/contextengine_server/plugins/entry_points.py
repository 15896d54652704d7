"""Objects that installed packages offer under the name of a group, by Python's entry points."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
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


def offered(group: str) -> Iterator[Plugin | PluginBroken]:
    """The objects of a group, by name; in place of one that cannot be imported, what is wrong.
    Reads the file system."""
    for entry in _entries(group):
        try:
            yield load(entry)
        except PluginBroken as broken:
            yield broken


def names(group: str) -> list[str]:
    """The names of a group, sorted; nothing is imported. Reads the file system."""
    return [entry.name for entry in _entries(group)]


def find(group: str, name: str) -> Plugin | None:
    """The object of one name, and no other is imported; None where there is none. Reads the file
    system. Raises PluginBroken where it cannot be imported, or two packages bring one along."""
    found = [entry for entry in _entries(group) if entry.name == name]
    if len(found) > 1:
        wrong = f"{_package(found[1])} brings along as well"
        raise PluginBroken(group, name, _package(found[0]), wrong)
    return load(found[0]) if found else None


def load(entry: metadata.EntryPoint) -> Plugin:
    """What an entry point leads to. Raises PluginBroken where it cannot be imported."""
    try:
        return Plugin(entry.name, _package(entry), entry.load())
    except (Exception, SystemExit) as error:  # whatever importing a stranger's module raises
        wrong = f"cannot be imported: {type(error).__name__}: {error}"
        raise PluginBroken(entry.group, entry.name, _package(entry), wrong) from error


def _entries(group: str) -> list[metadata.EntryPoint]:
    return sorted(
        metadata.entry_points(group=group), key=lambda entry: (entry.name, _package(entry))
    )


def _package(entry: metadata.EntryPoint) -> str:
    return "a package" if entry.dist is None else _named(entry.dist)


@lru_cache(maxsize=16)  # to ask for a name or a version is to parse all of what a package says
def _named(package: metadata.Distribution) -> str:
    said = package.metadata
    return f"{said['Name']} {said['Version']}"
