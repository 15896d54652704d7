"""`plugin.yaml`: what a plugin says of itself. Reading it runs nothing of the plugin's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import msgspec

FILE = "plugin.yaml"
"""What makes a folder a plugin. Hermes calls it so, and so do the plugins for it."""

PLUGIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
MAX_BYTES = 64 * 1024
"""A description of a plugin is not longer."""


class ManifestInvalid(ValueError):
    """A `plugin.yaml` cannot be used. A sentence without its subject."""


class PluginOption(msgspec.Struct, frozen=True):
    """One option of a plugin's block of settings, as its `config` declares it."""

    type: Literal["string", "integer", "number", "boolean"] = "string"
    default: str | int | float | bool | None = None
    """None: the empty value of its type."""
    description: str = ""


class PluginManifest(msgspec.Struct, frozen=True):
    """What a plugin says of itself. Names that are not known here are let be: other hosts read the
    same file."""

    name: str
    version: str = "0"
    description: str = ""
    engine: str = ""
    """The id of an engine for another host; empty: its own name."""
    package: str = "."
    """The folder of the package, below the plugin's own."""
    config: dict[str, PluginOption] = {}


def read_manifest(folder: Path) -> PluginManifest:
    """The folder's `plugin.yaml`. Raises ManifestInvalid."""
    import yaml  # late: most servers have no plugins

    path = folder / FILE
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ManifestInvalid(f"is larger than {MAX_BYTES} bytes")
        written = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ManifestInvalid(f"cannot be read: {type(error).__name__}") from error
    if not isinstance(written, dict):
        raise ManifestInvalid("must be a mapping with at least a `name`")
    try:
        manifest = msgspec.convert(_plain(written), PluginManifest, strict=False)
    except msgspec.ValidationError as error:
        raise ManifestInvalid(f"cannot be used: {error}") from error
    if not PLUGIN_NAME.fullmatch(manifest.name):
        raise ManifestInvalid(f"has the name {manifest.name!r}: letters, digits and . _ - only")
    return manifest


def _plain(written: dict[Any, Any]) -> dict[str, Any]:
    """With the texts that YAML took for numbers, such as the version 1.0, and with the options that
    are written as their defaults alone."""
    texts = {key: str(written[key]) for key in ("name", "version", "description") if key in written}
    plain = {**{str(key): value for key, value in written.items()}, **texts}
    if isinstance(plain.get("config"), dict):
        declared = {str(name): _declared(value) for name, value in plain["config"].items()}
        plain["config"] = {name: value for name, value in declared.items() if value is not None}
    return plain


_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}


def _declared(value: object) -> object:
    """An option that is declared; of a plain value what declares it; None: it is a list or a group
    of options, which the plugin reads itself."""
    if type(value) in _TYPES:
        return {"type": _TYPES[type(value)], "default": value}
    if isinstance(value, dict) and not set(value) <= {"type", "default", "description"}:
        return None
    return None if value is None or isinstance(value, list) else value
