"""The rows, as dictionaries."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.agent_facts import AgentFact
from contextengine_server.store.archives import ArchivedObject, Stage
from contextengine_server.store.charges import Spent
from contextengine_server.store.chunks import Chunk, ChunkShelf
from contextengine_server.store.debts import Debt
from contextengine_server.store.local import FeedRows
from contextengine_server.store.model_jobs import ModelJob
from contextengine_server.store.rows import (
    Assignment,
    Costs,
    MessageRow,
    SessionHead,
    Spawn,
    StoredReply,
    SummaryRow,
)

from .passages import Passages


def live(row: MessageRow | SummaryRow, as_of: int | None = None) -> bool:
    """Whether a row is in the view, now or as of a revision."""
    if as_of is None:
        return not row.retired_revision
    return row.created_revision <= as_of and not 0 < row.retired_revision <= as_of


class SessionTables:
    """The rows of one session. `head` and what the dictionaries hold are replaced, never
    changed."""

    def __init__(self, head: SessionHead) -> None:
        self.head = head
        self.messages: dict[int, MessageRow] = {}
        self.summaries: dict[str, SummaryRow] = {}
        self.host_ids: dict[str, int] = {}
        """Of the live messages: which message has an id."""
        self._sequences: list[int] = []
        self._late: dict[int, set[int]] = {}
        """By the first message of an atom: what came late for it."""

    def put(self, row: MessageRow) -> None:
        """Adds a message, or replaces the one of its sequence."""
        before = self.messages.get(row.sequence)
        if before is None:
            insort(self._sequences, row.sequence)
        elif before.late_of is not None:
            self._late[before.late_of].discard(row.sequence)
        if row.late_of is not None:
            self._late.setdefault(row.late_of, set()).add(row.sequence)
        self.messages[row.sequence] = row
        if row.host_id and not row.retired_revision:
            self.host_ids[row.host_id] = row.sequence
        elif self.host_ids.get(row.host_id) == row.sequence:
            del self.host_ids[row.host_id]

    def between(self, first: int, last: int | None = None) -> Iterator[MessageRow]:
        """Messages of a range of sequences, in order, retired ones included."""
        low = bisect_left(self._sequences, first)
        high = len(self._sequences) if last is None else bisect_right(self._sequences, last)
        return (self.messages[self._sequences[at]] for at in range(low, high))

    def backwards(self, last: int) -> Iterator[MessageRow]:
        """Messages from a sequence back to the first, retired ones included."""
        high = bisect_right(self._sequences, last)
        return (self.messages[self._sequences[at]] for at in range(high - 1, -1, -1))

    def atom(self, row: MessageRow) -> list[MessageRow]:
        """All live messages of the atom that shows a live message, late results last; empty where
        none does."""
        first = row.late_of
        if row.step is None:
            return []
        if first is None:
            first = next(
                (
                    one.sequence
                    for one in self.backwards(row.sequence)
                    if live(one) and one.start is not None and one.step == row.step
                ),
                None,
            )
        if first is None:
            return []
        members = []
        for one in filter(live, self.between(first)):
            # Where a later atom begins, this one is over. Not just the next to begin: a note may
            # come between a call and its result, a step before them.
            if one.start is not None and one.step is not None and one.step > row.step:
                break
            if one.step == row.step and one.late_of is None:
                members.append(one)
        late = [self.messages[sequence] for sequence in sorted(self._late.get(first, ()))]
        return members + [one for one in late if live(one)]

    def ordered(self, rows: Iterable[SummaryRow]) -> list[SummaryRow]:
        """Summaries as they are answered: by first sequence, then depth."""
        return sorted(
            rows, key=lambda row: (row.first_sequence, row.depth, row.created_revision, row.id)
        )

    @property
    def first_sequence(self) -> int:
        """The first message's sequence; 0 where there is none."""
        return self._sequences[0] if self._sequences else 0

    @property
    def last_sequence(self) -> int:
        """The last message's sequence; 0 where there is none."""
        return self._sequences[-1] if self._sequences else 0


class Tables:
    """What a database is to other stores: the rows of all sessions. Stores over one value are
    servers over one database. For one event loop."""

    def __init__(self) -> None:
        self.sessions: dict[Scope, SessionTables] = {}
        self.staged: dict[Scope, SessionTables] = {}
        """Sessions that nobody sees yet."""
        self.keys: dict[tuple[str, str, str], str] = {}
        self.replies: dict[Scope, dict[str, tuple[StoredReply, int]]] = {}
        """With each answer the revision that it belongs to; 0: none."""
        self.debts: dict[tuple[Scope, str], Debt] = {}
        self.assignments: dict[tuple[str, str, str], Assignment] = {}
        self.guards: dict[str, bytes] = {}
        self.quotas: dict[str, bytes] = {}
        self.jobs: dict[tuple[str, str], ModelJob] = {}
        self.spawns: dict[tuple[str, str], Spawn] = {}
        self.spent: dict[tuple[str, str], dict[int, Spent]] = {}
        self.costs: dict[tuple[str, str, str, str], Costs] = {}
        self.facts: dict[tuple[str, str], dict[str, AgentFact]] = {}
        """By agent, then by id."""
        self.chunks: dict[Scope, dict[ChunkShelf, dict[str, Chunk]]] = {}
        self.archives: dict[tuple[Scope, str], ArchivedObject] = {}
        self.passages = Passages()
        self.feed = FeedRows()
        self.leases: dict[tuple[Scope, str], tuple[str, float]] = {}

    def head(self, scope: Scope) -> SessionHead | None:
        """Where a session stands; None where it is not there."""
        session = self.sessions.get(scope)
        return None if session is None else session.head

    def dependents(self, scope: Scope) -> list[Scope]:
        """Sessions that stand on one directly, by name."""
        parent = self.head(scope)
        lives = ("", "" if parent is None else parent.incarnation)
        return sorted(
            one
            for one, session in self.sessions.items()
            if one[:2] == scope[:2]
            and session.head.parent_session == scope.session
            and session.head.parent_incarnation in lives
        )

    def erase(self, scope: Scope) -> tuple[int, int]:
        """Takes a session out with everything derived from it; answers how many messages and
        summaries went."""
        gone = self.sessions.pop(scope)
        self.replies.pop(scope, None)
        self.passages.drop(scope)
        self.assignments.pop(scope, None)
        self.chunks.pop(scope, None)
        for key, row in list(self.archives.items()):
            if row.scope == scope and row.stage != Stage.RESERVED:
                self.archives[key] = replace(row, stage=Stage.DOOMED)
        facts = self.facts.get(scope[:2], {})
        self.facts[scope[:2]] = {id: fact for id, fact in facts.items() if fact.scope != scope}
        for key, debt in list(self.debts.items()):
            if debt.scope == scope:
                del self.debts[key]
        for name, session in list(self.keys.items()):
            if (*name[:2], session) == scope:
                del self.keys[name]
        for place, job in list(self.jobs.items()):
            if (job.tenant, job.agent, job.session) == scope:
                del self.jobs[place]
        for place, spawn in list(self.spawns.items()):
            if scope in (spawn.child, spawn.parent):
                del self.spawns[place]
        return len(gone.messages), len(gone.summaries)

    def forget(self, tenant: str, agent: str) -> int:
        """Takes out what stands beside sessions of an agent, or of a tenant; answers how much."""

        def meant(of: str, whose: str, session: str = "") -> bool:
            if of != tenant:
                return False
            return not session and whose == agent if agent else not (whose and session)

        gone = 0
        for scope in [scope for scope in self.replies if meant(*scope)]:
            gone += len(self.replies.pop(scope))
        for chosen in [key for key in self.assignments if meant(*key)]:
            del self.assignments[chosen]
            gone += 1
        for place, job in list(self.jobs.items()):
            if meant(job.tenant, job.agent, job.session):
                del self.jobs[place]
                gone += 1
        for spender in [key for key in self.spent if meant(*key)]:
            gone += len(self.spent.pop(spender))
        for model in [key for key in self.costs if meant(*key[:2])]:
            del self.costs[model]
            gone += 1
        if not agent and self.guards.pop(tenant, None) is not None:
            gone += 1
        return gone
