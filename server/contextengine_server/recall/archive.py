"""What recall stands on, handed over by whoever puts the rooms together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from contextengine_server.context.scope import Scope
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Commit

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

    def committed(self, commit: Commit) -> None:
        """See Observer. What is remembered is of texts, which no commit changes."""

    def erased(self, scopes: Sequence[Scope]) -> None:
        """See Observer. What is remembered of texts is of no session: all of it goes."""
        self.beginnings.clear()
        self.questions.clear()
