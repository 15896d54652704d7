"""The engines of installed packages, our own by the same door, and of plugins in a directory."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from msgspec.structs import replace

from contextengine_server.engines.catalogue import CORE, Catalogue
from contextengine_server.engines.registration import InvalidEngine, Registration
from contextengine_server.plugins.entry_points import Plugin, PluginBroken, offered
from contextengine_server.plugins.folder.directory import PluginDirectory
from contextengine_server.plugins.folder.engines import engines_of

GROUP = "contextengine.engines"
"""The group of entry points: each is named by an engine's id, and leads to its `Registration`."""

OURS = "contextengine-server"
"""The package whose engines are `core`."""


@lru_cache(maxsize=4)
def installed_engines(directory: Path | None = None) -> Catalogue:
    """What is installed, and what is enabled in a directory of plugins, looked for once. A plugin
    that is broken is refused and stops nothing: whoever does not choose it is not concerned. Ours
    come first, then packages, then the directory: of two that have one id the first stays."""
    catalogue = Catalogue()
    for plugin in sorted(offered(GROUP), key=_order):
        owner = _owner(plugin)
        try:
            registration = _registration(plugin)
        except InvalidEngine as why:
            catalogue = catalogue.without(plugin.name, owner, why)
        else:
            catalogue = catalogue.tried(replace(registration, owner=owner))
    if directory is None:
        return catalogue
    plugins = PluginDirectory(directory)
    for found in engines_of(plugins):
        if isinstance(found.offer, InvalidEngine):
            catalogue = catalogue.without(found.id, found.owner, found.offer)
        else:
            catalogue = catalogue.tried(found.offer)
    off = [plugin.name for plugin in plugins.plugins() if not plugin.enabled]
    return replace(catalogue, disabled=tuple(off))


def _registration(plugin: Plugin | PluginBroken) -> Registration:
    if isinstance(plugin, PluginBroken):
        kind = type(plugin.__cause__).__name__
        raise InvalidEngine(
            f"the plugin of engine {plugin.name!r} cannot be imported: {kind}"
        ) from plugin.__cause__
    offer = plugin.value
    if not isinstance(offer, Registration):
        raise InvalidEngine(
            f"the plugin of engine {plugin.name!r} is of type {type(offer).__name__} and no"
            " Registration"
        )
    if offer.id != plugin.name:
        raise InvalidEngine(f"entry point {plugin.name!r} leads to the engine {offer.id!r}")
    return offer


def _owner(plugin: Plugin | PluginBroken) -> str:
    name = plugin.package.partition(" ")[0]
    return CORE if name == OURS else f"plugin:{name}"


def _order(plugin: Plugin | PluginBroken) -> tuple[bool, str, str]:
    """Ours come first, so that no plugin takes their ids."""
    owner = _owner(plugin)
    return owner != CORE, owner, plugin.name
