"""Messages as hosts name them: by a sequence, or by the id that the host itself gave
(docs/semantics.md#host-ids-in-place-of-sequences)."""

from __future__ import annotations

import msgspec

from contextengine_server.errors import FieldViolation, RowNotFound
from contextengine_server.session.session import Session
from contextengine_server.store.protocols import Store
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
    # Hosts keep our summaries in their own lists, under the ids of their items.
    for summary in session.live_summaries:
        if summary_item_id(summary.id) == place.id:
            return summary.first_sequence if place.begins else summary.last_sequence
    raise RowNotFound(
        f"{place.field}: no message of the session's view has the id {place.id!r}: give the id of a"
        " stored message that no rewind or reset took out of the view, or a sequence",
        violations=[FieldViolation(place.field, "is the id of no message of the view")],
        metadata={"id": place.id},
    )
