"""Bootstrap: a host and a session are introduced to each other; a session goes on where another one
stood (contract §1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from contextengine_server.errors import ContradictoryFields, InvalidField, SpawnEnded
from contextengine_server.session.append import Request, Stored, append
from contextengine_server.session.cache import Session
from contextengine_server.session.change import Draft, change
from contextengine_server.session.core import Address, Ref, SessionCore, not_found
from contextengine_server.session.load import load
from contextengine_server.session.model import set_model
from contextengine_server.session.state import SessionState
from contextengine_server.store.rows import SessionHead
from contextengine_server.wire.reading import Incoming


@dataclass(slots=True, frozen=True)
class HostFacts:
    """The host as it introduced itself."""

    encoded: bytes
    capabilities: tuple[str, ...]


@dataclass(slots=True, frozen=True)
class Introduction:
    """What is said of a session besides its messages. None and empty: nothing."""

    host: HostFacts | None = None
    model: str = ""
    provider: str = ""
    window: int | None = None
    continues: Ref | None = None
    spawned: bool = False
    """True where the session is a child that was prepared, and so is there."""

    def edit(self, head: SessionHead, state: SessionState) -> SessionHead:
        """Notes the host and the model. Raises SpawnEnded where the prepared session is gone."""
        if self.spawned and head.revision == 1:
            raise SpawnEnded(
                "spawn_token: the child was taken back: prepare another",
                metadata={"why": "rolled_back"},
            )
        if self.host is not None:
            state.host, state.capabilities = self.host.encoded.hex(), list(self.host.capabilities)
        return set_model(head, state, self.model, self.provider, self.window, None)

    def news(self, core: SessionCore, session: Session) -> bool:
        """True where anything said is not known of the session, or the session is new."""
        state = session.state.copy()
        return _news(session, self.edit(core.next_head(session), state), state)


@dataclass(slots=True, frozen=True)
class Introduced:
    """What became of it."""

    head: SessionHead
    encoding: str
    created: bool
    stored: list[Stored]


async def introduce(
    core: SessionCore,
    address: Address,
    said: Introduction,
    history: Sequence[Incoming] = (),
    request: Request | None = None,
) -> Introduced:
    """Creates the session where it does not exist, notes what is said and stores the history, in
    one commit. Nothing is committed where nothing is new."""
    parent = await _parent(core, address, said.continues) if said.continues is not None else None
    await core.count(history)
    async with core.session(address.scope, lock=True) as session:
        created = session.head is None
        stored: list[Stored] = []

        def edit(session: Session, head: SessionHead, state: SessionState) -> Draft | None:
            changed = said.edit(head, state)
            if parent is not None:
                changed = _continue(session, changed, state, parent)
            if not address.bind and not _news(session, changed, state):
                return None
            return Draft(state, changed, reload=parent is not None)

        if not history:
            await change(core, session, address, edit)
        elif parent is not None and not _continues(session, parent):
            stored = await _continue_with(core, session, address, said, parent, history, request)
        else:
            written = await append(
                core,
                session,
                address,
                history,
                field_name="history",
                refuse_conflicts=False,
                request=request,
                edit=said.edit if said.news(core, session) else None,
            )
            stored = written.stored
        head = core.require(session)
        return Introduced(head, session.state.encoding, created, stored)


async def _continue_with(
    core: SessionCore,
    session: Session,
    address: Address,
    said: Introduction,
    parent: Parent,
    history: Sequence[Incoming],
    request: Request | None,
) -> list[Stored]:
    """Stores history behind what is inherited. It is folded onto the inherited view, so that one
    commit does both."""
    state = session.state.copy()
    head = _continue(session, said.edit(core.next_head(session, address), state), state, parent)
    view, summaries = await load(core.store, head, state, core.shaper, None)
    ahead = Session(session.scope)
    ahead.place(replace(head, revision=head.revision - 1), state, view, summaries, None)
    ahead.size = 0
    written = await append(
        core,
        ahead,
        address,
        history,
        field_name="history",
        refuse_conflicts=False,
        request=request,
        edit=_as_it_is,
        over=session.revision,
    )
    core.warm.grown(ahead, 0)
    await core.fresh(session, 0)
    return written.stored


def _as_it_is(head: SessionHead, state: SessionState) -> SessionHead:
    return head


def _news(session: Session, head: SessionHead, state: SessionState) -> bool:
    """True where the head or the state would be others than they are."""
    known = session.head
    return (
        known is None
        or state.encode() != known.state
        or (head.model, head.provider, head.parent_session)
        != (known.model, known.provider, known.parent_session)
    )


@dataclass(slots=True, frozen=True)
class Parent:
    """The session whose view goes on in another, as it is now."""

    head: SessionHead
    state: SessionState


async def _parent(core: SessionCore, address: Address, continues: Ref) -> Parent:
    if continues.agent and continues.agent != address.scope.agent:
        raise InvalidField(
            "continues.agent_id", "must be the session's own agent: memory never crosses agents"
        )
    ref = replace(continues, agent=address.scope.agent)
    scope = (await core.address(address.scope.tenant, ref)).scope
    if scope == address.scope:
        raise InvalidField("continues", "names the session itself: name the one that came before")
    head = await core.store.head(scope)
    if head is None:
        raise not_found(scope)
    return Parent(head, SessionState.decode(head.state))


def _continues(session: Session, parent: Parent) -> bool:
    """True where the session continues this one already."""
    return session.head is not None and session.head.parent_session == parent.head.scope.session


def _continue(
    session: Session, head: SessionHead, state: SessionState, parent: Parent
) -> SessionHead:
    known = session.head
    if _continues(session, parent):
        return head
    if known is not None and (known.last_sequence or known.parent_session):
        raise ContradictoryFields(
            ["continues", "session"],
            "the session has messages of its own or continues another: only an empty session can"
            " continue one",
        )
    return inherit(head, state, parent)


def inherit(head: SessionHead, state: SessionState, parent: Parent) -> SessionHead:
    """The head of a session whose view begins with the parent's, as of now; its state with it."""
    facts = parent.state.view
    state.view = replace(facts, reopened=0)
    state.encoding, state.detached, state.undone = (
        parent.state.encoding,
        0,
        list(parent.state.undone),
    )
    state.depth = parent.state.depth
    if not head.model:
        head = replace(head, model=parent.head.model, provider=parent.head.provider)
        state.model = replace(parent.state.model)
    return replace(
        head,
        # Revisions go on where the parent's stood, so that what was there before stays older than
        # what comes.
        revision=max(head.revision, parent.head.revision + 1),
        parent_session=parent.head.scope.session,
        parent_revision=parent.head.revision,
        parent_sequence=parent.head.last_sequence,
        last_sequence=parent.head.last_sequence,
        message_count=parent.head.message_count,
        message_tokens=parent.head.message_tokens,
        summary_count=parent.head.summary_count,
    )
