"""Every statement as PostgreSQL runs it. A test prepares each on the migrated schema and looks at
its plan.

Rows that come many at a time are bound as one array for each column: one statement, and one round
trip, whatever their number.
"""

from __future__ import annotations

from collections.abc import Sequence

from contextengine_server.store.sql.clauses import select
from contextengine_server.store.sql.columns import HEAD, KEY, MESSAGE, REPLY, SUMMARY, UPDATED
from contextengine_server.store.sql.dialect import Dialect
from contextengine_server.store.sql.statements import Statements

_SESSION = (
    "home = :home AND (tenant, agent, session) IS NOT DISTINCT FROM (:tenant, :agent, :session)"
)
"""The rows of one session. `home` alone finds them: said so, the names look attractive to no index,
not even to the planner of an empty table, whose choice would stay while the table grows."""
OWN = f"home = :home AND life = (SELECT life FROM sessions WHERE {_SESSION})"
"""The rows of the life that a session has now."""

SQL = Statements(
    Dialect(
        true="TRUE",
        is_true="{}",
        is_false="NOT {}",
        greatest="GREATEST",
        least="LEAST",
        no_bytes="''::bytea",
        through="",
        among=" = ANY(:{})",
        bytes_of="OCTET_LENGTH({})",
        hashed="md5({})",
        key=("home", *KEY),
        session=_SESSION,
        own_key=("home", "life"),
        own=OWN,
        own_of_tenant="(home, life) IN (SELECT home, life FROM sessions WHERE tenant = :tenant)",
    )
)

_FLAGS = {"ended", "pinned"}
_BYTES = {"state", "content_hash", "body", "commit_id", "ancestors", "expected_commit"}
_TEXTS = {
    *KEY, "incarnation", "session_key", "parent_session", "parent_incarnation", "model", "provider",
    "host_id", "archived",
}  # fmt: skip


def _type(column: str) -> str:
    if column in _FLAGS:
        return "boolean"
    if column in _BYTES:
        return "bytea"
    return "text" if column in _TEXTS else "uuid" if column == "life" else "bigint"


def _arrays(columns: Sequence[str], first: int = 1) -> str:
    """Rows from arrays, a parameter for each column."""
    return ", ".join(f"${at}::{_type(column)}[]" for at, column in enumerate(columns, first))


# Heads

HEADS = f"""
    SELECT wanted.home, {", ".join(f"sessions.{name}" for name in HEAD)}
    FROM unnest($1::bigint[], $2::bytea[]) AS wanted(home, name)
    LEFT JOIN sessions AS known ON known.home = wanted.home AND known.commit_id = wanted.name
    LEFT JOIN sessions ON sessions.home = wanted.home AND sessions.revision > 0
    WHERE known.home IS NULL
"""
"""The heads of many sessions, and of such as share a home with them, where none there is the one
that a name says: nothing of those homes where one is, and a row without a head of those where no
session is."""
LOCK = " FOR NO KEY UPDATE"
"""Behind a look-up of a head: nobody else writes to the session until the transaction ends."""
LOCK_TO_DELETE = " FOR UPDATE"
"""Nor does anybody begin to stand on it."""
LOCK_TO_STAND = " FOR KEY SHARE"
"""It is not deleted until the transaction ends."""
LOCK_TO_READ = " FOR SHARE"
"""Nobody writes to it, and others may look at it so as well."""
UNLESS_THERE = " ON CONFLICT DO NOTHING"

INSERT_HEAD = (
    f"INSERT INTO sessions (home, life, {', '.join(HEAD)})"
    f" VALUES ({', '.join('?' for _ in range(len(HEAD) + 2))}){UNLESS_THERE}"
)
UPDATE_HEAD = (
    f"UPDATE sessions SET {', '.join(f'{name} = ?' for name in UPDATED)}"
    " WHERE home = ? AND life = ? AND revision = ? AND commit_id = ?"
)
"""Meets the row only where it still is what the commit expects: the last parameters."""

# The usual commits of many sessions

ROUND_HEAD = ("home", "life", "expected", "expected_commit", *UPDATED)
ROUND_MESSAGE = ("at", *MESSAGE)


def _round() -> str:
    heads = len(ROUND_HEAD)
    changes = ", ".join(f"{name} = wanted.{name}" for name in UPDATED)
    return f"""
        WITH wanted AS (
            SELECT * FROM unnest({_arrays(ROUND_HEAD)}) WITH ORDINALITY
            AS wanted({", ".join(ROUND_HEAD)}, at)
        ), locked AS MATERIALIZED (
            SELECT sessions.home, sessions.life FROM sessions JOIN wanted USING (home, life)
            ORDER BY home, life FOR NO KEY UPDATE OF sessions
        ), won AS (
            UPDATE sessions SET {changes} FROM wanted JOIN locked USING (home, life)
            WHERE sessions.home = wanted.home AND sessions.life = wanted.life
            AND sessions.revision = wanted.expected
            AND sessions.commit_id = wanted.expected_commit
            RETURNING wanted.at, wanted.home, wanted.life
        ), written AS (
            INSERT INTO messages (home, life, {", ".join(MESSAGE)})
            SELECT won.home, won.life, {", ".join(f"new.{name}" for name in MESSAGE)}
            FROM unnest({_arrays(ROUND_MESSAGE, heads + 1)}) AS new({", ".join(ROUND_MESSAGE)})
            JOIN won USING (at)
        )
        SELECT at FROM won
    """


ROUND = _round()
"""Brings heads on and adds messages, of many sessions, one commit for each. Answers the numbers,
from 1, of those that met what they expected; the others change nothing. Heads are locked in the
order of their keys, so that two who write the same sessions wait for one another in turn."""

# What else a commit writes

APPEND = (
    f"INSERT INTO messages (home, life, {', '.join(MESSAGE)})"
    f" SELECT $1::bigint, $2::uuid, new.* FROM unnest({_arrays(MESSAGE, 3)}) AS new{UNLESS_THERE}"
)
SUMMARIZE = SQL.summaries.insert + UNLESS_THERE
ANSWER = SQL.replies.insert + UNLESS_THERE
FACTS = (
    "UPDATE messages SET step = fact.step, start = fact.start, late_of = fact.late_of"
    " FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])"
    " AS fact(sequence, step, start, late_of)"
    " WHERE home = $1 AND life = $2 AND messages.sequence = fact.sequence"
)
RETIRE_SUMMARIES = (
    "UPDATE summaries SET retired_revision = :revision WHERE home = :home AND life = :life"
    " AND id = ANY(:ids) AND retired_revision = 0"
)
REMEMBER = (
    f"INSERT INTO requests (home, {', '.join((*KEY, *REPLY))}, created_revision)"
    " SELECT home, tenant, agent, session, :request_id, :digest::bytea, :reply::bytea, 0"
    f" FROM sessions WHERE {_SESSION}{LOCK_TO_STAND}{UNLESS_THERE}"
)
"""An answer outside a commit, where there is such a session."""

PRUNE_CHUNKS = f"""
    WITH gone AS (
        {SQL.chunks.prune} RETURNING tenant, agent, session, compacted, content
    )
    SELECT COUNT(DISTINCT (tenant, agent, session)), COUNT(*), COUNT(*) FILTER (WHERE compacted),
    COALESCE(SUM(OCTET_LENGTH(content)), 0)::bigint FROM gone
"""
"""Erases chunks, and answers how much that was."""

# Search

CURSOR = ("sequence", "parts", "summaries", "revision")
CURSOR_OF = f"{select('search_cursors', CURSOR)} WHERE home = :home AND life = :life"
ADD_CURSOR = f"""
    INSERT INTO search_cursors (home, life, {", ".join(CURSOR)}) VALUES (:home, :life, 0, 0, 0, 0)
    {UNLESS_THERE}
"""
MOVE_CURSOR = f"""
    UPDATE search_cursors SET {", ".join(f"{name} = :{name}" for name in CURSOR)}
    WHERE home = :home AND life = :life
"""
PASSAGE = ("kind", "place", "part", "text", "words", "folded")
ADD_PASSAGES = f"""
    INSERT INTO passages (home, life, {", ".join(PASSAGE)})
    SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::bigint[], $5::bigint[],
    $6::text[], $7::text[], $8::text[])
"""
DELETE_INDEX = tuple(f"DELETE FROM {table} WHERE {OWN}" for table in ("passages", "search_cursors"))
PASSAGES_SIZE = f"SELECT COALESCE(SUM(OCTET_LENGTH(text)), 0)::bigint FROM passages WHERE {OWN}"
EXTENT = f"""
    SELECT (SELECT MIN(sequence) FROM messages WHERE {OWN}),
    (SELECT MAX(sequence) FROM messages WHERE {OWN}),
    (SELECT COUNT(*) FROM summaries WHERE {OWN})
"""
SUMMARIES = f"""
    {select("summaries", SUMMARY)} WHERE {OWN} ORDER BY created_revision, id OFFSET :skip
"""
REMADE = f"SELECT remakes, generation FROM summaries WHERE {OWN} AND remakes != ''"
"""Those that never come back, since what was made in their place has their generation."""
BEHIND = """
    SELECT tenant, agent, session FROM sessions LEFT JOIN search_cursors USING (home, life)
    WHERE sessions.revision > COALESCE(search_cursors.revision, 0) AND sessions.archived = ''
    LIMIT :limit
"""

_SPAN = f"{OWN} AND kind = :kind AND place BETWEEN :low AND :high"
_HOLDS = (
    "strpos(CASE WHEN lane.anywhere THEN COALESCE(folded, text) ELSE words END, lane.sought) > 0"
)
_LANES = (
    "unnest(:sought::text[], :anywhere::boolean[], :weights::bigint[], :bits::bigint[])"
    " AS lane(sought, anywhere, weight, bit)"
)
COUNT = f"""
    SELECT bit, COUNT(*) FROM passages JOIN {_LANES} ON {_HOLDS} WHERE {_SPAN} GROUP BY bit
"""
_CHOSEN = """
    created_revision <= :revision
    AND (:retired OR retired_revision = 0 OR retired_revision > :revision)
    AND (:any_role OR role = ANY(:roles::bigint[]))
    AND (:start_ms::bigint IS NULL OR time_ms >= :start_ms)
    AND (:end_ms::bigint IS NULL OR time_ms < :end_ms)
"""
_RANKED = f"""
    SELECT place, part, SUM(weight)::bigint AS weight, SUM(bit)::bigint AS bits
    FROM passages JOIN {_LANES} ON {_HOLDS} WHERE {_SPAN} GROUP BY place, part
"""
_BEST = "ORDER BY place, weight DESC, part DESC"
_HEAVIEST = "ORDER BY weight DESC, place DESC LIMIT :limit"
FIND_MESSAGES = f"""
    SELECT place, part, weight, bits, role, time_ms, host_id FROM (
        SELECT DISTINCT ON (place) ranked.*, role, time_ms, host_id
        FROM ({_RANKED}) AS ranked JOIN messages ON {OWN} AND sequence = place
        WHERE {_CHOSEN} {_BEST}
    ) AS best {_HEAVIEST}
"""
"""The best passage of each place whose message is to be found: the heaviest first, and of equals
the newest."""
FIND_SUMMARIES = f"""
    SELECT place, part, weight, bits FROM (
        SELECT DISTINCT ON (place) ranked.* FROM ({_RANKED}) AS ranked
        WHERE :any_place OR place = ANY(:places::bigint[]) {_BEST}
    ) AS best {_HEAVIEST}
"""
TEXTS = f"""
    SELECT place, part, text FROM passages
    JOIN unnest(:places::bigint[], :parts::bigint[]) AS found(place, part) USING (place, part)
    WHERE {OWN} AND kind = :kind
"""
SCAN = f"""
    SELECT place, part, text FROM passages
    WHERE {_SPAN} AND (:containing = '' OR strpos(COALESCE(folded, text), :containing) > 0)
    ORDER BY place DESC, part DESC LIMIT :limit
"""
ROWS = f"""
    SELECT sequence, role, time_ms, host_id FROM messages
    WHERE {OWN} AND sequence = ANY(:places::bigint[]) AND {_CHOSEN}
"""
