"""The engines of the plugins that an operator enabled."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import ModuleType

import msgspec
from msgspec.structs import replace

from contextengine_server.engines.patience import LOAD_S, TookTooLong, within
from contextengine_server.engines.registration import InvalidEngine, Registration
from contextengine_server.plugins.folder.directory import (
    FoundPlugin,
    PluginDirectory,
    package_of,
)
from contextengine_server.plugins.folder.package import load_package


class PluginEngine(msgspec.Struct, frozen=True):
    """What an enabled plugin brings along: an engine, or why none."""

    id: str
    """The engine's; where there is none, the plugin's name."""
    owner: str
    offer: Registration | InvalidEngine


def engines_of(directory: PluginDirectory, seconds: float = LOAD_S) -> Iterator[PluginEngine]:
    """Runs the code of every enabled plugin, each for so long at most. One that is broken stops
    nothing."""
    for plugin in directory.plugins():
        if not plugin.enabled:
            continue
        try:
            registration = _registration(plugin, seconds)
        except InvalidEngine as why:
            yield PluginEngine(plugin.name, plugin.owner, why)
        else:
            yield PluginEngine(registration.id, plugin.owner, registration)
    for name in directory.missing():
        gone = InvalidEngine(f"plugin:{name} is enabled, and is not in {directory.path} any more")
        yield PluginEngine(name, f"plugin:{name}", gone)


def _registration(plugin: FoundPlugin, seconds: float) -> Registration:
    if plugin.manifest is None or plugin.why:
        raise InvalidEngine(f"{plugin.owner} cannot be used: {plugin.why}")
    load = partial(load_package, plugin.name, package_of(plugin.folder, plugin.manifest))
    try:
        module = within(seconds, load)
    except TookTooLong as error:
        raise InvalidEngine(f"{plugin.owner} cannot be imported: it {error}") from error
    except Exception as error:  # whatever a stranger's module raises
        kind = type(error).__name__
        raise InvalidEngine(f"{plugin.owner} cannot be imported: {kind}") from error
    return replace(_offer(plugin, module), owner=plugin.owner)


def _offer(plugin: FoundPlugin, module: ModuleType) -> Registration:
    offer = getattr(module, "ENGINE", None)
    if isinstance(offer, Registration):
        return offer
    raise InvalidEngine(f"{plugin.owner} brings no engine along: its package has no ENGINE")
