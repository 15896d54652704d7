"""What a host says of where a session is held, noted with the session: the kind of channel, and
files of the workspace (docs/semantics.md#what-the-host-says-of-a-session)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from contextengine_server.session.address import Address
from contextengine_server.session.append import Appender, Edit
from contextengine_server.session.rehydration.workspace import WorkspaceFile, sections_of
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions
from contextengine_server.session.state import SessionState
from contextengine_server.store.rows import SessionHead

SECTIONS = ("Session Startup", "Red Lines")
"""The sections that are kept where an engine names none, as in Comis."""


class Whereabouts(msgspec.Struct, frozen=True):
    """What a call says of them. Empty: nothing, and what was said before holds."""

    channel: str = ""
    files: tuple[WorkspaceFile, ...] = ()

    def noted(self, state: SessionState, sections: Sequence[str] | None) -> SessionState:
        """The state with what is new in it; the same state where nothing is. `sections`: the names
        of those that are kept of the files; None: the usual ones."""
        if self.channel and self.channel != state.channel:
            state = replace(state, channel=self.channel)
        if self.files:
            kept = sections_of(self.files, SECTIONS if sections is None else sections)
            if kept != state.workspace:
                state = state.given(kept)
        return state

    def news(self, state: SessionState, sections: Sequence[str] | None) -> Edit | None:
        """What is new in it, as a change of the session; None: nothing is."""
        if self.noted(state, sections) is state:
            return None

        def edit(head: SessionHead, state: SessionState) -> tuple[SessionHead, SessionState]:
            return head, self.noted(state, sections)

        return edit


NOTHING_SAID = Whereabouts()


async def note(
    sessions: Sessions,
    appender: Appender,
    address: Address,
    said: Whereabouts,
    names: Sequence[str] | None,
    warm: Session | None,
) -> None:
    """Notes what a call says that stores no messages. A session that is not there is not made for
    it. `warm`: the session, where it is in memory."""
    if warm is not None and said.news(warm.state, names) is None:
        return
    async with sessions.open(address.scope, 0, lock=True) as session:
        edit = said.news(session.state, names)
        if session.head is not None and edit is not None:
            await appender.append(session, address, (), refuse_conflicts=False, edit=edit)
