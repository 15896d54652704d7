"""What a store does with sessions: heads, commits, messages, summaries, answers, lists."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from contextengine_server.context.scope import Scope
from contextengine_server.store.rows import (
    Assignment,
    Changes,
    Commit,
    Deleted,
    MessageRow,
    SessionHead,
    StoredReply,
    StoreHealth,
    SummaryRow,
)

Answering = Callable[[Deleted], StoredReply] | None
"""Makes of a deletion what its request id is answered with; None: nothing is kept."""


class Observer(Protocol):
    """Is told what became durable: on the event loop, before the caller who waits for it goes on,
    and whether or not anyone still waits."""

    def committed(self, commit: Commit) -> None:
        """A commit was written, by itself or with a spawn."""

    def erased(self, scopes: Sequence[Scope]) -> None:
        """Sessions were erased."""


class Connection(Protocol):
    """The store's tie to its database."""

    async def open(self) -> None:
        """Opens, locks and migrates the database. Raises StoreRefused."""

    async def close(self) -> None:
        """Writes what is queued, then closes. Safe twice."""

    async def health(self) -> StoreHealth:
        """How the store is. Raises nothing."""

    def clock_ms(self) -> int:
        """The time, in milliseconds since 1970 UTC: one clock for all that have the database open,
        so that a lease and whatever else has its time ends at the same moment for everybody,
        whatever the clocks of their machines say. A store that is elsewhere may be wrong by as much
        as a message to it takes. The machine's own while the store is not open."""

    async def probe(self) -> None:
        """Writes as little as can be, to where all is written, and changes nothing. Raises
        StoreUnavailable where no write would become durable now."""

    async def vacuum(self) -> None:
        """Finishes every erasure, and gives back all space that can be given back. May take as long
        as copying the database, and keep writes waiting for that time."""


class Heads(Protocol):
    """Where sessions stand."""

    async def head(self, scope: Scope) -> SessionHead | None:
        """The session's head, or None where there is no such session."""

    async def current_session(self, tenant: str, agent: str, session_key: str) -> str | None:
        """The id of the key's current session."""

    async def changes(self, scope: Scope, since: int) -> Changes | None:
        """What changed since a revision; None where the session is gone."""


class Commits(Protocol):
    """Changes of sessions."""

    def commit(self, commit: Commit) -> Awaitable[None]:
        """Writes one change durably; returns after it is. Many sessions' commits may share one
        transaction, and one that fails fails alone. A caller that is cancelled while it waits does
        not take the change back.

        Where the database goes away in the middle, the store asks it what became of the change, by
        the name of the commit in the head, and answers that.

        Raises RevisionConflict, ParentGone, DuplicateHostIds, DuplicateRequest, StoreUnavailable,
        StoreUncertain; StoreError where the commit is at odds with itself or the rows: an
        incomplete scope, a sequence or summary id that is stored, facts of no stored message, a
        summary to retire that is not live, `bind_key` without a key, a debt of another session."""

    async def delete(
        self,
        scope: Scope,
        *,
        expected_revision: int | None,
        cascade: bool,
        answer: Answering = None,
        overwritten: bool = True,
    ) -> Deleted:
        """Erases a session with everything derived from it, and with `cascade` all that stand on
        it, in one transaction. A session that is not there is erased already, unless a revision is
        expected. What `answer` makes of it is kept with the agent, where `reply` finds it without a
        session's name. `overwritten`: waits a moment for what was erased to be overwritten, which
        goes on in the background else. Raises HasDependents, RevisionConflict."""

    async def unstage(self, scope: Scope, incarnation: str, above: int = 0) -> None:
        """Erases of a staged session of this incarnation the messages above a sequence; above 0 the
        session as well. Does nothing where there is none. Whoever has many erases them in parts,
        the newest first."""

    async def forget(self, tenant: str, agent: str = "") -> int:
        """Erases what stands beside the sessions of an agent, or of a tenant and all its agents:
        what operators chose for more than a session, costs and spending, answers kept with agents,
        what guards remember of a tenant. Sessions and what is theirs stay. Answers how many rows
        went, and waits a moment for all that was erased to be overwritten."""

    def observe(self, observer: Observer) -> None:
        """From now on, tells of what this store wrote. Never of what others wrote in the same
        database."""


class Messages(Protocol):
    """A session's own messages. Facts are always those of now."""

    async def messages(
        self,
        scope: Scope,
        first: int = 1,
        last: int | None = None,
        *,
        as_of: int | None = None,
        retired: bool = False,
    ) -> list[MessageRow]:
        """Those with first <= sequence <= last, in order: live now, or live as of a revision, or
        with `retired` all of either."""

    async def messages_at(
        self,
        scope: Scope,
        sequences: Sequence[int],
        *,
        as_of: int | None = None,
        retired: bool = False,
    ) -> list[MessageRow]:
        """Those of `messages` that have these sequences, in order."""

    async def messages_by_host_id(self, scope: Scope, host_ids: Sequence[str]) -> list[MessageRow]:
        """Live messages with these host ids, in order; an id that no live message has is passed
        over."""

    async def atom_from(self, scope: Scope, start: int) -> MessageRow | None:
        """The first live message that begins an atom with at least this running sum before it."""

    async def atom_of(self, scope: Scope, sequence: int) -> list[MessageRow]:
        """All live messages of the atom that shows a sequence, late results last; empty where none
        does."""

    async def pinned_atoms(self, scope: Scope, before: int) -> list[list[MessageRow]]:
        """For every live atom that begins before a sequence and holds a pinned message: all its
        live messages, late results last. Atoms in the order of their first sequences; a pinned
        message that no atom shows is passed over."""

    async def mend(self, scope: Scope, bodies: Sequence[tuple[int, bytes, bytes]]) -> int:
        """Puts (sequence, content hash, body) in the place of bodies that are damaged. A row that
        has not this hash, or is not there, stays as it is. Answers how many were changed."""

    async def late_results(self, scope: Scope, first: int, last: int) -> list[MessageRow]:
        """Live messages that came late for atoms that begin with first <= sequence <= last, in
        order; shown there or as notes."""


class Summaries(Protocol):
    """A session's own summaries."""

    async def summaries(
        self, scope: Scope, *, as_of: int | None = None, retired: bool = False
    ) -> list[SummaryRow]:
        """They, ordered by first sequence, then depth: live now, or live as of a revision, or with
        `retired` all of either. One whose text or children cannot be read does not keep the others
        from it: what is no text in it is marked, and children that are no list are none, so that
        it is not what its hash names."""

    async def mend_summaries(self, scope: Scope, rows: Sequence[SummaryRow]) -> int:
        """Puts text and children of these in the place of others at the summaries of the same id
        and hash. Answers how many were changed."""


class Sizes(Protocol):
    """What sessions take."""

    async def size(self, scope: Scope) -> int:
        """Bytes of a session's own rows, retired ones included: bodies and ids of messages, texts
        of summaries, facts, answers to request ids, texts that search keeps. 0 where there is
        none. Takes time in proportion to the rows."""


class Replies(Protocol):
    """What request ids were answered with."""

    async def reply(self, scope: Scope, request_id: str) -> StoredReply | None:
        """What a request id was answered with."""

    async def remember(self, scope: Scope, reply: StoredReply) -> None:
        """Keeps an answer outside a commit; the first one under an id stays. Does nothing where
        there is no such session."""

    async def stray_replies(self, scope: Scope, newest: int, *, erase: bool = False) -> int:
        """How many answers are kept for revisions above `newest` (-1: all); with `erase` they are
        erased."""


class Listing(Protocol):
    """Which sessions there are."""

    async def list_sessions(
        self,
        tenant: str,
        *,
        agent: str = "",
        session_key: str = "",
        limit: int,
        after: tuple[int, str, str] | None = None,
    ) -> list[SessionHead]:
        """Heads, newest write first, at most `limit`; `after` is (updated_ms, agent, session) of
        the last one seen. Ties fall by agent, then session, both descending."""

    async def agent_sessions(
        self,
        tenant: str,
        agent: str,
        *,
        session_key: str = "",
        limit: int,
        after: tuple[int, str] | None = None,
    ) -> list[SessionHead]:
        """Heads of an agent's sessions, or of one key's, the one made last first, at most `limit`;
        `after` is (created_ms, session) of the last one seen. Equal times fall by session,
        descending. A write moves no session in this order."""

    async def idle_sessions(self, before_ms: int, limit: int) -> list[SessionHead]:
        """Sessions of every tenant that did not end, are not in the archive and were last written
        before a time, oldest first."""

    async def staged(self, before_ms: int, limit: int) -> list[SessionHead]:
        """Heads of staged sessions of every tenant to which nothing was added since a time."""

    async def tenants(self) -> list[str]:
        """The tenants that have sessions, in order."""

    async def dependents(self, scope: Scope) -> list[Scope]:
        """Sessions that stand on this one directly, by name."""

    async def counts(self, tenant: str | None = None) -> dict[str, int]:
        """Rows by kind: sessions, messages, summaries, debts, agent_facts; of a tenant or of
        all."""


class Assignments(Protocol):
    """What operators chose."""

    async def assignments(self, tenant: str | None) -> list[Assignment]:
        """What was chosen within a tenant, or within all (None), by tenant, agent, session."""

    async def assign(self, assignment: Assignment) -> None:
        """Records a choice; one with no engine and no options removes it."""
