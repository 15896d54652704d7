"""The sessions of this server: warm or read from the store, and one writer at a time for each.

Every change is a `Commit`: prepared from memory, written, and only then applied to memory.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import msgspec
from msgspec.structs import replace

from contextengine_server.context.fold import apply, extend
from contextengine_server.context.scope import Scope
from contextengine_server.context.view import View
from contextengine_server.context.work import AT_ONCE
from contextengine_server.errors import UNCERTAIN, DeadlinePassed, LostRace, StoreDown
from contextengine_server.fairness.place import PLACE
from contextengine_server.slices import Pace, in_slices
from contextengine_server.store.commits import COMMIT_IDS
from contextengine_server.store.errors import StoreUnavailable, StoreUncertain
from contextengine_server.store.held_lease import held
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import LINE, Commit, SessionHead
from contextengine_server.telemetry.events import Events
from contextengine_server.telemetry.tracing import CURRENT, Trace
from contextengine_server.wire.damage import summary_hash
from contextengine_server.wire.entries import stored
from contextengine_server.wire.message import Incoming

from .address import Address
from .encoding import Encoding, Encodings
from .inherit import begun
from .load import load
from .rows import tell_damage
from .session import Session, Survey, survey
from .spans import commit_span, loaded
from .state import SessionState

MAX_WAIT_S = 30.0
"""How long a read waits for a revision, whatever its deadline: what it waits for may never come."""

LOOK_AGAIN_S = 1.0
"""How often a read that waits looks whether another process has written."""

COMPACTION = "compaction"
"""The lease of whoever compacts a session, so that no model is asked twice for one summary."""

MAX_TRIES = 8
"""How often a lost race is tried again before the caller hears of it."""


def now_ms() -> int:
    """This machine's clock, in milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


async def count_messages(encoding: Encoding, messages: Sequence[Incoming]) -> None:
    """Counts what arrived, but for messages of ours and those counted in this encoding."""
    pace = Pace() if len(messages) > AT_ONCE else None
    for message in messages:
        if message.own or message.counted_in == encoding.name:
            continue
        if pace is not None and pace.over:
            await pace.turn()
        small = encoding.counter.count_small(message.texts)
        if small is None:
            small = sum(await encoding.counter.count_many(message.texts))
        message.tokens, message.counted_in = message.fixed_tokens + small, encoding.name


class SessionCache:
    """The sessions in memory, bounded by their bytes; the least recently used leaves first, but
    none that is in use. cachetools has no way to keep an entry that is in use.

    Those that may leave stand apart, so that no call takes longer the more sessions are warm.
    """

    def __init__(self, capacity: int, encoding: Encoding) -> None:
        self.capacity = capacity
        self.bytes = 0
        self._encoding = encoding
        """What a session that is not read yet counts in."""
        self._sessions: dict[Scope, Session] = {}
        self._idle: OrderedDict[Scope, None] = OrderedDict()
        """Those that nobody uses, the least recently used first."""
        self.find: Callable[[Scope], Session | None] = self._sessions.get
        """The session, where it is warm."""

    def __len__(self) -> int:
        return len(self._sessions)

    def enter(self, scope: Scope) -> Session:
        """The session's place in memory, in use until `leave`."""
        session = self._sessions.get(scope)
        if session is None:
            session = self._sessions[scope] = Session(scope, self._encoding)
        elif not session.users:
            del self._idle[scope]
        session.users += 1
        return session

    def leave(self, session: Session) -> None:
        """Ends a use."""
        session.users -= 1
        if not session.users:
            self._idle[session.scope] = None
            if session.head is None:
                # Nothing is kept for sessions that do not exist, however many are asked for.
                self.drop(session.scope)
        if self.bytes > self.capacity:
            self.shrink()

    def grown(self, session: Session, size: int) -> None:
        """Notes that a session takes another number of bytes now."""
        self.bytes += size - session.size
        session.size = size

    def shrink(self) -> None:
        """Lets sessions go until the rest fits."""
        while self.bytes > self.capacity and self._idle:
            self.drop(next(iter(self._idle)))

    def drop(self, scope: Scope) -> bool:
        """Lets a session go, unless it is in use; True where something was held."""
        if scope not in self._idle:
            return False
        del self._idle[scope]
        gone = self._sessions.pop(scope)
        self.bytes -= gone.size
        gone.let_go()
        return True

    def all(self) -> list[Session]:
        """Every warm session."""
        return list(self._sessions.values())


class Sessions(msgspec.Struct, frozen=True):
    """Opens sessions, brings them up to the store, and commits their changes."""

    store: Store
    cache: SessionCache
    encodings: Encodings
    clock_ms: Callable[[], int]
    new_id: Callable[[], str]
    events: Events
    waiting: dict[Scope, set[asyncio.Future[None]]] = {}
    """Who waits for the next change of a session."""

    @asynccontextmanager
    async def open(
        self, scope: Scope, reach: int | None = 0, *, lock: bool = False
    ) -> AsyncIterator[Session]:
        """The session as the store has it now, with a window of at least `reach` uncovered tokens;
        None: all of it.

        `lock`: to be written.
        """
        session, trace = self.cache.enter(scope), CURRENT.get()
        try:
            if lock:
                async with session.lock:
                    if trace.sampled:
                        await self._traced_load(session, reach, trace, locked=True)
                    else:
                        await self.fresh(session, reach)
                    yield session
            else:
                if trace.sampled:
                    await self._traced_load(session, reach, trace, locked=False)
                else:
                    await self._current(session, reach)
                yield session
        finally:
            self.cache.leave(session)

    async def caught_up(self, scope: Scope) -> None:
        """Brings what memory has of a session up to the store. Whoever holds its lock sees to it
        himself."""
        session = self.cache.find(scope)
        if session is not None and not session.lock.locked():
            async with self.open(scope):
                pass

    async def _current(self, session: Session, reach: int | None) -> None:
        """Brings memory up to the store; whoever reads waits for the lock only where it is not."""
        head = await self.store.head(session.scope)
        if head is not session.head and not session.is_at(head):
            behind = True
        else:
            behind = session.view.base > 0 and not session.holds(reach)
        if behind:
            async with session.lock:
                await self.fresh(session, reach)

    async def _traced_load(
        self, session: Session, reach: int | None, trace: Trace, *, locked: bool
    ) -> None:
        with trace.span("load") as span:
            known = session.head
            await (self.fresh(session, reach) if locked else self._current(session, reach))
            loaded(span, from_memory=session.head is known)

    async def encoding_of(self, scope: Scope) -> Encoding:
        """What a session counts in; of one that is not there, what new ones do."""
        session = self.cache.find(scope)
        if session is not None and session.head is not None:
            return session.encoding
        head = await self.store.head(scope)
        if head is None:
            return self.encodings.default
        return await self.encodings.of(SessionState.decode(head.state).encoding)

    async def reached(self, scope: Scope, revision: int) -> None:
        """Waits until the session is at least at this revision, as long as the caller's deadline
        allows. Who waits holds no place of those that are worked on. Raises DeadlinePassed,
        Overloaded."""
        if revision <= 0 or await self._is_at(scope, revision):
            return
        async with PLACE.get().away():
            try:
                async with asyncio.timeout(MAX_WAIT_S):
                    await self._until(scope, revision)
            except TimeoutError:
                raise DeadlinePassed(
                    f"at_least_revision: the session did not reach revision {revision} within"
                    f" {MAX_WAIT_S:g} s: was it written to this server, and was the write"
                    " acknowledged?",
                    metadata={"field": "at_least_revision"},
                ) from None

    async def _is_at(self, scope: Scope, revision: int) -> bool:
        head = await self.store.head(scope)
        return head is not None and head.revision >= revision

    async def _until(self, scope: Scope, revision: int) -> None:
        while True:
            change = asyncio.get_running_loop().create_future()
            waiting = self.waiting.setdefault(scope, set())
            waiting.add(change)
            try:
                if await self._is_at(scope, revision):
                    return
                # What others write to the same store is told to nobody here.
                await asyncio.wait([change], timeout=LOOK_AGAIN_S)
            finally:
                waiting.discard(change)
                if not waiting and self.waiting.get(scope) is waiting:
                    del self.waiting[scope]

    def wake(self, scope: Scope) -> None:
        """The session changed, here or on another server: who waits for that looks at it."""
        for change in self.waiting.pop(scope, ()):
            if not change.done():
                change.set_result(None)

    async def fresh(self, session: Session, reach: int | None) -> None:
        """Brings memory up to the store, under the session's lock."""
        head = await self.store.head(session.scope)
        if head is session.head or session.is_at(head):
            if session.view.base == 0 or session.holds(reach):
                return
        elif session.holds(reach) and await self._catch_up(session, head):
            return
        await self.reload(session, head, reach)

    async def reread(self, session: Session, reach: int | None, *, locked: bool) -> None:
        """Reads as far back as is needed. `locked`: the caller holds the session's lock."""
        if locked:
            await self.fresh(session, reach)
        else:
            async with session.lock:
                await self.fresh(session, reach)

    async def reload(self, session: Session, head: SessionHead | None, reach: int | None) -> None:
        """Reads the session from the store."""
        for _ in range(MAX_TRIES):
            if head is None:
                encoding = self.encodings.default
                state = SessionState(encoding=encoding.name)
                empty = View(scope=session.scope)
                session.place(None, state, empty, [], None, encoding, Survey())
                self.cache.grown(session, 0)
                return
            state = SessionState.decode(head.state)
            encoding = await self.encodings.of(state.encoding)
            if reach is not None and session.reach is not None:
                reach = max(reach, session.reach) if session.head is not None else reach
            found = begun(head, state, self.cache.find)
            known: Survey | None = None
            if found is not None:
                view, summaries, known = found
            else:
                view, summaries = await load(self.store, head, state, encoding.shaper, reach)
            if known is None:
                known = await in_slices(survey(view))
            now = await self.store.head(session.scope)
            if now is not None and now.same_as(head):
                reached = None if view.base == 0 else reach
                session.place(head, state, view, summaries, reached, encoding, known)
                self.cache.grown(session, known.size)
                tell_damage(self.events, head, known.damaged, summaries)
                return
            head = now
        raise LostRace(
            f"session {session.scope.session} changes faster than it can be read: send again",
            retry_after_ms=50,
        )

    async def _catch_up(self, session: Session, head: SessionHead | None) -> bool:
        """Brings memory up to another replica's appends; False where it must be read again."""
        known = session.head
        if head is None or known is None or not head.grew_from(known):
            return False
        changes = await self.store.changes(session.scope, known.revision)
        if (
            changes is None
            or not changes.head.grew_from(known)  # it may have gone on, or be another by now
            or changes.summaries
            or any(row.retired_revision for row in changes.messages)
        ):
            return False
        state = SessionState.decode(changes.head.state)
        if state.view.reopened > known.revision or changes.head.parent_session:
            return False
        entries = [stored(row) for row in changes.messages]
        damaged = [entry.sequence for entry in entries if entry.damaged]
        session.damaged = (*session.damaged, *damaged)
        tell_damage(self.events, head, damaged)
        if entries:
            apply(session.view, extend(session.view, entries, session.encoding.shaper))
        session.advance(changes.head, state, entries)
        return session.view.total == changes.head.message_tokens

    # Writing.

    async def commit(self, commit: Commit) -> None:
        """Writes a change. A lost race and known ids are the caller's to handle."""
        if commit.summaries:
            sealed = [replace(row, content_hash=summary_hash(row)) for row in commit.summaries]
            commit = replace(commit, summaries=sealed)
        trace = CURRENT.get()
        with commit_span(trace, commit) if trace.sampled else nullcontext():
            try:
                await self.store.commit(commit)
            except StoreUncertain as error:
                # What is in memory is checked against the head before anybody uses it.
                raise StoreDown(f"{error}: {UNCERTAIN}", retry_after_ms=1000) from error
            except StoreUnavailable as error:
                raise StoreDown(f"{error}: nothing was changed", retry_after_ms=1000) from error
        if self.waiting:
            self.wake(commit.head.scope)

    @asynccontextmanager
    async def compacting(self, session: Session) -> AsyncIterator[bool]:
        """Nobody else compacts the session meanwhile, on any server. True: somebody did until now,
        and memory has what came of it."""
        waited, leases = session.compaction.locked(), self.store.leases
        async with session.compaction, held(leases, session.scope, COMPACTION) as elsewhere:
            if waited or elsewhere:
                async with session.lock:
                    await self.fresh(session, session.reach)
            yield waited or elsewhere

    async def lost_race(self, session: Session, tries: int) -> None:
        """Reads the session again after another writer won; gives up after a while."""
        if tries >= MAX_TRIES:
            raise LostRace(
                f"session {session.scope.session} was changed by others {tries} times meanwhile:"
                " send again",
                retry_after_ms=50,
            )
        await self.fresh(session, session.reach)

    def next_head(
        self, session: Session, address: Address | None = None, **changed: Any
    ) -> SessionHead:
        """The head after a change: one revision on, or the first of a new session. `changed`: other
        fields of it."""
        now = self.clock_ms()
        head = session.head
        if head is None:
            head = SessionHead(session.scope, self.new_id(), 0, 0, created_ms=now)
        key = address.key if address is not None and address.bind else head.session_key
        return replace(
            head,
            revision=head.revision + 1,
            session_key=key,
            updated_ms=max(now, head.updated_ms),
            ended=False,
            commit_id=next(COMMIT_IDS),
            ancestors=(head.ancestors + head.commit_id)[-LINE:],
            **changed,
        )
