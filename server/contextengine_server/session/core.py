"""The session core: sessions by their names, warm or read from the store, and one writer at a time
for each.

Every change is a `Commit`: prepared from memory, written, and only then applied to memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import field, replace
from functools import lru_cache
from typing import Any

import structlog

from contextengine_server.context.budget import DEFAULT_WINDOW, BudgetRules
from contextengine_server.context.fold import apply, extend
from contextengine_server.context.scope import Scope
from contextengine_server.context.value import value
from contextengine_server.context.view import View
from contextengine_server.engines.registration import InvalidEngine
from contextengine_server.errors import (
    DeadlinePassed,
    EngineFailed,
    InvalidField,
    LostRace,
    SessionNotFound,
    StoreDown,
)
from contextengine_server.session.cache import Session, WarmSessions
from contextengine_server.session.load import load
from contextengine_server.session.rows import entry_of, summary_overhead
from contextengine_server.session.selection import Selected, Selection
from contextengine_server.session.spans import loaded, name_scope
from contextengine_server.session.state import SessionState
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Changes, Commit, SessionHead
from contextengine_server.summarize import COUNT_ONLY_MAX_TOKENS, Summarizer, SummaryRequest
from contextengine_server.telemetry.events import Events
from contextengine_server.telemetry.meters import Meters
from contextengine_server.telemetry.tracing import CURRENT
from contextengine_server.tokens import MESSAGE_TOKENS, TokenCounter
from contextengine_server.wire.reading import Incoming
from contextengine_server.wire.shaping import WireShaper

MAX_WAIT_S = 30.0
"""How long a read waits for a revision, whatever the caller's deadline: calls that wait for what
never comes must not take the place of others."""

MAX_TRIES = 8
"""How often a lost race is tried again before the caller hears of it."""

log = structlog.get_logger("contextengine.sessions")


@value
class Ref:
    """How a request names a session."""

    agent: str
    session: str = ""
    key: str = ""
    field: str = "session"
    """Where in the request it stands, for errors."""


@value
class Limits:
    """What is refused as too large."""

    max_id_bytes: int = 256
    max_batch_messages: int = 100_000
    max_session_messages: int = 1_000_000
    max_message_bytes: int = 32 * 1024 * 1024
    cache_bytes: int = 256 * 1024 * 1024


@value
class Defaults:
    """Settings of budgets and failures."""

    window: int = DEFAULT_WINDOW
    window_cap: int | None = None
    rules: BudgetRules = field(default_factory=BudgetRules)
    encoding: str = "o200k_base"


@value
class Address:
    """A session, and how its key stands to it."""

    scope: Scope
    key: str = ""
    bind: bool = False
    """True where the next write ties the key to this session."""
    rotated: bool = False
    """True where the session is new under a known key."""


class SessionCore:
    """What every operation on sessions works with."""

    def __init__(
        self,
        store: Store,
        counter: TokenCounter,
        selection: Selection,
        summarizer: Summarizer,
        events: Events,
        clock_ms: Callable[[], int],
        new_id: Callable[[], str],
        limits: Limits,
        defaults: Defaults,
        meters: Meters,
    ) -> None:
        self.store = store
        self.counter = counter
        self.shaper = WireShaper(counter.count_text)
        self.selection = selection
        self.summarizer = summarizer
        self.events = events
        self.clock_ms = clock_ms
        self.new_id = new_id
        self.limits = limits
        self.defaults = defaults
        self.meters = meters
        self.summary_overhead = summary_overhead(counter.count_text)
        self.summary_floor = self.summary_overhead + COUNT_ONLY_MAX_TOKENS
        """What the smallest summary costs: nothing smaller is worth compacting."""
        self.warm = WarmSessions(limits.cache_bytes)
        self._own_texts = lru_cache(64)(counter.count_text)
        self.wake_background: Callable[[], None] = lambda: None
        self.summary_capacity: Callable[[SummaryRequest, int], int | None] = (
            lambda request, previous: None
        )
        """The tokens of messages that the model asked first takes at once, beside a previous
        summary of so many."""
        self.attached: Callable[[str], int] = lambda tenant: 0
        """How many harnesses of a tenant lend their models now."""

    # Addressing (contract §1).

    async def address(self, tenant: str, ref: Ref) -> Address:
        """The session that a request names. Raises InvalidField."""
        self._check(ref)
        address = await self._found(tenant, ref)
        name_scope(CURRENT.get(), address.scope)
        return address

    async def _found(self, tenant: str, ref: Ref) -> Address:
        if not ref.key:
            return Address(Scope(tenant, ref.agent, ref.session))
        current = await self.store.current_session(tenant, ref.agent, ref.key)
        if not ref.session:
            scope = Scope(tenant, ref.agent, current or ref.key)
            return Address(scope, ref.key, bind=current is None)
        scope = Scope(tenant, ref.agent, ref.session)
        if current == ref.session:
            return Address(scope, ref.key)
        head = await self.store.head(scope)
        if head is not None and head.session_key == ref.key:
            return Address(
                scope, ref.key
            )  # rotated out: stays readable, does not become current again
        return Address(scope, ref.key, bind=True, rotated=current is not None and head is None)

    def _check(self, ref: Ref) -> None:
        if not ref.agent:
            raise InvalidField(
                f"{ref.field}.agent_id", "is required: it names the agent whose session this is"
            )
        if not ref.session and not ref.key:
            raise InvalidField(
                f"{ref.field}.session_id",
                "is required, or session_key: one of the two names the session",
            )
        for name, given in (
            ("agent_id", ref.agent),
            ("session_id", ref.session),
            ("session_key", ref.key),
        ):
            if len(given.encode()) > self.limits.max_id_bytes:
                raise InvalidField(
                    f"{ref.field}.{name}",
                    f"is longer than {self.limits.max_id_bytes} bytes: shorten it",
                )
            if "\x00" in given:
                raise InvalidField(f"{ref.field}.{name}", "holds a NUL character: remove it")

    # Sessions in memory.

    @asynccontextmanager
    async def session(
        self, scope: Scope, reach: int | None = 0, *, lock: bool = False
    ) -> AsyncIterator[Session]:
        """The session as the store has it now, with a window of at least `reach` uncovered tokens;
        None: all of it.

        `lock`: to be written.
        """
        session = self.warm.enter(scope)
        try:
            if lock:
                async with session.lock:
                    with CURRENT.get().span("load") as span:
                        known = session.head
                        await self.fresh(session, reach)
                        loaded(span, session, known)
                    yield session
            else:
                with CURRENT.get().span("load") as span:
                    known = session.head
                    head = await self.store.head(scope)
                    if not self._current(session, head) or not session.holds(reach):
                        async with session.lock:
                            await self.fresh(session, reach)
                    loaded(span, session, known)
                yield session
        finally:
            self.warm.leave(session)

    async def reached(self, scope: Scope, revision: int) -> None:
        """Waits until the session is at least at this revision, as long as the caller's deadline
        allows. Raises DeadlinePassed."""
        pause = 0.002
        try:
            async with asyncio.timeout(MAX_WAIT_S):
                while revision > 0:
                    head = await self.store.head(scope)
                    if head is not None and head.revision >= revision:
                        return
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, 0.1)
        except TimeoutError:
            raise DeadlinePassed(
                f"at_least_revision: the session did not reach revision {revision} within"
                f" {MAX_WAIT_S:g} s: was it written to this server, and was the write"
                " acknowledged?",
                metadata={"field": "at_least_revision"},
            ) from None

    def require(self, session: Session) -> SessionHead:
        """The session's head. Raises SessionNotFound."""
        if session.head is None:
            raise not_found(session.scope)
        return session.head

    def _current(self, session: Session, head: SessionHead | None) -> bool:
        known = session.head
        if head is None or known is None:
            return head is known
        return head.revision == known.revision and head.incarnation == known.incarnation

    async def fresh(self, session: Session, reach: int | None, since: int | None = None) -> None:
        """Brings memory up to the store, under the session's lock."""
        head = await self.store.head(session.scope)
        if self._current(session, head):
            if since is None and session.holds(reach):
                return
        elif since is None and session.holds(reach) and await self._catch_up(session, head):
            return
        await self.reload(session, head, reach, since)

    async def reload(
        self,
        session: Session,
        head: SessionHead | None,
        reach: int | None,
        since: int | None = None,
    ) -> None:
        """Reads the session from the store."""
        for _ in range(MAX_TRIES):
            if head is None:
                session.place(
                    None,
                    SessionState(encoding=self.defaults.encoding),
                    View(scope=session.scope),
                    [],
                    None,
                )
                self.warm.grown(session, 0)
                return
            state = SessionState.decode(head.state)
            if reach is not None and session.reach is not None:
                reach = max(reach, session.reach) if session.head is not None else reach
            view, summaries = await load(self.store, head, state, self.shaper, reach, since)
            now = await self.store.head(session.scope)
            if (
                now is not None
                and now.revision == head.revision
                and now.incarnation == head.incarnation
            ):
                before, session.size = session.size, 0
                session.place(head, state, view, summaries, None if view.base == 0 else reach)
                size, session.size = session.size, before
                self.warm.grown(session, size)
                return
            head = now
        raise LostRace(
            f"session {session.scope.session} changes faster than it can be read: send again",
            retry_after_ms=50,
        )

    async def _catch_up(self, session: Session, head: SessionHead | None) -> bool:
        """Brings memory up to another replica's appends; False where it must be read again."""
        known = session.head
        if (
            head is None
            or known is None
            or head.incarnation != known.incarnation
            or head.revision < known.revision
        ):
            return False
        changes: Changes | None = await self.store.changes(session.scope, known.revision)
        if (
            changes is None
            or changes.summaries
            or any(row.retired_revision for row in changes.messages)
        ):
            return False
        state = SessionState.decode(changes.head.state)
        if state.view.reopened > known.revision or head.parent_session:
            return False
        entries = [entry_of(row) for row in changes.messages]
        if entries:
            apply(session.view, extend(session.view, entries, self.shaper))
            session.ids.update({e.id: (e.sequence, e.hash, e.tokens) for e in entries if e.id})
        session.head, session.state = changes.head, state
        session.view.revision = changes.head.revision
        return session.view.total == changes.head.message_tokens

    # Writing.

    async def commit(self, commit: Commit) -> None:
        """Writes a change. A lost race and known ids are the caller's to handle."""
        with CURRENT.get().span("commit") as span:
            span.set("contextengine.commit.revision", commit.head.revision)
            span.set("contextengine.commit.messages", len(commit.messages))
            span.set("contextengine.commit.summaries", len(commit.summaries))
            try:
                await self.store.commit(commit)
            except StoreUnavailable as error:
                raise StoreDown(f"{error}: nothing was changed", retry_after_ms=1000) from error

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
            **changed,
        )

    async def count(self, incoming: Sequence[Incoming]) -> None:
        """Counts the tokens of messages that arrived, small ones here, long ones in threads; not of
        those that are known."""
        for message in incoming:
            if message.own or message.tokens:
                continue
            small = self.counter.count_small(message.texts)
            if small is None:
                small = sum(await self.counter.count_many(message.texts))
            message.tokens = message.fixed_tokens + small

    def text_tokens(self, text: str) -> int:
        """The tokens of one of the service's own texts, as a message of its own."""
        return MESSAGE_TOKENS + self._own_texts(text) if text else 0

    def engine_failed(self, scope: Scope, engine_id: str, operation: str, how: str) -> None:
        """Records an engine's failure: the first wins, all are said."""
        self.selection.failed(engine_id, operation, how, self.clock_ms())
        self.events.emit(
            "engine:failed",
            *scope,
            attributes={"engine": engine_id, "operation": operation, "how": how},
        )

    async def select(self, scope: Scope) -> Selected:
        """The engine that serves a scope. Raises UnknownEngine, EngineFailed."""
        try:
            return await self.selection.select(scope)
        except InvalidEngine as error:
            choice = await self.selection.choose(scope)
            self.engine_failed(scope, choice.engine_id, "load", str(error))
            if not self.selection.falls_back:
                raise EngineFailed(
                    f"{error}: assign another engine or set on_engine_failure",
                    metadata={"engine": choice.engine_id, "operation": "load"},
                ) from error
            return Selected(
                self.selection.fallback(),
                choice.source,
                choice.options_source,
                chosen=choice.engine_id,
            )


def not_found(scope: Scope) -> SessionNotFound:
    """The error for a session that does not exist."""
    return SessionNotFound(
        f"there is no session {scope.session!r} of agent {scope.agent!r}: write to it first"
        " (Bootstrap or Ingest)",
        metadata={"agent_id": scope.agent, "session_id": scope.session},
    )
