"""The tables: what the migrations end in.

Every key begins with the tenant. The types and the partial indexes are those that SQLite and
PostgreSQL share. Columns are named like the fields of the values in `rows`.

All tables are ordinary rowid tables in SQLite: messages of 1 KB in a WITHOUT ROWID table took three
times the space (a row over a quarter of a page spills into its own); heads gained nothing.
"""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData()


def _key(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, primary_key=True, nullable=False)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def _maybe(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=True)


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=False)


def _bytes(name: str) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary, nullable=False)


def _partial(
    name: str,
    *columns: sa.Column[int] | sa.Column[str],
    where: sa.ColumnElement[bool],
    unique: bool = False,
) -> None:
    """An index over the rows that a condition holds for; a statement uses it where it states the
    condition itself."""
    sa.Index(name, *columns, unique=unique, sqlite_where=where, postgresql_where=where)


sessions = sa.Table(
    "sessions",
    metadata,
    _key("tenant"),
    _key("agent"),
    _key("session"),
    _text("incarnation"),
    _number("revision"),
    _number("last_sequence"),
    _text("session_key"),
    _number("message_count"),
    _number("message_tokens"),
    _number("summary_count"),
    _number("generation"),
    _flag("ended"),
    _number("created_ms"),
    _number("updated_ms"),
    _text("parent_session"),
    _text("parent_incarnation"),
    _number("parent_revision"),
    _number("parent_sequence"),
    _text("model"),
    _text("provider"),
    _bytes("state"),
    _bytes("commit_id"),
    _bytes("ancestors"),
)
"""One row a session."""

session_keys = sa.Table(
    "session_keys", metadata, _key("tenant"), _key("agent"), _key("session_key"), _text("session")
)
"""The current session of each key."""

messages = sa.Table(
    "messages",
    metadata,
    _key("tenant"),
    _key("agent"),
    _key("session"),
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False, nullable=False),
    _number("role"),
    _number("tokens"),
    _bytes("content_hash"),
    _bytes("body"),
    _number("created_revision"),
    _number("retired_revision"),
    _text("host_id"),
    _maybe("time_ms"),
    _flag("pinned"),
    _maybe("step"),
    _maybe("start"),
    _maybe("late_of"),
)
"""Every message that was ever stored."""

summaries = sa.Table(
    "summaries",
    metadata,
    _key("tenant"),
    _key("agent"),
    _key("session"),
    _key("id"),
    _number("depth"),
    _number("first_sequence"),
    _number("last_sequence"),
    _number("message_count"),
    _number("source_tokens"),
    _number("tokens"),
    _text("text"),
    _number("created_revision"),
    _number("first_step"),
    _number("last_step"),
    _number("span_start"),
    _number("span_end"),
    _number("before_view"),
    _number("before_total"),
    _number("before_fixed"),
    _number("before_peak"),
    _flag("asked_before"),
    _number("retired_revision"),
    _text("children"),
    _maybe("start_ms"),
    _maybe("end_ms"),
    _text("summarizer"),
    _flag("fallback"),
    _number("generation"),
    _text("origin"),
    _text("role"),
    _text("wanted"),
    _text("remakes"),
    _bytes("content_hash"),
)
"""Every summary that was ever stored; `children` is a JSON list of ids."""

requests = sa.Table(
    "requests",
    metadata,
    _key("tenant"),
    _key("agent"),
    _key("session"),
    _key("request_id"),
    _bytes("digest"),
    _bytes("reply"),
    _number("created_revision"),
)
"""What request ids were answered with."""

debts = sa.Table(
    "debts",
    metadata,
    _key("tenant"),
    _key("agent"),
    _key("session"),
    _key("kind"),
    _number("queued_ms"),
    _number("not_before_ms"),
    _number("attempts"),
    _text("lease_owner"),
    _number("lease_until_ms"),
    _flag("held"),
    _text("cause"),
    _text("last_error"),
    _bytes("payload"),
)
"""Background work that sessions owe."""

assignments = sa.Table(
    "assignments",
    metadata,
    _key("tenant"),
    _key("agent"),
    _key("session"),
    _text("engine_id"),
    _bytes("options"),
)
"""What operators chose; an empty name means every one."""

search_cursors = sa.Table(
    "search_cursors",
    metadata,
    _key("tenant"),
    _key("agent"),
    _key("session"),
    _key("incarnation"),
    _number("number"),
    _number("sequence"),
    _number("parts"),
    _number("summaries"),
    _number("revision"),
    _flag("doomed"),
)
"""How far the search index has come with each life of a session. The index itself is a store's own
affair and can be made again from the rows; `number` names the session in it, and what is `doomed`
is being erased from it."""

guards = sa.Table("guards", metadata, _key("tenant"), _bytes("state"))
"""What the guards of a tenant's summarizers remember."""

quotas = sa.Table("quotas", metadata, _key("tenant"), _bytes("quota"))
"""What tenants may hold at once, JSON. They are the owner's and not the tenant's: to erase a tenant
leaves its quota."""

lent_jobs = sa.Table(
    "lent_jobs",
    metadata,
    _key("tenant"),
    _key("id"),
    _text("digest"),
    _text("agent"),
    _text("session"),
    _number("queued_ms"),
    _number("expire_ms"),
    _number("input_tokens"),
    _text("model"),
    _number("attempts"),
    _text("lease_id"),
    _number("lease_until_ms"),
    _flag("answered"),
    _bytes("work"),
    _bytes("result"),
)
"""The work that harnesses do with their models."""

spawns = sa.Table(
    "spawns",
    metadata,
    _key("tenant"),
    _key("token"),
    _text("agent"),
    _text("session"),
    _text("parent_agent"),
    _text("parent_session"),
    _number("parent_revision"),
    _number("parent_sequence"),
    _flag("fork"),
    _number("depth"),
    _number("created_ms"),
    _number("ttl_ms"),
    _number("expire_ms"),
    _text("request_id"),
    _bytes("digest"),
    _text("note"),
    _number("inherited_tokens"),
    _text("previous_session"),
    _text("objective"),
    _bytes("transcripts"),
    _number("grant_tokens"),
    _number("grant_depth"),
    _number("grant_expire_ms"),
    _number("used_tokens"),
    _flag("started"),
    _number("ended_ms"),
    _text("end_reason"),
)
"""Children, by their tokens; `agent` and `session` name the child."""

spending = sa.Table(
    "spending",
    metadata,
    _key("tenant"),
    _key("agent"),
    sa.Column("slot", sa.BigInteger, primary_key=True, autoincrement=False, nullable=False),
    _number("last_ms"),
    _number("tokens"),
)
"""The tokens that agents spent within the last day, by the five minutes in which they did."""

costs = sa.Table(
    "costs",
    metadata,
    _key("tenant"),
    _key("agent"),
    _key("provider"),
    _key("model"),
    _number("calls"),
    _number("input_tokens"),
    _number("output_tokens"),
    _number("cache_read_tokens"),
    _number("cache_write_tokens"),
    _number("cost_micro_usd"),
    _number("saved_micro_usd"),
    _number("unpriced"),
)
"""What the calls of agents took, by model, for good."""

agent_facts = sa.Table(
    "agent_facts",
    metadata,
    _key("tenant"),
    _key("agent"),
    _key("id"),
    _text("session"),
    _text("kind"),
    _text("subject"),
    _text("value"),
    _text("text"),
    _number("sequence"),
    _number("said_ms"),
    _number("written_ms"),
)
"""What agents remember; `session` names where it was found."""

chunks = sa.Table(
    "chunks",
    metadata,
    *map(_key, ("tenant", "agent", "session", "place", "name", "id")),
    _text("content"),
    _flag("compacted"),
    *map(_number, ("number", "created_ms", "updated_ms")),
)
"""What plugins keep beside the messages of sessions."""

_LIVE = messages.c.retired_revision == sa.literal_column("0")

_m = messages.c
_of_session = (_m.tenant, _m.agent, _m.session)
# The session comes last: ids of the shipped clients begin with the time, so the newest of all
# sessions share a page. That is a third fewer pages to write where many sessions append.
_partial(
    "messages_host_id",
    _m.tenant,
    _m.agent,
    _m.host_id,
    _m.session,
    where=_LIVE & (_m.host_id != sa.literal_column("''")),
    unique=True,
)
_partial("messages_start", *_of_session, _m.start, _m.sequence, where=_LIVE & _m.start.is_not(None))
_partial("messages_pinned", *_of_session, _m.sequence, where=_LIVE & (_m.pinned == sa.true()))
_partial("messages_late", *_of_session, _m.late_of, where=_LIVE & _m.late_of.is_not(None))
_partial(
    "messages_retired",
    *_of_session,
    _m.retired_revision,
    where=_m.retired_revision > sa.literal_column("0"),
)

_s = sessions.c
sa.Index("sessions_newest", _s.tenant, _s.updated_ms, _s.agent, _s.session)
sa.Index("sessions_agent", _s.tenant, _s.agent, _s.created_ms, _s.session)
_partial("sessions_idle", _s.updated_ms, where=_s.ended == sa.false())
_partial("sessions_key", _s.tenant, _s.session_key, where=_s.session_key != sa.literal_column("''"))
_partial(
    "sessions_parent",
    _s.tenant,
    _s.agent,
    _s.parent_session,
    where=_s.parent_session != sa.literal_column("''"),
)

sa.Index(
    "session_keys_session", session_keys.c.tenant, session_keys.c.agent, session_keys.c.session
)
sa.Index("search_cursors_number", search_cursors.c.number, unique=True)
_partial(
    "search_cursors_doomed", search_cursors.c.number, where=search_cursors.c.doomed == sa.true()
)

_j = lent_jobs.c
sa.Index("lent_jobs_session", _j.tenant, _j.agent, _j.session)
_partial(
    "lent_jobs_digest",
    _j.tenant,
    _j.digest,
    where=_j.digest != sa.literal_column("''"),
    unique=True,
)
_partial("lent_jobs_queue", _j.tenant, _j.queued_ms, where=_j.answered == sa.false())
_partial("debts_queue", debts.c.queued_ms, where=debts.c.held == sa.false())

_f = agent_facts.c
sa.Index("agent_facts_session", _f.tenant, _f.agent, _f.session, _f.sequence)
sa.Index("agent_facts_place", _f.tenant, _f.agent, _f.said_ms, _f.sequence, _f.id)

_c = spawns.c
sa.Index("spawns_child", _c.tenant, _c.agent, _c.session, _c.created_ms)
sa.Index("spawns_parent", _c.tenant, _c.parent_agent, _c.parent_session, _c.ended_ms)
_partial(
    "spawns_request",
    _c.tenant,
    _c.parent_agent,
    _c.parent_session,
    _c.request_id,
    where=_c.request_id != sa.literal_column("''"),
    unique=True,
)
_partial("spawns_due", _c.expire_ms, where=_c.ended_ms == sa.literal_column("0"))
_partial("spawns_over", _c.ended_ms, where=_c.ended_ms > sa.literal_column("0"))
