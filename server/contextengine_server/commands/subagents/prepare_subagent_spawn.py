"""Children (docs/semantics.md#children): a session that begins with its parent's view, frozen at a
revision, or empty. Nothing is copied: a fork goes on where its parent stood, as a session that
continues another does.

The child's session is made when it is prepared, so that a host that never introduces it loses
nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

import msgspec
import orjson
from msgspec import structs
from msgspec.structs import replace

from contextengine_server.commands.named_message import Place, sequence_of
from contextengine_server.context.scope import Scope
from contextengine_server.errors import (
    DomainError,
    FieldViolation,
    InvalidField,
    LostRace,
    RequestIdReused,
    SessionExists,
    SpawnLimit,
)
from contextengine_server.session.address import Address, Addresses, Ref
from contextengine_server.session.children import ChildSessions
from contextengine_server.session.inherit import ParentSession, inherit
from contextengine_server.session.load import lineage_rows, load
from contextengine_server.session.receipt import Request
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import MAX_TRIES, Sessions
from contextengine_server.session.state import SessionState, facts_of
from contextengine_server.store.errors import ParentGone, RevisionConflict, TooManyChildren
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Commit, SessionHead, Spawn
from contextengine_server.telemetry.events import Events
from contextengine_server.telemetry.meters import Meters
from contextengine_server.telemetry.tracing import CURRENT


class SpawnRules(msgspec.Struct, frozen=True):
    """What children may do."""

    max_depth: int
    max_children: int
    """Live ones of one parent."""
    ttl_ms: int
    max_fork_tokens: int
    """Of the parent's view; a fork of a larger one starts isolated."""
    grant_tokens: int
    grant_depth: int


class Grant(msgspec.Struct, frozen=True):
    """What a child may recall of its parent; 0: as the rules say, and until it ends."""

    tokens: int = 0
    depth: int = 0
    expire_ms: int = 0


class SpawnRequest(msgspec.Struct, frozen=True):
    """A child to be prepared."""

    parent: Ref
    child: Ref
    fork: bool
    fork_after: Place | None = None
    """The last of the parent's messages that the fork begins with; None: the newest."""
    ttl_ms: int | None = None
    objective: str = ""
    grant: Grant | None = None
    transcripts: tuple[tuple[str, str], ...] = ()
    """Of parent and child, as the host names them: id and locator."""
    request: Request | None = None


class _Origin(msgspec.Struct, frozen=True):
    """The parent as it is now, and the tokens of its view."""

    parent: ParentSession
    tokens: int
    fork_after: int | None
    """The sequence of the last message that a fork begins with; None: the newest."""


class _Draft(msgspec.Struct, frozen=True):
    """A child's session, not yet written."""

    head: SessionHead
    fork: bool
    note: str = ""
    tokens: int = 0
    """Of the inherited view."""


class PrepareSubagentSpawn(msgspec.Struct, frozen=True):
    """Prepares children."""

    addresses: Addresses
    sessions: Sessions
    store: Store
    events: Events
    meters: Meters
    clock_ms: Callable[[], int]
    children: ChildSessions
    rules: SpawnRules

    async def run(self, tenant: str, wanted: SpawnRequest) -> Spawn:
        """Makes the child's session and its token. The same request again answers the same spawn.

        Raises InvalidField, SessionNotFound, RowNotFound, SessionExists, SpawnLimit,
        RequestIdReused."""
        parent = await self.addresses.find(tenant, wanted.parent)
        child = await self.addresses.find(tenant, wanted.child)
        if child.scope == parent.scope:
            raise InvalidField("child", "names the parent itself: a child has a session of its own")
        if wanted.fork and child.scope.agent != parent.scope.agent:
            raise InvalidField(
                "child.agent_id",
                "must be the parent's agent in a fork: give CONTEXT_MODE_ISOLATED, or that agent",
            )
        swept = False
        for _ in range(MAX_TRIES):
            try:
                origin = await self._origin(parent, wanted.fork_after)
                async with self.sessions.open(child.scope, lock=True) as session:
                    return await self._prepare(origin, child, wanted, session)
            except (RevisionConflict, ParentGone):
                continue  # the child was made meanwhile, or the parent deleted: look again
            except RequestIdReused:
                raise
            except DomainError:
                # What is refused now may have been answered before, and what has had its time
                # makes room. Most requests are new and have room, so they ask for neither.
                known = await self._known(parent.scope, wanted)
                if known is not None:
                    return known
                if swept or not await self.children.expire():
                    raise
                swept = True
        raise LostRace(
            f"child {child.scope.session} or its parent changes faster than it can be prepared:"
            " send again",
            retry_after_ms=50,
        )

    async def _known(self, parent: Scope, wanted: SpawnRequest) -> Spawn | None:
        """What the same request was answered before. Raises RequestIdReused."""
        if wanted.request is None:
            return None
        known = await self.store.spawns.asked(parent, wanted.request.id)
        return known if known is None else _same(known, wanted)

    async def _prepare(
        self,
        origin: _Origin,
        child: Address,
        wanted: SpawnRequest,
        session: Session,
    ) -> Spawn:
        parent = origin.parent.head.scope
        if session.head is not None:
            raise SessionExists(
                f"child: session {child.scope.session!r} is there already: prepare a child before"
                " it is first used, or give a new session_id",
                violations=[FieldViolation("child", "is there already")],
                metadata={"session_id": child.scope.session},
            )
        depth = origin.parent.state.depth + 1
        if depth > self.rules.max_depth:
            raise _limit("depth", self.rules.max_depth, f"the child would be {depth} deep")
        draft = await self._draft(origin, self.sessions.next_head(session, child), wanted, depth)
        now = self.clock_ms()
        ttl = wanted.ttl_ms or self.rules.ttl_ms
        grant = wanted.grant
        previous = (
            await self.store.current_session(*child.scope[:2], child.key) if child.bind else None
        )
        spawn = Spawn(
            tenant=child.scope.tenant,
            token=f"spawn-{secrets.token_urlsafe(24)}",
            agent=child.scope.agent,
            session=child.scope.session,
            parent_agent=parent.agent,
            parent_session=parent.session,
            parent_revision=origin.parent.head.revision,
            parent_sequence=(
                draft.head.parent_sequence if draft.fork else origin.parent.head.last_sequence
            ),
            fork=draft.fork,
            depth=depth,
            created_ms=now,
            ttl_ms=ttl,
            expire_ms=now + ttl,
            request_id=wanted.request.id if wanted.request is not None else "",
            digest=wanted.request.digest if wanted.request is not None else b"",
            note=draft.note,
            inherited_tokens=draft.tokens,
            previous_session=previous or "",
            objective=wanted.objective,
            transcripts=orjson.dumps(wanted.transcripts),
            grant_tokens=(grant.tokens or self.rules.grant_tokens) if grant is not None else 0,
            grant_depth=(grant.depth or self.rules.grant_depth) if grant is not None else 0,
            grant_expire_ms=grant.expire_ms if grant is not None else 0,
        )
        try:
            with CURRENT.get().span("commit"):
                made = await self.store.spawns.prepare(
                    spawn,
                    Commit(draft.head, 0, bind_key=child.bind, parent=origin.parent.named),
                    self.rules.max_children,
                )
        except TooManyChildren as error:
            raise _limit(
                "children",
                self.rules.max_children,
                f"session {parent.session!r} has as many live children",
            ) from error
        if made is not spawn:
            return _same(made, wanted)
        await self.sessions.fresh(session, 0)
        self._announce(spawn, draft.head.revision)
        return made

    async def _origin(self, address: Address, fork_after: Place | None) -> _Origin:
        async with self.sessions.open(address.scope) as session:
            session.require()
            after = None
            if fork_after is not None:
                after = await sequence_of(fork_after, session, self.store)
            head = session.require()
            return _Origin(
                ParentSession(head, SessionState.decode(head.state)),
                session.view.view_tokens(),
                after,
            )

    async def _draft(
        self,
        origin: _Origin,
        head: SessionHead,
        wanted: SpawnRequest,
        depth: int,
    ) -> _Draft:
        """The child's session as it begins."""
        note = ""
        if wanted.fork:
            forked = await self._fork(origin, head, origin.fork_after, depth)
            if forked.tokens <= self.rules.max_fork_tokens:
                return forked
            note = (
                "Parent context is too large to fork"
                f" ({forked.tokens}/{self.rules.max_fork_tokens} tokens);"
                " starting with isolated context instead."
            )
        state = SessionState(encoding=self.sessions.encodings.default.name, depth=depth)
        return _Draft(replace(head, state=state.encode()), fork=False, note=note)

    async def _fork(
        self, origin: _Origin, head: SessionHead, after: int | None, depth: int
    ) -> _Draft:
        """A session whose view begins with the parent's, up to a sequence."""
        head, state = inherit(head, SessionState(), origin.parent)
        tokens, last = origin.tokens, origin.parent.head.last_sequence
        if after is not None and after > last:
            raise InvalidField(
                "fork_after_sequence", f"is {after}: give 0 to {last}, the parent's newest sequence"
            )
        if after is not None and after < last:
            # What a view of fewer messages looks like is found by folding these alone.
            head = replace(head, parent_sequence=after, last_sequence=after)
            encoding = await self.sessions.encodings.of(state.encoding)
            view, summaries = await load(self.store, head, state, encoding.shaper, None)
            facts = structs.replace(facts_of(view, state.view), reopened=0)
            state = structs.replace(state, view=facts)
            head = replace(
                head,
                message_count=sum(len(rows) for _, rows in await lineage_rows(self.store, head)),
                message_tokens=view.total,
                summary_count=len(summaries),
            )
            tokens = view.view_tokens()
        state = structs.replace(state, depth=depth)
        return _Draft(replace(head, state=state.encode()), fork=True, tokens=tokens)

    def _announce(self, spawn: Spawn, revision: int) -> None:
        mode = "fork" if spawn.fork else "isolated"
        self.meters.subagents["forked" if spawn.fork else "isolated"].value += 1
        self.events.emit("session:created", *spawn.child, revision=revision)
        self.events.emit(
            "subagent:prepared",
            *spawn.child,
            revision=revision,
            counts={"depth": spawn.depth, "inherited_tokens": spawn.inherited_tokens},
            attributes={
                "mode": mode,
                "parent_agent": spawn.parent_agent,
                "parent_session": spawn.parent_session,
            },
        )


def _same(known: Spawn, wanted: SpawnRequest) -> Spawn:
    """What a request id was answered before. Raises RequestIdReused where it was another
    request's."""
    if wanted.request is None or known.digest != wanted.request.digest:
        raise RequestIdReused(
            "request_id: was used for another request: every request needs an id of its own",
            violations=[FieldViolation("request_id", "was used for another request")],
        )
    return known


def _limit(which: str, limit: int, text: str) -> SpawnLimit:
    return SpawnLimit(
        f"parent: {text}, at most {limit} are allowed (subagents.max_{which}): end children, or"
        " have the parent do the work",
        violations=[FieldViolation("parent", text)],
        metadata={"which": which, "limit": str(limit)},
    )
