"""Messages as hosts name them: by a sequence, or by the id that the host itself gave
(docs/semantics.md#host-ids-in-place-of-sequences)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from contextengine_server.context.view import Summary
from contextengine_server.errors import FieldViolation, RowNotFound
from contextengine_server.recall.archive import Archive
from contextengine_server.recall.lineage import lineage_of
from contextengine_server.session.session import Session
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import MessageRow, SessionHead, SummaryRow
from contextengine_server.wire.slots import summary_item_id


class Named(msgspec.Struct, frozen=True):
    """A message of a session's view, by its host id."""

    id: str
    field: str
    """What the request calls the id, for errors."""
    begins: bool = False
    """True where a summary's id stands for the first message that it covers, and not for the
    last."""


Place = int | Named
"""A message by its sequence, or as a host names it."""


async def sequence_of(place: Place, session: Session, store: Store) -> int:
    """The sequence of a message. Raises RowNotFound for an id that no message of the view has."""
    if isinstance(place, int):
        return place
    known = session.ids.get(place.id)
    if known is not None:
        return known.sequence
    rows = await store.messages_by_host_id(session.scope, [place.id])
    if rows:
        return rows[-1].sequence
    return _summarized(place, session.live_summaries)


async def recalled_sequence(place: Place, archive: Archive, head: SessionHead) -> int:
    """The same of a session that is read alone, which may be a parent as of a spawn: what is newer
    names nothing. Raises RowNotFound."""
    if isinstance(place, int):
        return place
    found = await recalled_messages([place.id], archive, head)
    if found:
        return found[-1].sequence
    lineage = await lineage_of(archive.store, head, archive.inherits)
    return _summarized(place, [one.row for one in await lineage.summaries(archive.store)])


async def recalled_messages(
    ids: Sequence[str], archive: Archive, head: SessionHead
) -> Sequence[MessageRow]:
    """The messages of a view that have one of these ids; those of sessions that it goes on from
    count, so several may have the same."""
    if not ids:
        return []
    store = archive.store
    lineage = await lineage_of(store, head, archive.inherits)
    return [
        row
        for link in reversed(lineage.links)
        for row in await store.messages_by_host_id(link.scope, ids)
        if link.first <= row.sequence <= link.last
    ]


def _summarized(place: Named, summaries: Iterable[Summary | SummaryRow]) -> int:
    """A message by the summary that covers it: hosts keep our summaries in their own lists, under
    the ids of their items. Raises RowNotFound."""
    for summary in summaries:
        if summary_item_id(summary.id) == place.id:
            return summary.first_sequence if place.begins else summary.last_sequence
    raise RowNotFound(
        f"{place.field}: no message of the session's view has the id {place.id!r}: give the id of a"
        " stored message that no rewind or reset took out of the view, or a sequence",
        violations=[FieldViolation(place.field, "is the id of no message of the view")],
        metadata={"id": place.id},
    )
