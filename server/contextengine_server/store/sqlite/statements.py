"""Every statement, as SQL. Whole rows are bound by position, in the order of their columns here;
all else by name.

Plain text, so that a start does not wait for SQLAlchemy: importing it and compiling these took 0.4
s of the 1.5 s that a start may take. The columns come from the rows' fields, and a test prepares
every statement on the migrated schema and looks at its plan. Conditions on `retired_revision`,
`ended`, `held` and `pinned` are spelled as the partial indexes spell them: an index with a
condition serves only a statement that states it.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache

from contextengine_server.store.rows import (
    Assignment,
    Debt,
    MessageRow,
    ModelJob,
    SessionHead,
    Spawn,
    StoredReply,
    SummaryRow,
)


def _names(row: type, *before: str) -> tuple[str, ...]:
    """The columns of a row: those before it, then its fields."""
    return (*before, *(field.name for field in fields(row) if field.name != "scope"))


def _insert(table: str, columns: tuple[str, ...]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' for _ in columns)})"


def _select(table: str, columns: tuple[str, ...]) -> str:
    return f"SELECT {', '.join(columns)} FROM {table}"


_KEY = ("tenant", "agent", "session")
_SCOPE = "tenant = :tenant AND agent = :agent AND session = :session"
_PARENT = "tenant = :tenant AND parent_agent = :agent AND parent_session = :session"

# Sessions

HEAD_COLUMNS = _names(SessionHead, *_KEY)
HEAD = f"{_select('sessions', HEAD_COLUMNS)} WHERE {_SCOPE}"
INSERT_HEAD = _insert("sessions", HEAD_COLUMNS)
UPDATED_COLUMNS = tuple(name for name in HEAD_COLUMNS if name not in (*_KEY, "incarnation"))
UPDATE_HEAD = (
    f"UPDATE sessions SET {', '.join(f'{name} = ?' for name in UPDATED_COLUMNS)}"
    " WHERE tenant = ? AND agent = ? AND session = ? AND incarnation = ? AND revision = ?"
)
"""Touches the row only where it still is what the commit expects: the last two parameters."""


@cache
def update_heads(count: int) -> str:
    """As UPDATE_HEAD, for several sessions at once: each row has the parameters of one."""
    width = len(UPDATED_COLUMNS)
    row = f"({', '.join('?' for _ in range(width + 5))})"
    changes = ", ".join(
        f"{name} = new.column{place}" for place, name in enumerate(UPDATED_COLUMNS, 1)
    )
    wanted = ("tenant", "agent", "session", "incarnation", "revision")
    conditions = [
        f"sessions.{name} = new.column{place}" for place, name in enumerate(wanted, width + 1)
    ]
    return (
        f"UPDATE sessions SET {changes} FROM (VALUES {', '.join([row] * count)}) AS new WHERE"
        f" {' AND '.join(conditions)}"
    )


KEY_COLUMNS = ("tenant", "agent", "session_key", "session")
CURRENT = (
    "SELECT session FROM session_keys WHERE tenant = :tenant AND agent = :agent AND session_key ="
    " :session_key"
)
BIND_KEY = (
    _insert("session_keys", KEY_COLUMNS)
    + " ON CONFLICT (tenant, agent, session_key) DO UPDATE SET session = excluded.session"
)


@cache
def listing(*, agent: bool, key: bool, after: bool) -> str:
    """A page of heads, newest write first."""
    conditions = ["tenant = :tenant"]
    if agent:
        conditions.append("agent = :agent")
    if key:
        conditions.append("session_key = :session_key AND session_key != ''")
    if after:
        conditions.append(
            "(updated_ms, agent, session) < (:after_ms, :after_agent, :after_session)"
        )
    index = "sessions_key" if key else "sessions_newest"
    return (
        f"{_select('sessions', HEAD_COLUMNS)} INDEXED BY {index} WHERE {' AND '.join(conditions)}"
        " ORDER BY updated_ms DESC, agent DESC, session DESC LIMIT :limit"
    )


IDLE = (
    f"{_select('sessions', HEAD_COLUMNS)} WHERE ended = 0 AND updated_ms < :before_ms ORDER BY"
    " updated_ms LIMIT :limit"
)
DEPENDENTS = """
    SELECT session FROM sessions INDEXED BY sessions_parent
    WHERE tenant = :tenant AND agent = :agent AND parent_session = :session AND parent_session != ''
    ORDER BY session
"""
DELETE_MESSAGES = f"DELETE FROM messages WHERE {_SCOPE}"
DELETE_SUMMARIES = f"DELETE FROM summaries WHERE {_SCOPE}"
_OF_SESSIONS = (
    "requests",
    "debts",
    "assignments",
    "lent_jobs",
    "spawns",
    "session_keys",
    "sessions",
)
DELETE_REST = (
    *(f"DELETE FROM {table} WHERE {_SCOPE}" for table in _OF_SESSIONS),
    f"DELETE FROM spawns WHERE {_PARENT}",
)

# Messages

MESSAGE_COLUMNS = _names(MessageRow)
_MESSAGES = f"{_select('messages', MESSAGE_COLUMNS)} WHERE {_SCOPE}"


def _through(index: str) -> str:
    """Messages by an index. Left alone, SQLite takes the primary key for as good as any and reads
    the whole session."""
    return f"{_select('messages', MESSAGE_COLUMNS)} INDEXED BY {index} WHERE {_SCOPE}"


_RANGE = f"{_MESSAGES} AND sequence BETWEEN :first AND :last"
_BEGINS = "retired_revision = 0 AND start IS NOT NULL"
MESSAGES_LIVE = f"{_RANGE} AND retired_revision = 0 ORDER BY sequence"
MESSAGES_AS_OF = (
    f"{_RANGE} AND created_revision <= :as_of AND (retired_revision = 0 OR retired_revision >"
    " :as_of) ORDER BY sequence"
)
MESSAGES_ALL = f"{_RANGE} ORDER BY sequence"
MESSAGES_ALL_AS_OF = f"{_RANGE} AND created_revision <= :as_of ORDER BY sequence"
BY_HOST_ID = f"""
    {_through("messages_host_id")} AND retired_revision = 0 AND host_id != '' AND host_id IN
    (SELECT value FROM json_each(:host_ids))
    ORDER BY sequence
"""
"""`host_ids` is a JSON list: one statement whatever its length."""
INSERT_MESSAGE = _insert("messages", (*_KEY, *MESSAGE_COLUMNS))


@cache
def insert_messages(count: int) -> str:
    """As INSERT_MESSAGE, for several rows at once."""
    columns = (*_KEY, *MESSAGE_COLUMNS)
    row = f"({', '.join('?' for _ in columns)})"
    return f"INSERT INTO messages ({', '.join(columns)}) VALUES {', '.join([row] * count)}"


RETIRE_AFTER = f"""
    UPDATE messages SET retired_revision = :revision WHERE {_SCOPE} AND sequence > :after AND
    retired_revision = 0
"""
FACTS = (
    f"UPDATE messages SET step = :step, start = :start, late_of = :late_of WHERE {_SCOPE} AND"
    " sequence = :sequence"
)
SHIFT = (
    f"UPDATE messages SET start = start + :delta WHERE {_SCOPE} AND sequence > :after AND {_BEGINS}"
)

MESSAGE_AT = f"{_MESSAGES} AND sequence = :sequence AND retired_revision = 0"
PINNED = f"{_through('messages_pinned')} AND retired_revision = 0 AND pinned = 1 ORDER BY sequence"
ATOM_FROM = (
    f"{_through('messages_start')} AND {_BEGINS} AND start >= :start ORDER BY start, sequence"
    " LIMIT 1"
)
ATOM_FIRST = f"""
    SELECT sequence FROM messages WHERE {_SCOPE} AND {_BEGINS} AND sequence <= :sequence AND step =
    :step
    ORDER BY sequence DESC LIMIT 1
"""
"""Where the atom of a step begins, looking back from one of its messages."""
ATOM_NEXT = f"""
    SELECT sequence FROM messages WHERE {_SCOPE} AND {_BEGINS} AND sequence > :first AND step >
    :step
    ORDER BY sequence LIMIT 1
"""
"""Where a later atom begins. Not just the next to begin: a note may come between a call and its
result, a step before them."""
ATOM_ROWS = (
    f"{_RANGE} AND retired_revision = 0 AND step = :step AND late_of IS NULL ORDER BY sequence"
)
ATOM_LATE = (
    f"{_through('messages_late')} AND retired_revision = 0 AND late_of = :first AND late_of IS NOT"
    " NULL ORDER BY sequence"
)
LATE_BETWEEN = f"""
    {_through("messages_late")} AND retired_revision = 0 AND late_of BETWEEN :first AND :last AND
    late_of IS NOT NULL
    ORDER BY sequence
"""

OLDER = f"""
    SELECT sequence FROM messages WHERE {_SCOPE} AND created_revision <= :since ORDER BY sequence
    DESC LIMIT 1
"""
"""The last row that is not newer than a revision. A session only appends, so what is newer lies
behind it."""
RETIRED_SINCE = f"""
    {_through("messages_retired")} AND retired_revision > 0 AND retired_revision > :since AND
    sequence <= :last ORDER BY sequence
"""

# Summaries

SUMMARY_COLUMNS = _names(SummaryRow)
_SUMMARIES = f"{_select('summaries', SUMMARY_COLUMNS)} WHERE {_SCOPE}"
_SUMMARY_ORDER = "ORDER BY first_sequence, depth, created_revision, id"
SUMMARIES_LIVE = f"{_SUMMARIES} AND retired_revision = 0 {_SUMMARY_ORDER}"
SUMMARIES_AS_OF = f"""
    {_SUMMARIES} AND created_revision <= :as_of AND (retired_revision = 0 OR retired_revision >
    :as_of) {_SUMMARY_ORDER}
"""
SUMMARIES_ALL = f"{_SUMMARIES} {_SUMMARY_ORDER}"
SUMMARIES_ALL_AS_OF = f"{_SUMMARIES} AND created_revision <= :as_of {_SUMMARY_ORDER}"
SUMMARIES_SINCE = (
    f"{_SUMMARIES} AND (created_revision > :since OR retired_revision > :since) {_SUMMARY_ORDER}"
)
INSERT_SUMMARY = _insert("summaries", (*_KEY, *SUMMARY_COLUMNS))
RETIRE_SUMMARY = (
    f"UPDATE summaries SET retired_revision = :revision WHERE {_SCOPE} AND id = :id AND"
    " retired_revision = 0"
)
SHIFT_SUMMARIES = f"""
    UPDATE summaries SET span_start = span_start + :delta, span_end = span_end + :delta
    WHERE {_SCOPE} AND first_sequence > :after AND retired_revision = 0
"""

# Requests

REPLY_COLUMNS = _names(StoredReply)
REPLY = f"{_select('requests', REPLY_COLUMNS)} WHERE {_SCOPE} AND request_id = :request_id"
INSERT_REPLY = _insert("requests", (*_KEY, *REPLY_COLUMNS, "created_revision"))
REMEMBER_OF_AGENT = f"{INSERT_REPLY} ON CONFLICT DO NOTHING"
REMEMBER = f"""
    INSERT INTO requests ({", ".join((*_KEY, *REPLY_COLUMNS))}, created_revision)
    SELECT {", ".join(f":{name}" for name in (*_KEY, *REPLY_COLUMNS))}, 0
    WHERE EXISTS (SELECT 1 FROM sessions WHERE {_SCOPE}) ON CONFLICT DO NOTHING
"""
"""Only for a session that is there: what is derived from one that was deleted meanwhile goes with
it."""
_STRAY_REPLIES = f"FROM requests WHERE {_SCOPE} AND created_revision > :newest"
COUNT_STRAY_REPLIES = f"SELECT COUNT(*) {_STRAY_REPLIES}"
ERASE_STRAY_REPLIES = f"DELETE {_STRAY_REPLIES}"

# Debts

DEBT_COLUMNS = _names(Debt, *_KEY)
_ADD_DEBT = f"{_insert('debts', DEBT_COLUMNS)} ON CONFLICT (tenant, agent, session, kind)"
DEBTS = f"{_select('debts', DEBT_COLUMNS)} WHERE {_SCOPE} ORDER BY queued_ms, kind"
ADD_DEBT = f"{_ADD_DEBT} DO NOTHING"
ADD_DEBT_OR_HOLD = f"{_ADD_DEBT} DO UPDATE SET held = excluded.held"
SETTLE_DEBT = f"DELETE FROM debts WHERE {_SCOPE} AND kind = :kind"
DUE_DEBT = f"""
    {_select("debts", DEBT_COLUMNS)} AS due WHERE held = 0 AND not_before_ms <= :now AND NOT EXISTS
    (
        SELECT 1 FROM debts WHERE tenant = due.tenant AND agent = due.agent AND session =
        due.session
        AND lease_until_ms > :now
    ) ORDER BY max(queued_ms, not_before_ms), queued_ms LIMIT 1
"""
LEASE_DEBT = f"""
    UPDATE debts SET lease_owner = :owner, lease_until_ms = :until, attempts = attempts + 1 WHERE
    {_SCOPE} AND kind = :kind
"""
# An owner may lose a lease and claim the same debt again: each claim counts as an attempt, which
# tells the two apart.
_LEASED = (
    f"{_SCOPE} AND kind = :kind AND lease_owner = :lease_owner AND attempts = :attempts AND"
    " queued_ms = :queued_ms"
)
EXTEND_DEBT = f"UPDATE debts SET lease_until_ms = :until WHERE {_LEASED}"
FINISH_DEBT = f"DELETE FROM debts WHERE {_LEASED}"
PUT_BACK_DEBT = f"""
    UPDATE debts SET lease_owner = '', lease_until_ms = 0, not_before_ms = :not_before, last_error
    = :error, held = :hold
    WHERE {_LEASED}
"""

# Assignments

ASSIGNMENT_COLUMNS = _names(Assignment)
ASSIGNMENTS = (
    f"{_select('assignments', ASSIGNMENT_COLUMNS)} WHERE tenant = :tenant ORDER BY agent, session"
)
ASSIGN = (
    _insert("assignments", ASSIGNMENT_COLUMNS)
    + " ON CONFLICT (tenant, agent, session) DO UPDATE SET engine_id = excluded.engine_id, options"
    " = excluded.options"
)
UNASSIGN = f"DELETE FROM assignments WHERE {_SCOPE}"

# Summarizers: what their guards remember, and what harnesses do for them

GUARD = "SELECT state FROM guards WHERE tenant = :tenant"
SET_GUARD = (
    f"{_insert('guards', ('tenant', 'state'))} ON CONFLICT (tenant) DO UPDATE SET state ="
    " excluded.state"
)

JOB_COLUMNS = _names(ModelJob)
_JOBS = _select("lent_jobs", JOB_COLUMNS)
_JOB = "tenant = :tenant AND id = :id"
JOB = f"{_JOBS} WHERE {_JOB}"
JOB_BY_DIGEST = f"{_JOBS} WHERE tenant = :tenant AND digest = :digest AND digest != ''"
INSERT_JOB = _insert("lent_jobs", JOB_COLUMNS)
PROLONG_JOB = f"UPDATE lent_jobs SET expire_ms = :until WHERE {_JOB}"
EXPIRE_JOBS = "DELETE FROM lent_jobs WHERE tenant = :tenant AND expire_ms <= :now"
DUE_JOB = f"""
    {_JOBS} INDEXED BY lent_jobs_queue WHERE tenant = :tenant AND answered = 0 AND lease_until_ms
    <= :now AND expire_ms > :now
    AND attempts < :attempts AND (:agent = '' OR agent = :agent) AND (:tokens = 0 OR input_tokens
    <= :tokens)
    AND (:any_model OR model = '' OR model IN (SELECT value FROM json_each(:models))) ORDER BY
    queued_ms LIMIT 1
"""
LEASE_JOB = f"""
    UPDATE lent_jobs SET lease_id = :lease, lease_until_ms = :until, attempts = attempts + 1 WHERE
    {_JOB}
"""
_LENT = f"{_JOB} AND answered = 0 AND lease_id = :lease AND lease_id != ''"
EXTEND_JOB = (
    "UPDATE lent_jobs SET lease_until_ms = MAX(lease_until_ms, MIN(:until, expire_ms)) WHERE"
    f" {_LENT}"
)
ANSWER_JOB = (
    f"UPDATE lent_jobs SET answered = 1, result = :result WHERE {_LENT} AND expire_ms > :now"
)
PUT_BACK_JOB = f"UPDATE lent_jobs SET lease_id = '', lease_until_ms = :until WHERE {_LENT}"
COMING_JOB = f"""
    SELECT 1 FROM lent_jobs INDEXED BY lent_jobs_session WHERE {_SCOPE} AND digest != '' AND
    expire_ms > :now
    AND (answered = 1 OR (lease_id != '' AND lease_until_ms > :now)) LIMIT 1
"""
SETTLE_JOB = (
    f"UPDATE lent_jobs SET answered = 1, digest = '', work = x'', result = x'' WHERE {_JOB}"
)
REMOVE_JOB = f"DELETE FROM lent_jobs WHERE {_JOB}"
OPEN_JOBS = "SELECT COUNT(*) FROM lent_jobs WHERE tenant = :tenant AND answered = 0"

# Children

SPAWN_COLUMNS = _names(Spawn)
_SPAWNS = _select("spawns", SPAWN_COLUMNS)
_SPAWN = "tenant = :tenant AND token = :token"
SPAWN = f"{_SPAWNS} WHERE {_SPAWN}"
SPAWN_ASKED = f"{_SPAWNS} WHERE {_PARENT} AND request_id = :request_id AND request_id != ''"
SPAWN_OF = f"{_SPAWNS} WHERE {_SCOPE} ORDER BY created_ms DESC LIMIT 1"
LIVE_CHILDREN = f"SELECT COUNT(*) FROM spawns WHERE {_PARENT} AND ended_ms = 0"
INSERT_SPAWN = _insert("spawns", SPAWN_COLUMNS)
START_SPAWN = f"UPDATE spawns SET started = 1 WHERE {_SPAWN} AND ended_ms = 0 AND expire_ms > :now"
SPEND_SPAWN = f"""
    UPDATE spawns SET used_tokens = used_tokens + :tokens
    WHERE {_SPAWN} AND ended_ms = 0 AND used_tokens + :tokens <= grant_tokens
"""
END_SPAWN = (
    f"UPDATE spawns SET ended_ms = :now, end_reason = :reason WHERE {_SPAWN} AND ended_ms = 0"
)
PROLONG_SPAWN = f"UPDATE spawns SET expire_ms = :until WHERE {_SPAWN}"
DUE_SPAWNS = f"{_SPAWNS} WHERE ended_ms = 0 AND expire_ms <= :now ORDER BY expire_ms LIMIT :limit"
OVER_SPAWN = "SELECT 1 FROM spawns WHERE ended_ms > 0 AND ended_ms <= :before LIMIT 1"
FORGET_SPAWNS = """
    DELETE FROM spawns WHERE rowid IN
    (SELECT rowid FROM spawns WHERE ended_ms > 0 AND ended_ms <= :before ORDER BY ended_ms LIMIT
    :limit)
"""

# Counts

COUNTED = ("sessions", "messages", "summaries", "debts")
COUNT_ALL = {table: f"SELECT COUNT(*) FROM {table}" for table in COUNTED}
COUNT_TENANT = {table: f"{query} WHERE tenant = :tenant" for table, query in COUNT_ALL.items()}

# Work that waits: tables that are short, read whole

WORKLOAD = {
    "debts": (
        """
        SELECT COALESCE(SUM(held = 0 AND lease_until_ms <= :now), 0), COALESCE(SUM(held = 0 AND
        lease_until_ms > :now), 0),
            COALESCE(SUM(held <> 0), 0), MIN(CASE WHEN held = 0 AND lease_until_ms <= :now THEN
            queued_ms END) FROM debts
    """
    ),
    "lent": "SELECT COUNT(*) FROM lent_jobs WHERE answered = 0",
    "guards": "SELECT state FROM guards",
}
