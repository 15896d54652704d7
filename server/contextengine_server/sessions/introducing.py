"""Bootstrap: a host and a session are introduced to each other; a session goes on where another one stood (contract §1)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from contextengine_server.errors import ContradictoryFields, InvalidField
from contextengine_server.store.interface import SessionHead

from .changing import Draft, change
from .core import Address, Ref, SessionCore, not_found
from .modelling import set_model
from .state import SessionState
from .warm import Session


@dataclass(slots=True, frozen=True)
class HostFacts:
    """The host as it introduced itself."""

    encoded: bytes
    capabilities: tuple[str, ...]


async def introduce(
    core: SessionCore,
    address: Address,
    host: HostFacts | None,
    model: str,
    provider: str,
    window: int | None,
    continues: Ref | None,
) -> tuple[Session, bool]:
    """Creates the session where it does not exist and notes what the host says. Answers the session and whether it is new.
    Nothing is committed where nothing is new."""
    parent = await _parent(core, address, continues) if continues is not None else None
    async with core.session(address.scope, lock=True) as session:
        created = session.head is None

        def edit(session: Session, head: SessionHead, state: SessionState) -> Draft | None:
            known = session.head
            if host is not None:
                state.host, state.capabilities = host.encoded.hex(), list(host.capabilities)
            changed = set_model(head, state, model, provider, window, None)
            if parent is not None:
                changed = _continue(session, changed, state, parent)
            if (
                known is not None
                and not address.bind
                and state.encode() == known.state
                and _same(changed, known)
            ):
                return None
            return Draft(state, changed, reload=parent is not None)

        await change(core, session, address, edit)
        if created and session.head is not None:
            core.events.emit("session:created", *session.scope, revision=session.revision)
        return session, created


def _same(head: SessionHead, known: SessionHead) -> bool:
    """True where a bootstrap changes nothing of the head."""
    return (head.model, head.provider, head.parent_session) == (
        known.model,
        known.provider,
        known.parent_session,
    )


@dataclass(slots=True, frozen=True)
class _Parent:
    head: SessionHead
    state: SessionState


async def _parent(core: SessionCore, address: Address, continues: Ref) -> _Parent:
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
    return _Parent(head, SessionState.decode(head.state))


def _continue(session: Session, head: SessionHead, state: SessionState, parent: _Parent) -> SessionHead:
    known = session.head
    if known is not None and known.parent_session == parent.head.scope.session:
        return head
    if known is not None and (known.last_sequence or known.parent_session):
        raise ContradictoryFields(
            ["continues", "session"],
            "the session has messages of its own or continues another: only an empty session can continue one",
        )
    facts = parent.state.view
    state.view = replace(facts, reopened=0)
    state.encoding = parent.state.encoding
    if not head.model:
        head = replace(head, model=parent.head.model, provider=parent.head.provider)
        state.model = replace(parent.state.model)
    return replace(
        head,
        # Revisions go on where the parent's stood, so that what was there before stays older than what comes.
        revision=max(head.revision, parent.head.revision + 1),
        parent_session=parent.head.scope.session,
        parent_revision=parent.head.revision,
        parent_sequence=parent.head.last_sequence,
        last_sequence=parent.head.last_sequence,
        message_count=parent.head.message_count,
        message_tokens=parent.head.message_tokens,
        summary_count=parent.head.summary_count,
    )
