"""What the next request comes to: the assembly at a budget, as it would be over a view."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.layout import beside
from contextengine_server.context.message import Slot
from contextengine_server.context.plan import segment_slots
from contextengine_server.context.view import View
from contextengine_server.engines.contract import Engine
from contextengine_server.session.assembly.addition import addition_of
from contextengine_server.session.assembly.plan import draft_of
from contextengine_server.session.encoding import Encoding
from contextengine_server.session.rehydration.reads import bring
from contextengine_server.session.rehydration.reminders import NOTHING, Reminders, reminders_of
from contextengine_server.session.session import Session
from contextengine_server.store.protocols import Store


class NextRequest(msgspec.Struct, frozen=True):
    """What the next request comes to. Tokens in the reference encoding."""

    tokens: int
    """Of its items, and of the addition to the system prompt."""
    total: int
    """Of all messages of the view, shown or not."""

    def smaller_than(self, before: NextRequest) -> bool:
        """True where it is, apart from what was said meanwhile."""
        return self.tokens - max(0, self.total - before.total) < before.tokens


class NextList(msgspec.Struct, frozen=True):
    """What the next request shows."""

    slots: Sequence[Slot] = ()
    addition: str = ""
    """To the system prompt."""


def next_request(
    engine: Engine,
    encoding: Encoding,
    view: View,
    available: ReferenceTokens,
    reminders: Reminders | None = None,
) -> NextRequest:
    """What an assembly over a view would come to at a budget."""
    draft = draft_of(engine, encoding, view, available, reminders=reminders)
    shown = draft.plan.summaries
    said = encoding.text_tokens(addition_of(engine, shown, left_out=draft.left_out))
    return NextRequest(draft.tokens + said + draft.rehydrated.tokens, view.total)


async def reminders_for(store: Store, engine: Engine, session: Session) -> Reminders | None:
    """What comes back behind the summaries of a session; None: its engine brings nothing back, or
    there are none."""
    if not session.view.summaries or engine.declared.rehydrates is None:
        return None
    await bring(store, session)
    return reminders_of(session, session.objective or "")


def list_of(
    engine: Engine,
    encoding: Encoding,
    view: View,
    available: ReferenceTokens,
    reminders: Reminders | None = None,
) -> NextList:
    """What an assembly over a view would show."""
    draft = draft_of(engine, encoding, view, available, reminders=reminders)
    again, segments = draft.rehydrated, draft.plan.segments
    listed = beside(segments, again.behind, again.ending, again.step)
    slots = [
        slot
        for one in (segments if again is NOTHING else listed)
        for slot in ((one,) if isinstance(one, Slot) else segment_slots(one, draft.view))
    ]
    return NextList(slots, addition_of(engine, draft.plan.summaries, left_out=draft.left_out))
