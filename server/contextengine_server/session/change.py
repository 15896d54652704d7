"""One change of a session that is not messages: prepared, committed, applied; a lost race is read
again and tried again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import orjson

from contextengine_server.errors import RevisionMismatch, Violation
from contextengine_server.session.append import Request, checked
from contextengine_server.session.cache import Session
from contextengine_server.session.core import Address, SessionCore
from contextengine_server.session.state import SessionState
from contextengine_server.store.errors import DuplicateRequest, RevisionConflict
from contextengine_server.store.rows import Commit, Facts, SessionHead, StoredReply, SummaryRow


@dataclass(slots=True)
class Changed:
    """What became of a change."""

    revision: int
    repeated: bool = False
    numbers: dict[str, int] | None = None


@dataclass(slots=True, frozen=True)
class Draft:
    """A change being prepared: what the commit holds besides the head."""

    state: SessionState
    head: SessionHead
    retire_after: int | None = None
    retire_summaries: Sequence[str] = ()
    summaries: Sequence[SummaryRow] = ()
    facts: Sequence[Facts] = ()
    numbers: dict[str, int] | None = None
    reload: bool = False
    """True where the view must be read again after the commit."""


async def change(
    core: SessionCore,
    session: Session,
    address: Address,
    edit: Callable[[Session, SessionHead, SessionState], Draft | None],
    *,
    request: Request | None = None,
    expected_revision: int | None = None,
) -> Changed:
    """Makes one change under the session's lock, which the caller holds. `edit` answers None where
    there is nothing to do."""
    tries = 0
    while True:
        if request is not None and session.head is not None:
            known = await core.store.reply(session.scope, request.id)
            if known is not None:
                return _repeat(known, request)
        if expected_revision is not None and expected_revision != session.revision:
            raise RevisionMismatch(
                f"expected_revision: {expected_revision} was expected, the session is at"
                f" {session.revision}: read it again",
                violations=[
                    Violation("expected_revision", f"the session is at {session.revision}")
                ],
                metadata={"expected": str(expected_revision), "actual": str(session.revision)},
            )
        created = session.head is None
        head = core.next_head(session, address)
        draft = edit(session, head, session.state.copy())
        if draft is None:
            return Changed(session.revision)
        new = replace(draft.head, state=draft.state.encode())
        numbers = draft.numbers or {}
        reply = None
        if request is not None:
            reply = StoredReply(
                request.id,
                request.digest,
                orjson.dumps({"revision": new.revision, "numbers": numbers}),
            )
        try:
            await core.commit(
                Commit(
                    head=new,
                    expected_revision=session.revision,
                    retire_after=draft.retire_after,
                    retire_summaries=draft.retire_summaries,
                    summaries=draft.summaries,
                    facts=draft.facts,
                    reply=reply,
                    bind_key=address.bind,
                )
            )
        except DuplicateRequest as duplicate:
            assert request is not None
            return _repeat(duplicate.stored, request)
        except RevisionConflict:
            tries += 1
            await core.lost_race(session, tries)
            continue
        if draft.reload:
            await core.reload(session, await core.store.head(session.scope), session.reach)
        else:
            session.advance(new, draft.state)
        if created:
            core.events.emit("session:created", *session.scope, revision=new.revision)
        return Changed(new.revision, numbers=numbers)


def _repeat(known: StoredReply, request: Request) -> Changed:
    raw = orjson.loads(checked(known, request).reply)
    return Changed(raw["revision"], repeated=True, numbers=raw["numbers"])
