"""What a store keeps, as values.

Messages and summaries are immutable but for the revision that retired them and for a message's
facts (`step`, `start`, `late_of`), which are worked out from the whole session and may be worked
out again. Times are milliseconds since 1970 UTC. Tokens are counted in the session's reference
encoding.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from contextengine_server.context.scope import Scope

from .charges import Charge
from .debts import Debt

COMMIT_ID = 16
"""Bytes of a commit's name."""
LINE = 8 * COMMIT_ID
"""Bytes of the names that a head keeps of the commits before it."""


class SessionHead(msgspec.Struct, frozen=True):
    """The one row of a session: what must be known before anything else is read. `state` is JSON
    that the session alone reads and writes (`session.state`)."""

    scope: Scope
    incarnation: str
    """Names this life of the session; a deleted and recreated session has another."""
    revision: int
    last_sequence: int
    session_key: str = ""
    message_count: int = 0
    """Messages in the view, covered ones included."""
    message_tokens: int = 0
    """Their tokens as shown verbatim: the running sum at the end of the view."""
    summary_count: int = 0
    generation: int = 0
    ended: bool = False
    created_ms: int = 0
    updated_ms: int = 0
    parent_session: str = ""
    """The session (same tenant and agent) whose view goes on here; empty: none."""
    parent_incarnation: str = ""
    """The life of that session which it is. Rows of another life under the name are a stranger's.
    Empty: any life, where a store or a test does not say."""
    parent_revision: int = 0
    parent_sequence: int = 0
    """The parent's rows up to this sequence, as of `parent_revision`, begin this session's view."""
    model: str = ""
    provider: str = ""
    state: bytes = b"{}"
    commit_id: bytes = b""
    """16 random bytes that name the commit which made this state. A revision may come twice, where
    a database lost its newest commits and went on from before them; a name does not. Empty: an
    earlier version made it."""
    ancestors: bytes = b""
    """The names of the commits just before it, the newest last: the last bytes, `LINE` at most, of
    the line of the head before and its name."""
    archived: str = ""
    """The object of the archive that holds all messages and summaries of the session, none of which
    are in the store then; empty: they are here. See `store.archives`."""

    def same_as(self, other: SessionHead) -> bool:
        """True where both are one state of one life."""
        return (
            self.commit_id == other.commit_id
            and self.revision == other.revision
            and self.incarnation == other.incarnation
        )

    def grew_from(self, known: SessionHead) -> bool:
        """True where a state is known to be one of those just before this one."""
        names, name = self.ancestors, known.commit_id
        before = [names[at : at + COMMIT_ID] for at in range(0, len(names), COMMIT_ID)]
        return self.incarnation == known.incarnation and name in before


class MessageRow(msgspec.Struct, frozen=True):
    """One stored message."""

    sequence: int
    role: int
    """The wire's Role number; unknown numbers are kept."""
    tokens: int
    content_hash: bytes
    body: bytes
    """The encoded message as it came."""
    created_revision: int
    """The revision of the commit that brought it, so it never falls from one sequence to the
    next."""
    retired_revision: int = 0
    """0: in the view."""
    host_id: str = ""
    """Unique among the live rows of its session where not empty."""
    time_ms: int | None = None
    pinned: bool = False
    step: int | None = None
    """Ordinal of the atom in which the message is shown; None: it is not shown."""
    start: int | None = None
    """On the first message of an atom: the running token sum before the atom. None on all
    others."""
    late_of: int | None = None
    """On a late result: the first sequence of the atom that it is shown in."""


class SummaryRow(msgspec.Struct, frozen=True):
    """One stored summary over one contiguous range of sequences."""

    id: str
    """Unique in its session for ever, retired ones included."""
    depth: int
    first_sequence: int
    last_sequence: int
    message_count: int
    source_tokens: int
    tokens: int
    text: str
    created_revision: int
    first_step: int = 0
    """The step of the first atom that it covers."""
    last_step: int = 0
    span_start: int = 0
    """The running token sum before the first atom that it covers."""
    span_end: int = 0
    """The running token sum behind the last atom that it covers."""
    before_view: int = 0
    """The tokens of the view just before the commit. With the three below it tells what was evicted
    then, at any budget."""
    before_total: int = 0
    """The running token sum behind the newest atom just before the commit."""
    before_fixed: int = 0
    """The tokens of the summaries and leading messages shown just before the commit."""
    before_peak: int = 0
    """The tokens of the largest user message just before the commit."""
    before_needs: str = ""
    """What each part of what stood before the newest history had needed by then, as JSON
    (`context.eviction.Needs`); empty: nothing is known of it."""
    asked_before: bool = False
    """True where the newest user's message stood before all that it covers, at the commit of it or,
    where it is made of others, of the first of these."""
    retired_revision: int = 0
    children: tuple[str, ...] = ()
    start_ms: int | None = None
    end_ms: int | None = None
    summarizer: str = ""
    fallback: bool = False
    generation: int = 0
    origin: str = "engine"
    """`engine`, `runtime` (built-in compaction of a delegating engine) or `host`."""
    role: str = "user"
    """In whose role it is told: `user` or `assistant`."""
    wanted: str = ""
    """The link of the chain that was to write it and did not, so that a lower one stood in; empty:
    it is by the first that was there."""
    remakes: str = ""
    """The summary that this one stands in the place of, made again; empty: none. That one stays
    live below it."""
    content_hash: bytes = b""
    """Names its text and its children, once it is committed. Empty: nothing does."""


class Facts(msgspec.Struct, frozen=True):
    """Facts of a stored message, worked out again."""

    sequence: int
    step: int | None
    start: int | None
    late_of: int | None


class StoredReply(msgspec.Struct, frozen=True):
    """What a request id was answered with, so that the same request again gets the same answer."""

    request_id: str
    digest: bytes
    """Of the request: another request under the same id is told apart by it."""
    reply: bytes


class Parent(msgspec.Struct, frozen=True):
    """What a session begins to stand on: another session, in the life in which it was read."""

    scope: Scope
    incarnation: str


class Costs(msgspec.Struct, frozen=True):
    """What all calls of an agent to one model took, for good."""

    agent: str
    provider: str
    model: str
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_micro_usd: int = 0
    saved_micro_usd: int = 0
    unpriced: int = 0


class Commit(msgspec.Struct, frozen=True):
    """One change of one session, all or nothing.

    The store checks that the session still is at `expected_revision` of `head.incarnation`, as the
    commit made it that `head.ancestors` ends with (0: that it does not exist), then writes `head`
    and everything else: what is retired, then shifts, then facts, then new rows. So a shift moves
    no row of its own commit, and facts have the last word. Where several things are wrong, an
    answered request id is told before a lost race, that before a parent that is gone, and that
    before a duplicate host id. A head of revision 0 is staged: nobody sees it, and whoever makes
    the session replaces it.
    """

    head: SessionHead
    """The head after the commit, with a name of its own."""
    expected_revision: int
    messages: Sequence[MessageRow] = ()
    retire_after: int | None = None
    """Retire all live messages of this session with a sequence above this one, at
    `head.revision`."""
    keeps_facts: bool = False
    """What the agent remembers of the messages that are retired stays: they were not taken back."""
    retire_summaries: Sequence[str] = ()
    """Retire these live summaries, at `head.revision`."""
    summaries: Sequence[SummaryRow] = ()
    facts: Sequence[Facts] = ()
    """Of the session's own stored messages, retired ones included."""
    shifts: Sequence[tuple[int, int]] = ()
    """(sequence, delta), in order, over the rows as they were before this commit: add delta to
    `start` of every live message above the sequence, and to the spans of every live summary that
    begins above it."""
    reply: StoredReply | None = None
    bind_key: bool = False
    """Make this the current session of `head.session_key`."""
    debt: Debt | None = None
    """Add this debt; one of its kind that is owed already stays, and takes over a changed hold."""
    settle_debt: str = ""
    """Remove the debt of this kind, leased or not; `debt` may put a new one in its place."""
    parent: Parent | None = None
    """What the session stands on from this commit on. It is written only where that is there, in
    this life, at that very moment; a deletion then finds the session among those that stand on
    it."""
    charge: Charge | None = None
    """What the commit reports of a model call: added to what the agent spent, for good."""
    adopts: bool = False
    """The session is staged in this incarnation; with a revision it is there from now on."""

    @property
    def expected_commit(self) -> bytes:
        """The name of the commit that made the state which this one changes; empty: it has none, or
        there is none."""
        return self.head.ancestors[-COMMIT_ID:]


class Changes(msgspec.Struct, frozen=True):
    """What changed in a session since a revision: rows created or retired since, in order."""

    head: SessionHead
    messages: Sequence[MessageRow]
    summaries: Sequence[SummaryRow]


class Deleted(msgspec.Struct, frozen=True):
    """What a deletion erased."""

    sessions: tuple[str, ...] = ()
    messages: int = 0
    summaries: int = 0


class Assignment(msgspec.Struct, frozen=True):
    """An operator's choice for (tenant), (tenant, agent) or (tenant, agent, session), which goes
    with the session; empty names mean every one."""

    tenant: str
    agent: str
    session: str
    engine_id: str = ""
    options: bytes = b"{}"


KEPT_MS = 24 * 3600 * 1000
"""How long a spawn is remembered after its end, so that a late repetition of its request starts
nothing anew."""


class Spawn(msgspec.Struct, frozen=True):
    """A child, as it was prepared. Times are milliseconds since 1970 UTC. `agent` and `session`
    name the child."""

    tenant: str
    token: str
    """As it was given out: the same request again is answered the same. It opens rows of this very
    database alone."""
    agent: str
    session: str
    parent_agent: str
    parent_session: str
    parent_revision: int
    """The token opens the parent's rows as of this revision of the parent,"""
    parent_sequence: int
    """up to this sequence."""
    fork: bool
    """True: the child's view begins with the parent's. False: it was empty."""
    depth: int
    created_ms: int
    ttl_ms: int
    expire_ms: int
    request_id: str = ""
    digest: bytes = b""
    """Of the request: another request under the same id is told apart by it."""
    note: str = ""
    """Why it is another mode than asked; empty: it is as asked."""
    inherited_tokens: int = 0
    previous_session: str = ""
    """What the child's key named before; empty: nothing."""
    objective: str = ""
    transcripts: bytes = b"[]"
    """Of parent and child, as the host named them: opaque here."""
    grant_tokens: int = 0
    """How many of the parent's tokens the child may read; 0: none."""
    grant_depth: int = 0
    grant_expire_ms: int = 0
    """0: with the child."""
    used_tokens: int = 0
    started: bool = False
    """True once the token was shown at Bootstrap."""
    ended_ms: int = 0
    """0: it is live."""
    end_reason: str = ""

    @property
    def child(self) -> Scope:
        """The child."""
        return Scope(self.tenant, self.agent, self.session)

    @property
    def parent(self) -> Scope:
        """The parent."""
        return Scope(self.tenant, self.parent_agent, self.parent_session)


class EndedSpawn(msgspec.Struct, frozen=True):
    """A spawn that is over, and whether its child is gone with it."""

    spawn: Spawn
    erased: bool


class StoreHealth(msgspec.Struct, frozen=True):
    """How the store is."""

    ok: bool
    detail: str
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    """Whatever its kind of store has to say, by name. `bytes` and `free_bytes` are what it takes
    and what is left."""
    advice: str = ""
    """What to do where it is not well."""


class Workload(msgspec.Struct, frozen=True):
    """What waits and what runs."""

    debts_waiting: int = 0
    """Background jobs that nobody works on yet."""
    debts_running: int = 0
    """Under a live lease."""
    debts_held: int = 0
    """Put off until they are forced."""
    oldest_ms: int | None = None
    """When the oldest of those that wait was queued, milliseconds since 1970 UTC."""
    jobs_open: int = 0
    """Jobs for leased models that have no result."""
    guards: Sequence[bytes] = ()
    """The state of every tenant's guards, as `Guards` keeps it."""
