"""The targets of projections that a service has: its own, and those of installed packages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from contextengine_server.plugins.entry_points import Plugin, PluginBroken, offered
from contextengine_server.projection.target import Target
from contextengine_server.projection.targets import OWN, Targets

GROUP = "contextengine.projection_targets"
"""The group of entry points: each is named like its target, and leads to the target's record."""


class InstalledTargets(msgspec.Struct, frozen=True):
    """What is installed."""

    targets: Targets
    packages: dict[str, str]
    """The package of each target that is not our own, with its version, by the target's name."""
    broken: Sequence[PluginBroken]
    """Why others cannot be used. They stop nothing: whoever does not ask for one is not
    concerned."""


def installed_targets() -> InstalledTargets:
    """What is installed. Reads the file system."""
    return with_plugins(offered(GROUP))


def with_plugins(plugins: Iterable[Plugin | PluginBroken]) -> InstalledTargets:
    """Our own targets and these. Of two that have one name the first stays, ours before all."""
    targets = {target.name: target for target in OWN}
    packages: dict[str, str] = {}
    broken: list[PluginBroken] = []
    for plugin in plugins:
        try:
            target = _record(plugin, targets)
        except PluginBroken as why:
            broken.append(why)
        else:
            targets[target.name] = target
            packages[target.name] = plugin.package
    return InstalledTargets(Targets(targets.values()), packages, broken)


def _record(plugin: Plugin | PluginBroken, known: dict[str, Target]) -> Target:
    if isinstance(plugin, PluginBroken):
        raise plugin
    target = plugin.value
    wrong = ""
    if not isinstance(target, Target):
        wrong = f"is not a record of a target but of type {type(target).__name__}"
    elif target.name != plugin.name:
        wrong = f"calls itself {target.name!r}: give both the same name"
    elif target.name in known:
        wrong = "is a name that another target has"
    elif target.number:
        wrong = "has a number, which only the service's own targets have: leave it out"
    if wrong:
        raise PluginBroken(GROUP, plugin.name, plugin.package, wrong)
    record: Target = target
    return record
