"""What a session stands on."""

from __future__ import annotations

from contextengine_server.store.protocols import Heads
from contextengine_server.store.rows import SessionHead


async def parent_of(store: Heads, head: SessionHead) -> SessionHead | None:
    """The head of the session whose view goes on in this one, in the life that it was then; None
    where there is none, or none any more. A session that took its name is a stranger."""
    if not head.parent_session:
        return None
    parent = await store.head(head.scope._replace(session=head.parent_session))
    if parent is None or head.parent_incarnation not in ("", parent.incarnation):
        return None
    return parent
