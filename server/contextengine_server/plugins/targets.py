"""The targets of projections that a service has: its own, and those of installed packages."""

from __future__ import annotations

from collections.abc import Iterable

from contextengine_server.plugins.entry_points import Plugin, PluginBroken, installed
from contextengine_server.projection.target import Target
from contextengine_server.projection.targets import OWN, Targets

GROUP = "contextengine.projection_targets"
"""The group of entry points: each names a target, and leads to its record."""


def installed_targets() -> Targets:
    """The table of all targets. Reads the file system. Raises PluginBroken."""
    return with_plugins(installed(GROUP))


def with_plugins(plugins: Iterable[Plugin]) -> Targets:
    """The table of our own targets and these. Raises PluginBroken for one that cannot be added."""
    targets = list(OWN)
    names = {target.name for target in OWN}
    for plugin in plugins:
        target = plugin.value
        if (wrong := _wrong(plugin, names)) is not None:
            raise PluginBroken(GROUP, plugin.name, plugin.package, wrong)
        names.add(target.name)
        targets.append(target)
    return Targets(targets)


def _wrong(plugin: Plugin, names: set[str]) -> str | None:
    target = plugin.value
    if not isinstance(target, Target):
        return f"is no record of a target but of type {type(target).__name__}"
    if target.name != plugin.name:
        return f"calls itself {target.name!r}: give both the same name"
    if target.number:
        return "has a number, which only the service's own targets have: leave it out"
    return "is a name that another target has" if target.name in names else None
