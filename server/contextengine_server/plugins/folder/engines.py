"""The engines of the plugins that an operator enabled."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from contextengine_server.engines.patience import LOAD_S, TookTooLong, kind_of, within
from contextengine_server.engines.registration import InvalidEngine, Registration
from contextengine_server.plugins.folder.aliases import stand_in
from contextengine_server.plugins.folder.directory import (
    FoundPlugin,
    PluginDirectory,
    package_of,
)
from contextengine_server.plugins.folder.offers import load_offer
from contextengine_server.plugins.folder.package import load_package

HOME = ".hermes"
"""Below the directory of plugins: what plugins for Hermes are told to keep their files in."""


class PluginEngine(msgspec.Struct, frozen=True):
    """What an enabled plugin brings along: an engine, or why none."""

    id: str
    """The engine's; where there is none, the plugin's name."""
    owner: str
    offer: Registration | InvalidEngine


def engines_of(directory: PluginDirectory, seconds: float = LOAD_S) -> Iterator[PluginEngine]:
    """Runs the code of every enabled plugin, each for so long at most. One that is broken stops
    nothing."""
    enabled = [plugin for plugin in directory.plugins() if plugin.enabled]
    home = directory.path.absolute() / HOME
    if enabled:
        stand_in(home)
    for plugin in enabled:
        try:
            registration = _registration(plugin, home, seconds)
        except InvalidEngine as why:
            yield PluginEngine(plugin.name, plugin.owner, why)
        else:
            yield PluginEngine(registration.id, plugin.owner, registration)
    for name in directory.missing():
        gone = InvalidEngine(f"plugin:{name} is enabled, and is not in {directory.path} any more")
        yield PluginEngine(name, f"plugin:{name}", gone)


def _registration(plugin: FoundPlugin, home: Path, seconds: float) -> Registration:
    manifest = plugin.manifest
    if manifest is None or plugin.why:
        raise InvalidEngine(f"{plugin.owner} cannot be used: {plugin.why}")
    start = package_of(plugin.folder, manifest)

    def load() -> Registration:
        return load_offer(
            partial(load_package, manifest.name, start), manifest, plugin.folder, home
        )

    try:
        return replace(within(seconds, load), owner=plugin.owner)
    except InvalidEngine as error:
        raise InvalidEngine(f"{plugin.owner} cannot be used: {error}") from error
    except TookTooLong as error:
        raise InvalidEngine(f"{plugin.owner} cannot be imported: it {error}") from error
    except Exception as error:  # whatever a stranger's module raises
        raise InvalidEngine(f"{plugin.owner} cannot be imported: {kind_of(error)}") from error
