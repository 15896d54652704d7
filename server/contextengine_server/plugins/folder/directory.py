"""The directory of plugins: who is in it, and whom an operator enabled. Nothing here runs code of a
plugin."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from contextengine_server.plugins.folder.manifest import (
    FILE,
    ManifestInvalid,
    PluginManifest,
    read_manifest,
)

ENABLED = "enabled"
"""The file that names the plugins whose code may run, one in a line."""


class PluginUnusable(ValueError):
    """What a plugin is asked for cannot be. The text says what to do."""


class FoundPlugin(msgspec.Struct, frozen=True):
    """A folder with a `plugin.yaml`."""

    folder: Path
    manifest: PluginManifest | None = None
    """None: it cannot be used."""
    why: str = ""
    """Why it cannot."""
    enabled: bool = False

    @property
    def name(self) -> str:
        """The plugin's; of one that cannot be read, its folder's."""
        return self.manifest.name if self.manifest is not None else self.folder.name

    @property
    def owner(self) -> str:
        """Whose the engines are that it brings along."""
        return f"plugin:{self.name}"


class PluginDirectory(msgspec.Struct, frozen=True):
    """A directory whose folders are plugins."""

    path: Path

    def plugins(self) -> list[FoundPlugin]:
        """Who is there, by folder. Of two that have one name the second cannot be used."""
        enabled, taken = self._enabled(), dict[str, Path]()
        found: list[FoundPlugin] = []
        for folder in self._folders():
            try:
                manifest = read_manifest(folder)
                package_of(folder, manifest)
            except ManifestInvalid as error:
                found.append(FoundPlugin(folder, why=f"its {FILE} {error}"))
                continue
            except PluginUnusable as error:
                found.append(FoundPlugin(folder, manifest, str(error), manifest.name in enabled))
                continue
            first = taken.setdefault(manifest.name, folder)
            why = "" if first is folder else f"the plugin in {first.name} has the same name"
            found.append(FoundPlugin(folder, manifest, why, manifest.name in enabled))
        return found

    def link(self, source: Path) -> FoundPlugin:
        """Makes a folder elsewhere a plugin of this directory, by a symbolic link: nothing is
        copied, and nothing is enabled. Raises PluginUnusable."""
        source = source.resolve()
        try:
            manifest = read_manifest(source)
        except ManifestInvalid as error:
            raise PluginUnusable(f"{source / FILE} {error}") from None
        package_of(source, manifest)
        known = next((one for one in self.plugins() if one.name == manifest.name), None)
        if known is not None and known.folder.resolve() == source:
            return known
        link = self.path / manifest.name
        if known is not None or link.exists() or link.is_symlink():
            taken = known.folder if known is not None else link
            raise PluginUnusable(f"{manifest.name!r} is there already: remove {taken} first")
        self.path.mkdir(parents=True, exist_ok=True)
        link.symlink_to(source, target_is_directory=True)
        return FoundPlugin(link, manifest, enabled=manifest.name in self._enabled())

    def enable(self, name: str) -> FoundPlugin:
        """From the next start on its code runs. Raises PluginUnusable."""
        plugin = self._named(name)
        if plugin.why:
            raise PluginUnusable(f"plugin {name!r} cannot be used: {plugin.why}")
        self._write({*self._enabled(), name})
        return plugin

    def disable(self, name: str) -> None:
        """From the next start on its code does not run, whether it is still there or not. Raises
        PluginUnusable where it is neither there nor enabled."""
        enabled = self._enabled()
        if name not in enabled:
            self._named(name)
        self._write(enabled - {name})

    def _named(self, name: str) -> FoundPlugin:
        found = self.plugins()
        for plugin in found:
            if plugin.name == name:
                return plugin
        known = ", ".join(sorted(plugin.name for plugin in found)) or "(none)"
        raise PluginUnusable(f"there is no plugin {name!r} in {self.path}: {known}")

    def missing(self) -> list[str]:
        """Who is enabled and not there any more, sorted."""
        there = {plugin.name for plugin in self.plugins()}
        return sorted(self._enabled() - there)

    def _folders(self) -> Iterator[Path]:
        if not self.path.is_dir():
            return
        for child in sorted(self.path.iterdir()):
            if not child.name.startswith((".", "_")) and (child / FILE).is_file():
                yield child

    def _enabled(self) -> set[str]:
        try:
            lines = (self.path / ENABLED).read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return set()
        return {line.strip() for line in lines if line.strip()}

    def _write(self, enabled: set[str]) -> None:
        """All of it or nothing: a server may start meanwhile."""
        self.path.mkdir(parents=True, exist_ok=True)
        new = self.path / f".{ENABLED}.new"
        new.write_text("".join(f"{name}\n" for name in sorted(enabled)), encoding="utf-8")
        os.replace(new, self.path / ENABLED)


def package_of(folder: Path, manifest: PluginManifest) -> Path:
    """The file that the plugin's package begins with, within its folder wherever links lead. Raises
    PluginUnusable."""
    root = folder.resolve()
    start = (root / manifest.package / "__init__.py").resolve()
    if not start.is_relative_to(root):
        raise PluginUnusable(f"its package {manifest.package!r} leads outside its folder")
    if not start.is_file():
        raise PluginUnusable(f"its package {manifest.package!r} has no __init__.py")
    return start
