"""Taking compactions back: the summaries made since a generation leave the view, and what they
stood for comes back (docs/semantics.md#undo)."""

from __future__ import annotations

import msgspec
from msgspec import structs
from msgspec.structs import replace

from contextengine_server.context.view import Summary, View
from contextengine_server.errors import InvalidField
from contextengine_server.session.address import Address
from contextengine_server.session.change import Changed, Editor, PreparedChange
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions
from contextengine_server.session.state import SessionState
from contextengine_server.store.rows import SessionHead
from contextengine_server.telemetry.events import Events


class Undo(msgspec.Struct, frozen=True):
    """Takes compactions back."""

    sessions: Sessions
    editor: Editor
    events: Events

    async def run(
        self,
        session: Session,
        address: Address,
        generation: int,
        expected_revision: int | None,
    ) -> Changed:
        """Makes `generation` the newest again. From then on nothing is compacted until that is
        forced. The session is locked.

        Nothing was deleted: children of a summary are live as ever, and its messages too. Raises
        InvalidField.
        """
        head = session.require()
        if not 0 <= generation <= head.generation:
            raise InvalidField(
                "undo_to_generation",
                f"is {generation}: the session is at generation {head.generation}: give 0 to"
                f" {head.generation}",
            )
        await self.sessions.fresh(session, None)

        async def edit(
            session: Session, head: SessionHead, state: SessionState
        ) -> PreparedChange | None:
            known = session.require()
            if known.generation == generation:
                return None
            # What is inherited was made in another session, under revisions before this one's.
            made = [s for s in session.live_summaries if s.created > known.parent_revision]
            gone = [summary for summary in made if summary.generation > generation]
            stays = [one for one in session.live_summaries if one not in gone]
            covered = max((one.last_sequence for one in stays), default=0)
            state = structs.replace(
                state,
                held=True,
                undo_mark=head.revision,
                # What is not covered any more is in sight again.
                rehydration=state.rehydration.left(covered, session.view.steps),
                undone=(*state.undone, *_with_notes(session.view, gone, head.revision)),
            )
            return PreparedChange(
                state,
                replace(
                    head,
                    generation=generation,
                    summary_count=len(session.live_summaries) - len(gone),
                ),
                retire_summaries=[summary.id for summary in gone],
                numbers={"undone": len(gone)},
                reload=True,
            )

        done = await self.editor.change(session, address, edit, expected_revision=expected_revision)
        if done.numbers is not None:
            self.events.emit(
                "context:compaction_undone",
                *session.scope,
                revision=done.revision,
                counts={"generation": generation, **done.numbers},
            )
        return done


def _with_notes(view: View, gone: list[Summary], revision: int) -> list[tuple[int, int, int, int]]:
    """Of the summaries that go, those that messages of the view may be notes for."""
    notes = [entry.created for atom in view.atoms if atom.note for entry in atom.entries]
    newest = max(notes, default=0)
    # In an order of their own: memory has summaries as they came, the store by what they cover.
    return sorted((*s.stretch[:3], revision) for s in gone if s.created < newest)
