"""What rows are found by: the home of a session, and its life.

`home` is a number made of (tenant, agent, session). Every key of the rows that sessions gather
begins with it, so the tables can be partitioned or distributed by it, whatever the names are: a
usual installation has one tenant, and often one agent. `life` is made of the names and the
incarnation. Messages, summaries and passages hang on it and carry no names, so a session that was
made again is another by structure.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import Any
from uuid import UUID

from contextengine_server.context.scope import Scope
from contextengine_server.store.sql import columns

_KEPT = 65_536
"""Sessions whose numbers are remembered."""


def number(*names: str) -> int:
    """A number of 64 bits, signed, that stands for some names."""
    return int.from_bytes(_digest(8, names), "big", signed=True)


@lru_cache(_KEPT)
def home(scope: Scope) -> int:
    """Where a session's rows are."""
    return number(*scope)


@lru_cache(_KEPT)
def life(scope: Scope, incarnation: str) -> UUID:
    """Names one life of a session."""
    return UUID(bytes=_digest(16, (*scope, incarnation)))


def named(scope: Scope, **more: Any) -> dict[str, Any]:
    """The parameters that name a session, and others."""
    return columns.named(scope, home=home(scope), **more)


def _digest(size: int, names: tuple[str, ...]) -> bytes:
    hashed = blake2b(digest_size=size)
    for name in names:
        encoded = name.encode()
        hashed.update(len(encoded).to_bytes(4, "big"))
        hashed.update(encoded)
    return hashed.digest()
