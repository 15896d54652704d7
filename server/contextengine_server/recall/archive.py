"""What recall stands on, handed over by whoever puts the rooms together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from contextengine_server.store.protocols import Store

from .index import Indexer
from .lineage import Inherits
from .snippets import Redact, TurnBeginnings


class Archive(msgspec.Struct, frozen=True):
    """What search, inspect and expand work with."""

    store: Store
    indexer: Indexer
    inherits: Inherits
    redact: Redact
    """Takes secrets out of what is shown: out of many texts at once, each by itself."""
    beginnings: TurnBeginnings
    """How messages beside what is found begin."""
    count: Callable[[str], Awaitable[int]]
    """The tokens of a text, reference encoding."""
