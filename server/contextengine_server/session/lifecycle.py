"""What ends, empties or shortens a session's view, and what erases it (contract §1, §2)."""

from __future__ import annotations

from dataclasses import replace

import orjson

from contextengine_server.context.scope import Scope
from contextengine_server.errors import (
    InvalidField,
    RevisionMismatch,
    SessionHasDependents,
    Violation,
)
from contextengine_server.session.append import Request, checked
from contextengine_server.session.cache import Session
from contextengine_server.session.change import Changed, Draft, change
from contextengine_server.session.core import Address, SessionCore
from contextengine_server.session.load import inherits
from contextengine_server.session.rows import refold
from contextengine_server.session.state import SessionState, ViewFacts, facts_of
from contextengine_server.store.errors import HasDependents, RevisionConflict
from contextengine_server.store.rows import Deleted, SessionHead, StoredReply


async def reset(
    core: SessionCore,
    session: Session,
    address: Address,
    request: Request | None,
    expected_revision: int | None,
) -> Changed:
    """Empties the view; rows stay."""

    def edit(session: Session, head: SessionHead, state: SessionState) -> Draft:
        count = session.view.message_count
        state.view = ViewFacts(reset_mark=head.revision, reopened=head.revision)
        state.detached = state.detached or head.revision
        state.held = False
        state.refused = []
        head = replace(head, message_count=0, message_tokens=0, summary_count=0)
        return Draft(
            state,
            head,
            retire_after=0,
            retire_summaries=_own_summaries(session, 0),
            numbers={"retired": count},
            reload=True,
        )

    done = await change(
        core, session, address, edit, request=request, expected_revision=expected_revision
    )
    if not done.repeated:
        core.events.emit(
            "session:reset", *session.scope, revision=done.revision, counts=dict(done.numbers or {})
        )
    return done


def _own_summaries(session: Session, after: int) -> list[str]:
    """The session's own live summaries that reach behind a sequence. Inherited ones are not ours to
    retire."""
    inherited = session.head.parent_revision if session.head is not None else 0
    return [
        s.id for s in session.live_summaries if s.last_sequence > after and s.created > inherited
    ]


async def rewind(
    core: SessionCore, session: Session, address: Address, request: Request, after: int
) -> Changed:
    """Later rows leave the view. What stays is folded again, since a late result may have gone with
    them."""
    head = core.require(session)
    if after < 0 or after > head.last_sequence:
        raise InvalidField(
            "rewind.after_sequence",
            f"is {after}: give 0 to {head.last_sequence}, the newest sequence",
        )
    if inherits(head) and after < head.parent_sequence:
        raise InvalidField(
            "rewind.after_sequence",
            f"is {after}, among the messages that this session continues from"
            f" {head.parent_session!r} (up to {head.parent_sequence}): go back in that session",
        )
    await core.fresh(session, None)

    def edit(session: Session, head: SessionHead, state: SessionState) -> Draft:
        kept, facts = refold(session.view, after, core.shaper)
        state.view = replace(
            facts_of(kept, state.view), rewind_mark=head.revision, reopened=head.revision
        )
        newest = kept.atoms[-1] if kept.atoms else None
        opened = newest is not None and not newest.closed and (newest.pending or newest.growing)
        # What is open again must be verbatim (law 2), though it was covered as something long over.
        retired = _own_summaries(
            session, newest.first - 1 if newest is not None and opened else after
        )
        gone = session.view.message_count - kept.message_count
        head = replace(
            head,
            message_count=kept.message_count,
            message_tokens=kept.total,
            summary_count=len(session.live_summaries) - len(retired),
        )
        return Draft(
            state,
            head,
            retire_after=after,
            retire_summaries=retired,
            facts=facts,
            numbers={"retired": gone},
            reload=True,
        )

    done = await change(core, session, address, edit, request=request)
    if not done.repeated:
        core.events.emit(
            "session:rewound",
            *session.scope,
            revision=done.revision,
            counts=dict(done.numbers or {}),
        )
    return done


async def end(
    core: SessionCore,
    session: Session,
    address: Address,
    request: Request | None,
    expected_revision: int | None,
) -> Changed:
    """The conversation is over for now; a later write opens it again."""

    def edit(session: Session, head: SessionHead, state: SessionState) -> Draft | None:
        if session.head is not None and session.head.ended:
            return None
        return Draft(state, replace(head, ended=True), numbers={"ended": 1})

    done = await change(
        core, session, address, edit, request=request, expected_revision=expected_revision
    )
    if done.numbers and not done.repeated:
        core.events.emit("session:ended", *session.scope, revision=done.revision)
    return done


async def native_compaction(
    core: SessionCore, session: Session, address: Address, request: Request
) -> Changed:
    """The harness's native thread was compacted: a binding to it is void, which the epoch says."""

    def edit(session: Session, head: SessionHead, state: SessionState) -> Draft:
        state.native_compactions += 1
        return Draft(state, head)

    return await change(core, session, address, edit, request=request)


async def delete(
    core: SessionCore,
    scope: Scope,
    *,
    expected_revision: int | None,
    cascade: bool,
    request: Request | None = None,
) -> Deleted:
    """Erases a session with everything derived from it. The same request again answers the same and
    erases nothing, though there may be another session of the name by now."""
    name = f"{request.id}:{scope.session}" if request is not None else ""

    def answer(gone: Deleted) -> StoredReply:
        assert request is not None
        return StoredReply(
            name, request.digest, orjson.dumps([gone.sessions, gone.messages, gone.summaries])
        )

    session = core.warm.enter(scope)
    try:
        async with session.lock:
            known = (
                await core.store.reply(scope._replace(session=""), name)
                if request is not None
                else None
            )
            if known is not None and request is not None:
                sessions, messages, summaries = orjson.loads(checked(known, request).reply)
                return Deleted(tuple(sessions), messages, summaries)
            try:
                gone = await core.store.delete(
                    scope,
                    expected_revision=expected_revision,
                    cascade=cascade,
                    answer=answer if request is not None else None,
                )
            except HasDependents as error:
                raise SessionHasDependents(
                    f"{error}: delete them first, or set cascade",
                    metadata={"sessions": ",".join(error.sessions)},
                ) from error
            except RevisionConflict as error:
                raise RevisionMismatch(
                    f"expected_revision: {expected_revision} was expected, the session is at"
                    f" {error.actual}: read it again",
                    violations=[
                        Violation("expected_revision", f"the session is at {error.actual}")
                    ],
                    metadata={"expected": str(expected_revision), "actual": str(error.actual)},
                ) from error
    finally:
        core.warm.leave(session)
    core.selection.forget(scope.tenant)
    for each in gone.sessions:
        core.warm.drop(scope._replace(session=each))
        core.events.emit("session:deleted", scope.tenant, scope.agent, each)
    return gone
