"""This turn's prompt, where it is a stored message (`current_message_id`): it stays in the
assembly, verbatim, like the newest user message (docs/semantics.md#order-of-work)."""

from __future__ import annotations

from dataclasses import replace

from contextengine_server.context.view import View
from contextengine_server.errors import FieldViolation, RowNotFound
from contextengine_server.session.assembly.assembly import AssembleCall
from contextengine_server.session.session import Session
from contextengine_server.session.window import anchor_of
from contextengine_server.store.protocols import Store


async def keeping(store: Store, session: Session, view: View, message_id: str) -> View:
    """The view with the atom of this message among those that must stay. Raises RowNotFound."""
    known = session.ids.get(message_id)
    sequence = known.sequence if known is not None else 0
    if not sequence:
        rows = await store.messages_by_host_id(session.scope, [message_id])
        if not rows:
            raise not_stored(message_id)
        sequence = rows[0].sequence
    atom = view.holding(sequence) or await anchor_of(
        store, session.scope, sequence, session.encoding.shaper
    )
    if atom is None or atom.step == view.user_step or atom.step in view.pinned:
        return view
    return replace(
        view,
        pinned=sorted({*view.pinned, atom.step}),
        anchors=view.anchors if view.holds(atom.step) else {**view.anchors, atom.step: atom},
    )


def not_stored(message_id: str) -> RowNotFound:
    """The error for a prompt that no message of the session is."""
    return RowNotFound(
        f"current_message_id: no message {message_id!r} is stored in this session: ingest it or"
        " send `prompt`",
        violations=[FieldViolation("current_message_id", "is not stored")],
    )


def thread_beyond(message_id: str) -> RowNotFound:
    """The error for a native thread that is said to have seen what the session does not hold."""
    return RowNotFound(
        f"binding.last_message_id: no message of the session's view has the id {message_id!r}: give"
        " the id of a stored message, or leave it out and keep `last_sequence` as it was answered",
        violations=[FieldViolation("binding.last_message_id", "is the id of no message")],
        metadata={"id": message_id},
    )


def begins_turn(call: AssembleCall) -> bool:
    """True where the call brings what a user says next."""
    if call.live is not None:
        return bool(call.live) and call.live[-1].traits.says
    return any(message.traits.says for message in call.ingest)
