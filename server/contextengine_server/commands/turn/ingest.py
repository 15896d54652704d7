"""Ingest and IngestBatch: messages are stored, all or none."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from contextengine_server.session.address import Addresses, Ref
from contextengine_server.session.append import Appender
from contextengine_server.session.receipt import Request, Stored
from contextengine_server.session.selection import Selection
from contextengine_server.session.sessions import Sessions, count_messages
from contextengine_server.wire.message import Incoming


class Ingested(msgspec.Struct, frozen=True):
    """What became of the messages."""

    stored: Sequence[Stored]
    revision: int
    noticed: bool
    """True where ingesting means something to the session's engine."""


class Ingest(msgspec.Struct, frozen=True):
    """Stores messages of a session."""

    addresses: Addresses
    selection: Selection
    sessions: Sessions
    appender: Appender

    async def run(
        self,
        tenant: str,
        ref: Ref,
        messages: Sequence[Incoming],
        request: Request | None,
        field: str = "messages",
    ) -> Ingested:
        """Stores messages, all or none; the same request again answers what it did. `field`: where
        in the request they stand, for errors. Raises MessageConflict, TooLarge."""
        address = await self.addresses.find(tenant, ref)
        selected = self.selection.unassigned.get(tenant)
        if selected is None:
            selected = await self.selection.engine_for(address.scope, address.key)
        encoding = await self.sessions.encoding_of(address.scope)
        await count_messages(encoding, messages)
        async with self.sessions.open(address.scope, lock=True) as session:
            written = await self.appender.append(
                session,
                address,
                messages,
                field_name=field,
                refuse_conflicts=True,
                request=request,
            )
        return Ingested(written.stored, written.revision, selected.engine.notices)
