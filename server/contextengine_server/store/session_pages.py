"""Every session of a tenant, read page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator

from .protocols import Store
from .rows import SessionHead

_PAGE = 256
"""Sessions that are read at once."""


async def every_session(store: Store, tenant: str) -> AsyncIterator[SessionHead]:
    """The tenant's sessions, the newest first. One that is written to meanwhile may be passed
    over."""
    after: tuple[int, str, str] | None = None
    while True:
        heads = await store.list_sessions(tenant, limit=_PAGE, after=after)
        for head in heads:
            yield head
        if len(heads) < _PAGE:
            return
        last = heads[-1]
        after = last.updated_ms, last.scope.agent, last.scope.session
