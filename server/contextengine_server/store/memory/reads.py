"""What is read of sessions, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.rows import (
    Changes,
    MessageRow,
    SessionHead,
    StoredReply,
    SummaryRow,
)

from .connection import MemoryConnection
from .tables import live


class MemoryReads(MemoryConnection):
    """`Heads`, `Messages`, `Summaries`, `Replies` and `Listing`."""

    async def head(self, scope: Scope) -> SessionHead | None:
        """The session's head, or None where there is no such session."""
        return self._tables().head(scope)

    async def current_session(self, tenant: str, agent: str, session_key: str) -> str | None:
        """The id of the key's current session."""
        return self._tables().keys.get((tenant, agent, session_key))

    async def changes(self, scope: Scope, since: int) -> Changes | None:
        """What changed since a revision; None where the session is gone."""
        session = self._session(scope)
        if session is None:
            return None

        def changed(row: MessageRow | SummaryRow) -> bool:
            return row.created_revision > since or row.retired_revision > since

        return Changes(
            session.head,
            [row for row in session.between(0) if changed(row)],
            session.ordered(row for row in session.summaries.values() if changed(row)),
        )

    async def messages(
        self,
        scope: Scope,
        first: int = 1,
        last: int | None = None,
        *,
        as_of: int | None = None,
        retired: bool = False,
    ) -> list[MessageRow]:
        """The session's own messages with first <= sequence <= last, in order: live now, or as of a
        revision, or all."""
        session = self._session(scope)
        if session is None:
            return []
        rows = session.between(first, last)
        if retired:
            return [row for row in rows if as_of is None or row.created_revision <= as_of]
        return [row for row in rows if live(row, as_of)]

    async def messages_at(
        self,
        scope: Scope,
        sequences: Sequence[int],
        *,
        as_of: int | None = None,
        retired: bool = False,
    ) -> list[MessageRow]:
        """Those of the session's messages that have these sequences, in order."""
        session = self._session(scope)
        if session is None:
            return []
        held = session.messages
        rows = [held[sequence] for sequence in sorted({*sequences}) if sequence in held]
        if retired:
            return [row for row in rows if as_of is None or row.created_revision <= as_of]
        return [row for row in rows if live(row, as_of)]

    async def messages_by_host_id(self, scope: Scope, host_ids: Sequence[str]) -> list[MessageRow]:
        """Live messages with these host ids, in order."""
        session = self._session(scope)
        if session is None:
            return []
        found = {session.host_ids[id] for id in host_ids if id in session.host_ids}
        return [session.messages[sequence] for sequence in sorted(found)]

    async def atom_from(self, scope: Scope, start: int) -> MessageRow | None:
        """The first live message that begins an atom with at least this running sum before it."""
        session = self._session(scope)
        found = [
            (row.start, row.sequence)
            for row in (session.between(0) if session else ())
            if live(row) and row.start is not None and row.start >= start
        ]
        return session.messages[min(found)[1]] if session and found else None

    async def atom_of(self, scope: Scope, sequence: int) -> list[MessageRow]:
        """All live messages of the atom that shows a sequence, late results last; empty where none
        does."""
        session = self._session(scope)
        row = None if session is None else session.messages.get(sequence)
        if session is None or row is None or not live(row):
            return []
        return session.atom(row)

    async def pinned_atoms(self, scope: Scope, before: int) -> list[list[MessageRow]]:
        """For every live atom that begins before a sequence and holds a pinned message: all its
        live messages, late results included."""
        session = self._session(scope)
        if session is None:
            return []
        pinned = [row for row in session.between(0) if live(row) and row.pinned]
        atoms = {atom[0].sequence: atom for row in pinned if (atom := session.atom(row))}
        return [atoms[first] for first in sorted(atoms) if first < before]

    async def size(self, scope: Scope) -> int:
        """Bytes of a session's own rows, but for what search keeps: that is made of the same
        strings here."""
        session, tables = self._session(scope), self._tables()
        if session is None:
            return 0
        taken = sum(
            len(row.body) + len(row.content_hash) + len(row.host_id.encode())
            for row in session.messages.values()
        )
        taken += sum(len(row.text.encode()) for row in session.summaries.values())
        facts = (fact for fact in tables.facts.get(scope[:2], {}).values() if fact.scope == scope)
        taken += sum(len(fact.value.encode()) + len(fact.text.encode()) for fact in facts)
        shelves = tables.chunks.get(scope, {}).values()
        taken += sum(len(one.content.encode()) for there in shelves for one in there.values())
        answers = tables.replies.get(scope, {}).values()
        return taken + sum(len(reply.digest) + len(reply.reply) for reply, _ in answers)

    async def mend(self, scope: Scope, bodies: Sequence[tuple[int, bytes, bytes]]) -> int:
        """Puts bodies of these hashes in the place of damaged ones."""
        session, mended = self._session(scope), 0
        for sequence, content_hash, body in bodies if session is not None else ():
            row = session.messages.get(sequence) if session is not None else None
            if row is not None and row.content_hash == content_hash and row.body != body:
                assert session is not None
                session.put(replace(row, body=body))
                mended += 1
        return mended

    async def mend_summaries(self, scope: Scope, rows: Sequence[SummaryRow]) -> int:
        """Puts text and children in the place of damaged ones."""
        session, mended = self._session(scope), 0
        for row in rows if session is not None else ():
            assert session is not None
            old = session.summaries.get(row.id)
            if old is None or old.content_hash != row.content_hash:
                continue
            if (old.text, old.children) != (row.text, row.children):
                session.summaries[row.id] = replace(old, text=row.text, children=row.children)
                mended += 1
        return mended

    async def late_results(self, scope: Scope, first: int, last: int) -> list[MessageRow]:
        """Live messages that came late for atoms that begin within a range, in order."""
        session = self._session(scope)
        return [
            row
            for row in (session.between(0) if session else ())
            if live(row) and row.late_of is not None and first <= row.late_of <= last
        ]

    async def summaries(
        self, scope: Scope, *, as_of: int | None = None, retired: bool = False
    ) -> list[SummaryRow]:
        """The session's own summaries ordered by first sequence, then depth: live now, or as of a
        revision, or all."""
        session = self._session(scope)
        if session is None:
            return []
        rows = session.summaries.values()
        if retired:
            return session.ordered(
                row for row in rows if as_of is None or row.created_revision <= as_of
            )
        return session.ordered(row for row in rows if live(row, as_of))

    async def reply(self, scope: Scope, request_id: str) -> StoredReply | None:
        """What a request id was answered with."""
        found = self._tables().replies.get(scope, {}).get(request_id)
        return None if found is None else found[0]

    async def remember(self, scope: Scope, reply: StoredReply) -> None:
        """Keeps an answer outside a commit; the first one under an id stays."""
        tables = self._tables()
        if scope in tables.sessions:
            tables.replies.setdefault(scope, {}).setdefault(reply.request_id, (reply, 0))

    async def stray_replies(self, scope: Scope, newest: int, *, erase: bool = False) -> int:
        """How many answers are kept for revisions above `newest`; with `erase` they are erased."""
        kept = self._tables().replies.get(scope, {})
        stray = [id for id, (_, revision) in kept.items() if revision > newest]
        if erase:
            for id in stray:
                del kept[id]
        return len(stray)

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
        the last one seen."""

        def place(head: SessionHead) -> tuple[int, str, str]:
            return (head.updated_ms, head.scope.agent, head.scope.session)

        found = [
            session.head
            for scope, session in self._tables().sessions.items()
            if scope.tenant == tenant
            and agent in ("", scope.agent)
            and session_key in ("", session.head.session_key)
            and (after is None or place(session.head) < after)
        ]
        return sorted(found, key=place, reverse=True)[:limit]

    async def agent_sessions(
        self,
        tenant: str,
        agent: str,
        *,
        session_key: str = "",
        limit: int,
        after: tuple[int, str] | None = None,
    ) -> list[SessionHead]:
        """Heads of an agent's sessions, or of one key's, the one made last first."""

        def place(head: SessionHead) -> tuple[int, str]:
            return head.created_ms, head.scope.session

        found = [
            session.head
            for scope, session in self._tables().sessions.items()
            if (scope.tenant, scope.agent) == (tenant, agent)
            and session_key in ("", session.head.session_key)
            and (after is None or place(session.head) < after)
        ]
        return sorted(found, key=place, reverse=True)[:limit]

    async def tenants(self) -> list[str]:
        """The tenants that have sessions, in order."""
        return sorted({scope.tenant for scope in self._tables().sessions})

    async def idle_sessions(self, before_ms: int, limit: int) -> list[SessionHead]:
        """Sessions of every tenant that did not end, are not in the archive and were last written
        before a time, oldest first."""
        heads = [session.head for session in self._tables().sessions.values()]
        here = [head for head in heads if not head.ended and not head.archived]
        idle = [head for head in here if head.updated_ms < before_ms]
        return sorted(idle, key=attrgetter("updated_ms"))[:limit]

    async def staged(self, before_ms: int, limit: int) -> list[SessionHead]:
        """Heads of staged sessions to which nothing was added since a time."""
        heads = (session.head for session in self._tables().staged.values())
        return [head for head in heads if head.created_ms < before_ms][:limit]

    async def dependents(self, scope: Scope) -> list[Scope]:
        """Sessions that stand on this one directly."""
        return self._tables().dependents(scope)

    async def counts(self, tenant: str | None = None) -> dict[str, int]:
        """Rows by kind; of a tenant or of all."""
        tables = self._tables()
        own = [
            session
            for scope, session in tables.sessions.items()
            if tenant is None or scope.tenant == tenant
        ]
        return {
            "sessions": len(own),
            "messages": sum(len(session.messages) for session in own),
            "summaries": sum(len(session.summaries) for session in own),
            "debts": sum(
                tenant is None or debt.scope.tenant == tenant for debt in tables.debts.values()
            ),
            "agent_facts": sum(
                len(facts)
                for agent, facts in tables.facts.items()
                if tenant is None or agent[0] == tenant
            ),
        }
