"""A query, and what it is answered with."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from contextengine_server.store.rows import SummaryRow

from .turns import RecalledTurn

DEFAULT_LIMIT, MAX_LIMIT = 10, 100


class Query(msgspec.Struct, frozen=True):
    """What is looked for."""

    text: str
    regex: bool = False
    messages: bool = True
    summaries: bool = True
    limit: int = DEFAULT_LIMIT
    page: str = ""
    """Where the last page ended; empty: from the start."""
    roles: tuple[int, ...] = ()
    """Only messages of these roles, and no summaries."""
    first: int = 0
    """Only from this sequence on."""
    last: int = 0
    """Only to this sequence; 0: to the last."""
    start_ms: int | None = None
    end_ms: int | None = None
    retired: bool = False
    """True: also rows that left the view."""
    all_sessions: bool = False
    """True: also the other sessions of the agent."""
    key_sessions: bool = False
    """True: also the other sessions of its key."""

    @property
    def others(self) -> str:
        """The field that asks for other sessions too; empty: none does."""
        return "all_sessions" if self.all_sessions else "key_sessions" if self.key_sessions else ""


class Hit(msgspec.Struct, frozen=True):
    """A message or a summary that was found."""

    session: str
    """The session that stores it."""
    snippet: str
    """The words around what was found, redacted and fenced."""
    score: float
    sequence: int = 0
    role: int = 0
    time_ms: int | None = None
    host_id: str = ""
    summary: SummaryRow | None = None
    neighbour: bool = False
    """True: it holds nothing of the query, but stands beside a message that answers it."""
    before: RecalledTurn | None = None
    """The turn before it, unless the page has that as a hit."""
    after: RecalledTurn | None = None
    """The turn behind it, unless the page has that as a hit."""

    @property
    def texts(self) -> list[str]:
        """All that is shown of what messages say."""
        return [self.snippet, *(turn.snippet for turn in (self.before, self.after) if turn)]


class Page(msgspec.Struct, frozen=True):
    """A page of hits, best first."""

    hits: Sequence[Hit] = ()
    next_page: str = ""
    """Where the next page begins; empty: there is none."""
    total: int | None = 0
    """How many messages and summaries match; None: not known. Neighbours are not counted."""
    revision: int = 0
    """The state that was searched."""
