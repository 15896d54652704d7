"""Bootstrap: a host and a session are introduced to each other; a session goes on where another one
stood (docs/semantics.md#bootstrap)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import structs
from msgspec.structs import replace

from contextengine_server.engines.contract import Engine
from contextengine_server.engines.host_capabilities import require
from contextengine_server.errors import InvalidField, LostRace, SpawnEnded
from contextengine_server.session.address import Address, Addresses, Ref, not_found
from contextengine_server.session.append import Appender
from contextengine_server.session.assembly.alignment import Aligner, ListAlignment
from contextengine_server.session.assembly.live_store import LiveStore
from contextengine_server.session.assembly.whereabouts import Whereabouts
from contextengine_server.session.change import Editor, PreparedChange
from contextengine_server.session.children import ChildSessions
from contextengine_server.session.inherit import ParentSession, continue_from, continues
from contextengine_server.session.load import load
from contextengine_server.session.model import set_model
from contextengine_server.session.receipt import Disposition, Request, Stored
from contextengine_server.session.rehydration.workspace import WorkspaceFile
from contextengine_server.session.selection import Selection
from contextengine_server.session.session import Session, survey
from contextengine_server.session.sessions import MAX_TRIES, Sessions, count_messages
from contextengine_server.session.state import SessionState
from contextengine_server.slices import in_slices
from contextengine_server.store.errors import ParentGone, RevisionConflict
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import SessionHead
from contextengine_server.wire.message import Incoming


class HostFacts(msgspec.Struct, frozen=True):
    """The host as it introduced itself."""

    encoded: bytes
    capabilities: tuple[str, ...]
    id: str = ""


class Introduction(msgspec.Struct, frozen=True):
    """What is said of a session besides its messages. None and empty: nothing."""

    host: HostFacts | None = None
    model: str = ""
    provider: str = ""
    window: int | None = None
    continues: Ref | None = None
    spawned: bool = False
    """True where the session is a child that was prepared, and so is there."""
    files: tuple[WorkspaceFile, ...] = ()
    """Files of the workspace."""
    sections: Sequence[str] | None = None
    """The names of the sections that are kept of them; None: the usual ones."""

    def edit(self, head: SessionHead, state: SessionState) -> tuple[SessionHead, SessionState]:
        """Notes the host and the model. Raises SpawnEnded where the prepared session is gone."""
        if self.spawned and head.revision == 1:
            raise SpawnEnded(
                "spawn_token: the child was taken back: prepare another",
                metadata={"why": "rolled_back"},
            )
        if self.host is not None:
            state = structs.replace(
                state, host=self.host.encoded.hex(), capabilities=self.host.capabilities
            )
        state = Whereabouts(files=self.files).noted(state, self.sections)
        return set_model(head, state, self.model, self.provider, self.window, None)

    def names(self, head: SessionHead) -> bool:
        """True where it names another model or provider than the session's."""
        return self.model not in ("", head.model) or self.provider not in ("", head.provider)

    def news(self, session: Session, next_head: SessionHead) -> bool:
        """True where anything said is not known of the session, or the session is new."""
        return _news(session, *self.edit(next_head, session.state))


class Introduced(msgspec.Struct, frozen=True):
    """What became of it."""

    address: Address
    engine: Engine
    capabilities: tuple[str, ...]
    """What the session's host said at any time that it can do."""
    head: SessionHead
    encoding: str
    created: bool
    stored: Sequence[Stored]


class Bootstrap(msgspec.Struct, frozen=True):
    """Introduces a host and a session to each other."""

    addresses: Addresses
    sessions: Sessions
    store: Store
    selection: Selection
    appender: Appender
    editor: Editor
    spawns: ChildSessions
    aligner: Aligner
    lists: LiveStore

    async def run(
        self,
        tenant: str,
        ref: Ref,
        said: Introduction,
        history: Sequence[Incoming] = (),
        request: Request | None = None,
        spawn_token: str = "",
    ) -> Introduced:
        """Creates the session where it does not exist, notes what is said and stores the history,
        in one commit. Nothing is committed where nothing is new."""
        for _ in range(MAX_TRIES):
            try:
                return await self._run(tenant, ref, said, history, request, spawn_token)
            except ParentGone:
                continue  # deleted since it was read: is there another of its name?
        raise LostRace(
            "continues: that session is deleted and made anew faster than it can be read:"
            " send again",
            retry_after_ms=50,
        )

    async def _run(
        self,
        tenant: str,
        ref: Ref,
        said: Introduction,
        history: Sequence[Incoming],
        request: Request | None,
        spawn_token: str,
    ) -> Introduced:
        address = await self.addresses.find(tenant, ref)
        engine = (await self.selection.engine_for(address.scope, address.key)).engine
        if said.files:
            said = replace(said, sections=engine.declared.rehydrates)
        if said.host is not None:
            require(engine, said.host.id, said.host.capabilities)
        if spawn_token:
            await self.spawns.start(address, spawn_token)
        parent = await self._parent(address, said.continues) if said.continues is not None else None
        encoding = await self.sessions.encoding_of(
            address.scope if parent is None else parent.head.scope
        )
        await count_messages(encoding, history)
        async with self.sessions.open(address.scope, lock=True) as session:
            created = session.head is None
            stored = await self._introduce(session, address, said, parent, history, request)
            head = session.require()
            state = session.state
            return Introduced(
                address, engine, state.capabilities, head, state.encoding, created, stored
            )

    async def _introduce(
        self,
        session: Session,
        address: Address,
        said: Introduction,
        parent: ParentSession | None,
        history: Sequence[Incoming],
        request: Request | None,
    ) -> Sequence[Stored]:
        async def edit(
            session: Session, head: SessionHead, state: SessionState
        ) -> PreparedChange | None:
            head, state = said.edit(head, state)
            begins = None
            if parent is not None:
                begins = None if continues(session, parent) else parent.named
                head, state = continue_from(session, head, state, parent)
            if not address.bind and not _news(session, head, state):
                return None
            return PreparedChange(state, head, parent=begins, reload=parent is not None)

        if not history:
            await self.editor.change(session, address, edit)
            return ()
        if parent is not None and not continues(session, parent):
            return await self._continue_with(session, address, said, parent, history, request)
        tries = 0
        while True:
            news = said.news(session, self.sessions.next_head(session))
            found = await self._aligned(session, history)
            try:
                stored = await self.lists.store(
                    session,
                    address,
                    history,
                    found,
                    field_name="history",
                    request=request,
                    edit=said.edit if news else None,
                )
            except RevisionConflict:
                tries += 1
                await self.sessions.lost_race(session, tries)
                continue
            return _with_known(session, history, found, stored)

    async def _aligned(self, session: Session, history: Sequence[Incoming]) -> ListAlignment:
        """Where a history meets what is stored: a host that starts anew sends it again, with other
        ids or with none. One that has nothing in common with the session follows it: what is there
        is not taken back for it."""
        while True:
            session.mark_own(history, listed=True)
            found = self.aligner.align(history, session.view, session.ids)
            if not session.view.base or (found is not None and found.decided):
                return found or ListAlignment(history, 0, {}, (), {}, {})
            await self.sessions.fresh(session, None)

    async def _continue_with(
        self,
        session: Session,
        address: Address,
        said: Introduction,
        parent: ParentSession,
        history: Sequence[Incoming],
        request: Request | None,
    ) -> Sequence[Stored]:
        """Stores history behind what is inherited. It is folded onto the inherited view, so that
        one commit does both."""
        head = self.sessions.next_head(session, address)
        head, state = continue_from(session, *said.edit(head, session.state), parent)
        encoding = await self.sessions.encodings.of(state.encoding)
        view, summaries = await load(self.store, head, state, encoding.shaper, None)
        ahead = Session(session.scope, encoding)
        before = replace(
            head,
            revision=head.revision - 1,
            commit_id=session.head.commit_id if session.head is not None else b"",
            ancestors=session.head.ancestors if session.head is not None else b"",
        )
        found = await in_slices(survey(view))
        ahead.place(before, state, view, summaries, None, encoding, found)
        written = await self.appender.append(
            ahead,
            address,
            history,
            field_name="history",
            refuse_conflicts=False,
            request=request,
            edit=_as_it_is,
            over=session.revision,
            parent=parent.named,
        )
        self.sessions.cache.grown(ahead, 0)
        await self.sessions.fresh(session, 0)
        return written.stored

    async def _parent(self, address: Address, named: Ref) -> ParentSession:
        if named.agent and named.agent != address.scope.agent:
            raise InvalidField(
                "continues.agent_id", "must be the session's own agent: memory never crosses agents"
            )
        ref = structs.replace(named, agent=address.scope.agent)
        scope = (await self.addresses.find(address.scope.tenant, ref)).scope
        if scope == address.scope:
            raise InvalidField(
                "continues", "names the session itself: name the one that came before"
            )
        head = await self.store.head(scope)
        if head is None:
            raise not_found(scope)
        return ParentSession(head, SessionState.decode(head.state))


def _with_known(
    session: Session,
    history: Sequence[Incoming],
    found: ListAlignment,
    stored: Sequence[Stored],
) -> list[Stored]:
    """What became of every message of a history: those that were stored now, and those that were
    stored before."""
    told = {one.index: one for one in stored}
    for index, message in enumerate(history):
        if index in told or (index not in found.matched and not message.own):
            continue
        sequence, content, tokens = found.matched.get(index, 0), message.hash, message.tokens
        if (known := session.ids.get(message.id)) is not None:
            sequence, content, tokens = known.sequence, known.hash, known.tokens
        same = content == message.hash
        told[index] = Stored(
            index,
            message.id,
            sequence,
            Disposition.DUPLICATE if same else Disposition.CONFLICT,
            content,
            tokens,
            b"" if same else message.hash,
        )
    return [told[index] for index in sorted(told)]


def _as_it_is(head: SessionHead, state: SessionState) -> tuple[SessionHead, SessionState]:
    return head, state


def _news(session: Session, head: SessionHead, state: SessionState) -> bool:
    """True where the head or the state would be others than they are."""
    known = session.head
    return (
        known is None
        or state != session.state
        or (head.model, head.provider, head.parent_session)
        != (known.model, known.provider, known.parent_session)
    )
