"""The tables: what the migrations end in.

Every key begins with the tenant. The types and the partial indexes are those that SQLite and
PostgreSQL share. Columns are named like the fields of the values in `rows`.

All tables are ordinary rowid tables in SQLite: messages of 1 KB in a WITHOUT ROWID table took three
times the space (a row over a quarter of a page spills into its own); heads gained nothing.
"""

from __future__ import annotations

import sqlalchemy as sa

from .fields import flag, key, maybe, number, octets, text

metadata = sa.MetaData()


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
    key("tenant"),
    key("agent"),
    key("session"),
    text("incarnation"),
    number("revision"),
    number("last_sequence"),
    text("session_key"),
    number("message_count"),
    number("message_tokens"),
    number("summary_count"),
    number("generation"),
    flag("ended"),
    number("created_ms"),
    number("updated_ms"),
    text("parent_session"),
    text("parent_incarnation"),
    number("parent_revision"),
    number("parent_sequence"),
    text("model"),
    text("provider"),
    octets("state"),
    octets("commit_id"),
    octets("ancestors"),
    text("archived"),
)
"""One row a session."""

session_keys = sa.Table(
    "session_keys", metadata, key("tenant"), key("agent"), key("session_key"), text("session")
)
"""The current session of each key."""

messages = sa.Table(
    "messages",
    metadata,
    key("tenant"),
    key("agent"),
    key("session"),
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False, nullable=False),
    number("role"),
    number("tokens"),
    octets("content_hash"),
    octets("body"),
    number("created_revision"),
    number("retired_revision"),
    text("host_id"),
    maybe("time_ms"),
    flag("pinned"),
    maybe("step"),
    maybe("start"),
    maybe("late_of"),
)
"""Every message that was ever stored."""

summaries = sa.Table(
    "summaries",
    metadata,
    key("tenant"),
    key("agent"),
    key("session"),
    key("id"),
    number("depth"),
    number("first_sequence"),
    number("last_sequence"),
    number("message_count"),
    number("source_tokens"),
    number("tokens"),
    text("text"),
    number("created_revision"),
    number("first_step"),
    number("last_step"),
    number("span_start"),
    number("span_end"),
    number("before_view"),
    number("before_total"),
    number("before_fixed"),
    number("before_peak"),
    text("before_needs"),
    flag("asked_before"),
    number("retired_revision"),
    text("children"),
    maybe("start_ms"),
    maybe("end_ms"),
    text("summarizer"),
    flag("fallback"),
    number("generation"),
    text("origin"),
    text("role"),
    text("wanted"),
    text("remakes"),
    octets("content_hash"),
)
"""Every summary that was ever stored; `children` is a JSON list of ids."""

requests = sa.Table(
    "requests",
    metadata,
    key("tenant"),
    key("agent"),
    key("session"),
    key("request_id"),
    octets("digest"),
    octets("reply"),
    number("created_revision"),
)
"""What request ids were answered with."""

debts = sa.Table(
    "debts",
    metadata,
    key("tenant"),
    key("agent"),
    key("session"),
    key("kind"),
    number("queued_ms"),
    number("not_before_ms"),
    number("attempts"),
    text("lease_owner"),
    number("lease_until_ms"),
    flag("held"),
    text("cause"),
    text("last_error"),
    octets("payload"),
)
"""Background work that sessions owe."""

assignments = sa.Table(
    "assignments",
    metadata,
    key("tenant"),
    key("agent"),
    key("session"),
    text("engine_id"),
    octets("options"),
)
"""What operators chose; an empty name means every one."""

search_cursors = sa.Table(
    "search_cursors",
    metadata,
    key("tenant"),
    key("agent"),
    key("session"),
    key("incarnation"),
    number("number"),
    number("sequence"),
    number("parts"),
    number("summaries"),
    number("revision"),
    flag("doomed"),
)
"""How far the search index has come with each life of a session. The index itself is a store's own
affair and can be made again from the rows; `number` names the session in it, and what is `doomed`
is being erased from it."""

guards = sa.Table("guards", metadata, key("tenant"), octets("state"))
"""What the guards of a tenant's summarizers remember."""

quotas = sa.Table("quotas", metadata, key("tenant"), octets("quota"))
"""What tenants may hold at once, JSON. They are the owner's and not the tenant's: to erase a tenant
leaves its quota."""

lent_jobs = sa.Table(
    "lent_jobs",
    metadata,
    key("tenant"),
    key("id"),
    text("digest"),
    text("agent"),
    text("session"),
    number("queued_ms"),
    number("expire_ms"),
    number("input_tokens"),
    text("model"),
    number("attempts"),
    text("lease_id"),
    number("lease_until_ms"),
    flag("answered"),
    octets("work"),
    octets("result"),
)
"""The work that harnesses do with their models."""

spawns = sa.Table(
    "spawns",
    metadata,
    key("tenant"),
    key("token"),
    text("agent"),
    text("session"),
    text("parent_agent"),
    text("parent_session"),
    number("parent_revision"),
    number("parent_sequence"),
    flag("fork"),
    number("depth"),
    number("created_ms"),
    number("ttl_ms"),
    number("expire_ms"),
    text("request_id"),
    octets("digest"),
    text("note"),
    number("inherited_tokens"),
    text("previous_session"),
    text("objective"),
    octets("transcripts"),
    number("grant_tokens"),
    number("grant_depth"),
    number("grant_expire_ms"),
    number("used_tokens"),
    flag("started"),
    number("ended_ms"),
    text("end_reason"),
)
"""Children, by their tokens; `agent` and `session` name the child."""

spending = sa.Table(
    "spending",
    metadata,
    key("tenant"),
    key("agent"),
    sa.Column("slot", sa.BigInteger, primary_key=True, autoincrement=False, nullable=False),
    number("last_ms"),
    number("tokens"),
)
"""The tokens that agents spent within the last day, by the five minutes in which they did."""

costs = sa.Table(
    "costs",
    metadata,
    key("tenant"),
    key("agent"),
    key("provider"),
    key("model"),
    number("calls"),
    number("input_tokens"),
    number("output_tokens"),
    number("cache_read_tokens"),
    number("cache_write_tokens"),
    number("cost_micro_usd"),
    number("saved_micro_usd"),
    number("unpriced"),
)
"""What the calls of agents took, by model, for good."""

agent_facts = sa.Table(
    "agent_facts",
    metadata,
    key("tenant"),
    key("agent"),
    key("id"),
    text("session"),
    text("kind"),
    text("subject"),
    text("value"),
    text("text"),
    number("sequence"),
    number("said_ms"),
    number("written_ms"),
)
"""What agents remember; `session` names where it was found."""

chunks = sa.Table(
    "chunks",
    metadata,
    *map(key, ("tenant", "agent", "session", "place", "name", "id")),
    text("content"),
    flag("compacted"),
    *map(number, ("number", "created_ms", "updated_ms")),
)
"""What plugins keep beside the messages of sessions."""

archives = sa.Table(
    "archives",
    metadata,
    *map(key, ("tenant", "agent", "session", "name")),
    text("incarnation"),
    octets("digest"),
    *map(number, ("size", "messages", "summaries")),
    flag("pinned"),
    *map(number, ("created_ms", "stage", "freed_ms")),
)
"""The objects of the archive: those that hold a session, are being written, or are to be erased. A
row is there before its object is, and goes after it, also where the session is gone by then."""

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
sa.Index("archives_stage", archives.c.stage, archives.c.created_ms)
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
