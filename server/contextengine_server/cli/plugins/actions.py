"""What the commands of `plugins` do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from contextengine_server.cli.output import CommandFailed, print_json, print_table
from contextengine_server.plugins.folder.directory import (
    FoundPlugin,
    PluginDirectory,
    PluginUnusable,
)

T = TypeVar("T")

NEXT_START = "it counts from the next start of the server"


def found_in(config: Path | None, directory: Path | None) -> PluginDirectory:
    """The directory that is named, or that of the settings. Raises CommandFailed."""
    from contextengine_server.config.load import SettingsError, plugins_directory

    if directory is not None:
        return PluginDirectory(directory)
    try:
        return PluginDirectory(plugins_directory(config))
    except SettingsError as error:
        raise CommandFailed(
            "the settings cannot be read: " + "; ".join(map(str, error.problems)), 2
        ) from error


def show(directory: PluginDirectory, json: bool) -> None:
    """Prints the plugins, with the engines of those that are enabled."""
    from contextengine_server.plugins.engines import installed_engines

    catalogue = installed_engines(directory.path)
    engines = {one.owner: one.id for one in catalogue.registrations}
    refused = {one.owner: one.why for one in catalogue.refused}
    rows = []
    for plugin in directory.plugins():
        why = refused.get(plugin.owner) if plugin.enabled else None
        rows.append(_row(plugin, engines.get(plugin.owner, "") if plugin.enabled else "", why))
    rows += [
        {"plugin": name, "version": "", "engine": "", "folder": "", "description": "",
         "state": "enabled, and not there any more: disable it, or put it back"}
        for name in directory.missing()
    ]  # fmt: skip
    if json:
        print_json({"directory": str(directory.path), "plugins": rows})
        return
    columns = ("plugin", "version", "engine", "state", "folder", "description")
    print_table(columns, [[row[name] for name in columns] for row in rows])


def _row(plugin: FoundPlugin, engine: str, why: ValueError | None) -> dict[str, str]:
    state = "enabled" if plugin.enabled else "not enabled"
    wrong = plugin.why or (str(why) if why is not None else "")
    folder = str(plugin.folder)
    if plugin.folder.is_symlink():
        folder += f" -> {plugin.folder.resolve()}"
    manifest = plugin.manifest
    return {
        "plugin": plugin.name,
        "version": manifest.version if manifest is not None else "",
        "engine": engine,
        "state": f"{state}, cannot be used: {wrong}" if wrong else state,
        "folder": folder,
        "description": manifest.description if manifest is not None else "",
    }


def link(directory: PluginDirectory, folder: Path) -> None:
    """Links a folder. Raises CommandFailed."""
    plugin = _tried(lambda: directory.link(folder))
    print(f"{plugin.name} is linked: {plugin.folder} -> {folder.resolve()}")
    if not plugin.enabled:
        print(f"its code does not run before `contextengine plugins enable {plugin.name}`")


def enable(directory: PluginDirectory, name: str) -> None:
    """Enables a plugin. Raises CommandFailed."""
    _tried(lambda: directory.enable(name))
    print(f"{name} is enabled: {NEXT_START}; `contextengine plugins list` says its engine's id")


def disable(directory: PluginDirectory, name: str) -> None:
    """Disables a plugin. Raises CommandFailed."""
    _tried(lambda: directory.disable(name))
    print(f"{name} is not enabled any more: {NEXT_START}")


def _tried(action: Callable[[], T]) -> T:
    try:
        return action()
    except PluginUnusable as error:
        raise CommandFailed(str(error)) from error
    except OSError as error:
        raise CommandFailed(f"{error.filename}: {error.strerror}") from error
