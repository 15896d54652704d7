"""Messages whose facts are to be kept."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from contextengine_server.context.scope import Scope
from contextengine_server.summarize.request import SourceMessage


class MemoryRange(msgspec.Struct, frozen=True):
    """Messages of a session that are about to be summarized, or that it ends with."""

    id: str
    """The same whenever these are handed over: after a crash that may happen again."""
    scope: Scope
    incarnation: str
    as_of: int
    """The revision at which they were read."""
    first: int
    last: int
    """Sequences."""
    messages: Sequence[SourceMessage]
    """What they say, without private reasoning, and not redacted."""
