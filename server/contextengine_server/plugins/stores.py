"""Which store a URL names: one of our own, or one of an installed package."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint

from contextengine_server.plugins.entry_points import PluginBroken, find, load, names
from contextengine_server.store.kinds import StoreKind

GROUP = "contextengine.stores"
"""The group of entry points: each is named like a scheme, and leads to a `StoreKind`."""

_ROOM = "contextengine_server.store"
_OWN = {
    scheme: EntryPoint(scheme, f"{_ROOM}.{room}.kind:KIND", GROUP)
    for scheme, room in (
        ("memory", "memory"),
        ("postgres", "postgres"),
        ("postgresql", "postgres"),
        ("sqlite", "sqlite"),
    )
}
"""Ours, in the form of the others. They are loaded when they are named, and come before others of
their name."""

OF_PATHS = "sqlite"
"""What a URL without a scheme names."""

EMPTY = "memory:"
"""The URL of a store that is thrown away."""

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):")


class UnknownStore(ValueError):
    """No store is installed for the scheme of a URL. A sentence without its subject."""

    def __init__(self, scheme: str, known: list[str]) -> None:
        super().__init__(
            f"must name a store that is installed: there is none for {scheme}:, but for"
            f" {', '.join(known)}; a path that begins so is written ./{scheme}:…"
        )


def schemes() -> list[str]:
    """The schemes that a store is installed for, sorted. Reads the file system."""
    return sorted({*_OWN, *names(GROUP)})


def own_kinds() -> dict[str, StoreKind]:
    """The stores of the service itself, by scheme."""
    return {scheme: load(entry).value for scheme, entry in _OWN.items()}


def kind_of(url: str) -> StoreKind:
    """The kind of store that a URL names. Raises UnknownStore; PluginBroken where the package that
    brings it along cannot be used."""
    written = _SCHEME.match(url)
    scheme = written[1] if written else OF_PATHS
    plugin = load(_OWN[scheme]) if scheme in _OWN else find(GROUP, scheme)
    if plugin is None:
        raise UnknownStore(scheme, [f"{one}:" for one in schemes()])
    kind = plugin.value
    if not isinstance(kind, StoreKind):
        wrong = f"is not a kind of store but of type {type(kind).__name__}"
        raise PluginBroken(GROUP, scheme, plugin.package, wrong)
    return kind
