"""Delete: a session is erased with everything derived from it."""

from __future__ import annotations

import msgspec
import orjson

from contextengine_server.errors import FieldViolation, RevisionMismatch, SessionHasDependents
from contextengine_server.session.address import Addresses, Ref
from contextengine_server.session.receipt import Request, checked
from contextengine_server.session.selection import Selection
from contextengine_server.session.sessions import SessionCache
from contextengine_server.store.errors import HasDependents, RevisionConflict
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Deleted, StoredReply
from contextengine_server.telemetry.events import Events


class Delete(msgspec.Struct, frozen=True):
    """Erases sessions."""

    addresses: Addresses
    store: Store
    cache: SessionCache
    events: Events
    selection: Selection

    async def run(
        self,
        tenant: str,
        ref: Ref,
        *,
        expected_revision: int | None,
        cascade: bool,
        request: Request | None = None,
        overwritten: bool = True,
    ) -> Deleted:
        """Erases a session; nothing is there to erase where it does not exist. The same request
        again answers the same and erases nothing, though there may be another session of the name
        by now. `overwritten`: a moment is waited for what was erased to be overwritten on the disk.
        Raises SessionHasDependents, RevisionMismatch."""
        scope = (await self.addresses.find(tenant, ref)).scope
        if await self.store.head(scope) is None:
            expected_revision = None
        name = f"{request.id}:{scope.session}" if request is not None else ""

        def answer(gone: Deleted) -> StoredReply:
            assert request is not None
            return StoredReply(
                name, request.digest, orjson.dumps([gone.sessions, gone.messages, gone.summaries])
            )

        session = self.cache.enter(scope)
        try:
            async with session.lock:
                known = (
                    await self.store.reply(scope._replace(session=""), name)
                    if request is not None
                    else None
                )
                if known is not None and request is not None:
                    sessions, messages, summaries = orjson.loads(checked(known, request).reply)
                    return Deleted(tuple(sessions), messages, summaries)
                try:
                    gone = await self.store.delete(
                        scope,
                        expected_revision=expected_revision,
                        cascade=cascade,
                        answer=answer if request is not None else None,
                        overwritten=overwritten,
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
                            FieldViolation("expected_revision", f"the session is at {error.actual}")
                        ],
                        metadata={"expected": str(expected_revision), "actual": str(error.actual)},
                    ) from error
        finally:
            self.cache.leave(session)
        self.selection.forget(scope.tenant)
        for each in gone.sessions:
            self.cache.drop(scope._replace(session=each))
            self.events.emit("session:deleted", scope.tenant, scope.agent, each)
        return gone
