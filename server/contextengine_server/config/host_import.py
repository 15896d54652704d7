"""Configuration of other runtimes made ours: OpenClaw and its kin Genesis and FluffBuzz, Hermes,
Comis, PyClaw.

Every key of the file ends up in one of two lists, what was mapped or what was ignored and why; none
is lost silently. What the keys of each host mean stands in `config.hosts`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import yaml

from contextengine_server.config.formats import Keyed, read_json5, read_yaml
from contextengine_server.config.hosts import HOSTS, recognise
from contextengine_server.config.schema import OptionsError, Problem
from contextengine_server.config.source import HostConfig, Ignored, Mapped, Path, show
from contextengine_server.engines.catalogue import Catalogue
from contextengine_server.plugins.engines import installed_engines


class ImportedConfig(msgspec.Struct, frozen=True):
    """What came of a file."""

    format: str
    """openclaw, genesis, fluffbuzz, hermes, comis or pyclaw."""
    settings_yaml: str
    """Our settings, ready to be saved as contextengine.yaml."""
    mapped: list[Mapped]
    ignored: list[Ignored]
    notes: list[str]
    """What the operator should know besides."""


def import_config(text: str, name: str = "", engines: Catalogue | None = None) -> ImportedConfig:
    """Our settings from a host's configuration file.

    `name` is the file's name or path: it tells JSON5 from YAML, and OpenClaw from its kin, where
    the text does not. `engines` are those there are; None: what is installed. Raises OptionsError
    where the text cannot be read or is of no known host.
    """
    data = _read(text, name or "the text")
    host = recognise(data, name)
    source = HostConfig(
        host, dict(_leaves(data)), installed_engines() if engines is None else engines
    )
    for path in _shadowed(data):
        source.ignored.append(Ignored(show(path), "given again further down; the last one counts"))
    HOSTS[host](source)
    source.ignore_rest((), "not about context; stays with the runtime")
    source.note_engine()
    return ImportedConfig(host, _document(source), source.mapped, source.ignored, source.notes)


def _read(text: str, name: str) -> Mapping[str, Any]:
    text = text.removeprefix("\ufeff")
    # JSON5 begins with a brace, once its comments are gone; no host writes YAML so.
    bare = re.sub(r"/\*[\s\S]*?\*/|^\s*(?://|#).*$", "", text, flags=re.MULTILINE)
    data = (read_json5 if bare.lstrip().startswith("{") else read_yaml)(text, name)
    if not isinstance(data, Mapping):
        raise OptionsError(
            [Problem(name, "must be a configuration file: a mapping of names to values")]
        )
    return data


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif path:
        yield path, value


def _shadowed(value: Any, path: Path = ()) -> Iterator[Path]:
    if not isinstance(value, Mapping):
        return
    if isinstance(value, Keyed):
        for key, lost in value.shadowed:
            yield from (leaf for leaf, _ in _leaves(lost, (*path, key)))
    for key, inner in value.items():
        yield from _shadowed(inner, (*path, key))


def _document(source: HostConfig) -> str:
    rows = [f"# Taken over from a configuration of {source.format}."]
    # A note may quote the file: nothing in it may end the comment.
    rows += [
        "# " + "".join(char if char.isprintable() else "?" for char in note)
        for note in source.notes
    ]
    if source.settings:
        rows.append(yaml.safe_dump(source.settings, sort_keys=False, allow_unicode=True).rstrip())
    else:
        rows.append("# Nothing differs from the defaults.")
    return "\n".join(rows) + "\n"
