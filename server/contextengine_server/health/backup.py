"""Damaged messages and summaries put right from a backup: what a hash names is the same in both,
wherever it came from."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import msgspec

from contextengine_server.context.scope import Scope
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import MessageRow, SummaryRow
from contextengine_server.store.session_pages import every_session
from contextengine_server.wire.damage import intact, readable

_AT_ONCE = 256
"""Sessions, or messages, that are read at once."""


class MendedSession(msgspec.Struct, frozen=True):
    """A session in which messages or summaries were damaged."""

    scope: Scope
    damaged: int
    mended: int


async def mend_from(
    store: Store, backup: Store, tenant: str, *, agent: str = "", session: str = ""
) -> list[MendedSession]:
    """Puts what the backup holds in the place of every damaged message and summary of a tenant
    whose hash it has; the sessions in which there were any. `agent` and `session` name one session;
    empty: all. What search found by them is found again once a server runs."""
    told = []
    async for scope in _scopes(store, tenant, agent, session):
        messages = await _damaged(store, scope)
        summaries = _bad(await store.summaries(scope, retired=True))
        if not messages and not summaries:
            continue
        good = [row for one in messages if (row := await _same(backup, scope, one)) is not None]
        bodies = [(row.sequence, row.content_hash, row.body) for row in good]
        mended = await store.mend(scope, bodies) if bodies else 0
        if summaries:
            wanted = {row.id for row in summaries}
            found = await backup.summaries(scope, retired=True)
            whole = [row for row in found if row.id in wanted and intact(row)]
            mended += await store.mend_summaries(scope, whole)
        if mended:
            await store.index.renew(scope)
        told.append(MendedSession(scope, len(messages) + len(summaries), mended))
    return told


def _bad(rows: Sequence[SummaryRow]) -> list[SummaryRow]:
    """Summaries that are not what their hashes name, but for those that were made again and never
    come back."""
    gone = {(row.remakes, row.generation) for row in rows if row.remakes}
    return [row for row in rows if not intact(row) and (row.id, row.generation) not in gone]


async def _scopes(store: Store, tenant: str, agent: str, session: str) -> AsyncIterator[Scope]:
    if session:
        yield Scope(tenant, agent, session)
        return
    async for head in every_session(store, tenant):
        yield head.scope


async def _damaged(store: Store, scope: Scope) -> list[MessageRow]:
    """The session's messages that are not what their hashes name, those that left the view
    included."""
    head = await store.head(scope)
    found: list[MessageRow] = []
    if head is None:
        return found
    for first in range(1, head.last_sequence + 1, _AT_ONCE):
        rows = await store.messages(scope, first, first + _AT_ONCE - 1, retired=True)
        found += [row for row in rows if readable(row) is None]
    return found


async def _same(backup: Store, scope: Scope, row: MessageRow) -> MessageRow | None:
    """The message of this hash as the backup has it, whole; None: it has another, or none."""
    rows = await backup.messages(scope, row.sequence, row.sequence, retired=True)
    if not rows or rows[0].content_hash != row.content_hash or readable(rows[0]) is None:
        return None
    return rows[0]
