"""What recall stands on, handed over by whoever puts the rooms together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from contextengine_server.store.protocols import Store

from .index import Indexer
from .lineage import Inherits
from .score.questions import Questions
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
    questions: Questions
    """Which messages only ask."""
    count: Callable[[str], Awaitable[int]]
    """The tokens of a text, reference encoding."""

    def forget(self) -> None:
        """Forgets what is remembered of texts: it is of no session, so all of it goes with one that
        was erased."""
        self.beginnings.clear()
        self.questions.clear()
