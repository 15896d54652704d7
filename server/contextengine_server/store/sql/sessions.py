"""Statements about sessions: heads, keys, lists, answers, what operators chose, deletions."""

from __future__ import annotations

from functools import cache

from .clauses import PARENT, SESSION, insert, select
from .columns import ASSIGNMENT, EXPECTED, HEAD, KEY, REPLY, UPDATED
from .dialect import Dialect

COUNTED = ("sessions", "messages", "summaries", "debts", "agent_facts")
"""What is counted for operators."""

_AGENT = "tenant = :tenant AND agent = :agent"

_OF_KEY = "session_key = :session_key AND session_key != ''"
"""As the index has it, which holds no session without a key."""

_OF_SESSIONS = (
    "requests",
    "debts",
    "assignments",
    "lent_jobs",
    "spawns",
    "agent_facts",
    "chunks",
    "session_keys",
    "sessions",
)


_OF_AGENTS = ("spending", "costs")
_OF_AGENTS_AND_SESSIONS = ("requests", "assignments", "lent_jobs")
"""What stands beside sessions in these names none."""

_SIZES = {
    "messages": (("body", "content_hash"), ("host_id",)),
    "summaries": ((), ("text",)),
    "requests": (("digest", "reply"), ()),
    "agent_facts": ((), ("value", "text")),
    "chunks": ((), ("content",)),
}
"""What takes room in a session's rows: bytes and texts."""


class HeadStatements:
    """Where sessions stand, which there are, and how one is erased."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        heads = select("sessions", HEAD)
        self.one = f"{heads} WHERE {dialect.session} AND revision > 0"
        of = dict.fromkeys(("messages", "summaries"), dialect.own)
        of |= dict.fromkeys(("sessions", "requests"), dialect.session)
        """How a session's rows are found in tables whose rows have not just its names."""
        self.insert = insert("sessions", HEAD)
        self.update = (
            f"UPDATE sessions SET {', '.join(f'{name} = ?' for name in UPDATED)} WHERE"
            f" {' AND '.join(f'{name} = ?' for name in (*KEY, *EXPECTED))}"
        )
        """Meets the row only where it still is what the commit expects: the last parameters."""
        self.current = (
            "SELECT session FROM session_keys WHERE tenant = :tenant AND agent = :agent"
            " AND session_key = :session_key"
        )
        self.bind_key = (
            insert("session_keys", ("tenant", "agent", "session_key", "session"))
            + " ON CONFLICT (tenant, agent, session_key) DO UPDATE SET session = excluded.session"
        )
        self.idle = (
            f"{heads} WHERE {dialect.is_false.format('ended')} AND updated_ms < :before_ms"
            " AND revision > 0 AND archived = '' ORDER BY updated_ms LIMIT :limit"
        )
        # They are written at time 0, so that an index finds them.
        self.staged = (
            f"{heads} WHERE {dialect.is_false.format('ended')} AND updated_ms = 0 AND revision = 0"
            " AND created_ms < :before_ms LIMIT :limit"
        )
        staged = f"FROM sessions WHERE {dialect.session} AND revision = 0"
        messages = f"DELETE FROM messages WHERE {dialect.own} AND EXISTS (SELECT 1 {staged}"
        self.unstage_messages = f"{messages} AND incarnation = :incarnation) AND sequence > :above"
        self.unstage = f"DELETE {staged} AND incarnation = :incarnation"
        self.replace_staged = f"{messages})", f"DELETE {staged}"
        self.first_tenant = "SELECT MIN(tenant) FROM sessions"
        self.next_tenant = "SELECT MIN(tenant) FROM sessions WHERE tenant > :tenant"
        self.dependents = (
            f"SELECT session FROM sessions{dialect.through.format('sessions_parent')} WHERE"
            " tenant = :tenant AND agent = :agent AND parent_session = :session"
            " AND parent_session != '' AND parent_incarnation IN ('', COALESCE((SELECT incarnation"
            f" FROM sessions WHERE {dialect.session}), '')) ORDER BY session"
        )

        def size(table: str) -> str:
            plain, texts = _SIZES[table]
            parts = [f"LENGTH({one})" for one in plain] + [
                dialect.bytes_of.format(one) for one in texts
            ]
            total = f"COALESCE(SUM({' + '.join(parts)}), 0)"
            return f"SELECT {total} FROM {table} WHERE {of.get(table, SESSION)}"

        self.sizes = tuple(map(size, _SIZES))
        self.delete_messages = f"DELETE FROM messages WHERE {dialect.own}"
        self.delete_summaries = f"DELETE FROM summaries WHERE {dialect.own}"
        self.delete_rest = (
            *(f"DELETE FROM {table} WHERE {of.get(table, SESSION)}" for table in _OF_SESSIONS),
            f"DELETE FROM spawns WHERE {PARENT}",
            # The objects go after their rows here: what is doomed is a list of what to erase.
            f"UPDATE archives SET stage = 2 WHERE {SESSION} AND stage IN (1, 3)",
        )
        self.forget_agent = (
            *(f"DELETE FROM {table} WHERE {_AGENT}" for table in _OF_AGENTS),
            *(
                f"DELETE FROM {table} WHERE {_AGENT} AND session = ''"
                for table in _OF_AGENTS_AND_SESSIONS
            ),
        )
        self.forget_tenant = (
            *(f"DELETE FROM {table} WHERE tenant = :tenant" for table in (*_OF_AGENTS, "guards")),
            # What is chosen by pattern names sessions without an agent.
            *(
                f"DELETE FROM {table} WHERE tenant = :tenant AND (agent = '' OR session = '')"
                for table in _OF_AGENTS_AND_SESSIONS
            ),
        )
        """What stands beside sessions: of an agent, and of a tenant with all its agents."""
        of_tenant = dict.fromkeys(("messages", "summaries"), dialect.own_of_tenant)
        self.count_all = {table: f"SELECT COUNT(*) FROM {table}" for table in COUNTED}
        self.count_tenant = {
            table: f"{query} WHERE {of_tenant.get(table, 'tenant = :tenant')}"
            for table, query in self.count_all.items()
        }
        self.listing = cache(self._listing)
        self.of_agent = cache(self._of_agent)

    def _of_agent(self, *, key: bool, after: bool) -> str:
        """A page of an agent's heads, the one made last first."""
        conditions = ["tenant = :tenant", "agent = :agent", "revision > 0"]
        if key:
            conditions.append(_OF_KEY)
        if after:
            conditions.append("(created_ms, session) < (:after_ms, :after_session)")
        index = self._dialect.through.format("sessions_key" if key else "sessions_agent")
        return (
            f"{select('sessions', HEAD)}{index} WHERE {' AND '.join(conditions)}"
            " ORDER BY created_ms DESC, session DESC LIMIT :limit"
        )

    def _listing(self, *, agent: bool, key: bool, after: bool) -> str:
        """A page of heads, newest write first."""
        conditions = ["tenant = :tenant", "revision > 0"]
        if agent:
            conditions.append("agent = :agent")
        if key:
            conditions.append(_OF_KEY)
        if after:
            conditions.append(
                "(updated_ms, agent, session) < (:after_ms, :after_agent, :after_session)"
            )
        index = self._dialect.through.format("sessions_key" if key else "sessions_newest")
        return (
            f"{select('sessions', HEAD)}{index} WHERE {' AND '.join(conditions)}"
            " ORDER BY updated_ms DESC, agent DESC, session DESC LIMIT :limit"
        )


class ReplyStatements:
    """What request ids were answered with."""

    def __init__(self, dialect: Dialect) -> None:
        names, this = (*dialect.key, *REPLY), dialect.session
        self.one = f"{select('requests', REPLY)} WHERE {this} AND request_id = :request_id"
        self.insert = insert("requests", (*dialect.key, *REPLY, "created_revision"))
        self.remember_of_agent = f"{self.insert} ON CONFLICT DO NOTHING"
        self.remember = (
            f"INSERT INTO requests ({', '.join(names)}, created_revision)"
            f" SELECT {', '.join(f':{name}' for name in names)}, 0"
            f" WHERE EXISTS (SELECT 1 FROM sessions WHERE {this}) ON CONFLICT DO NOTHING"
        )
        """Only for a session that is there: what is derived from one that was deleted meanwhile
        goes with it."""
        stray = f"FROM requests WHERE {this} AND created_revision > :newest"
        self.count_stray = f"SELECT COUNT(*) {stray}"
        self.erase_stray = f"DELETE {stray}"


class AssignmentStatements:
    """What operators chose."""

    def __init__(self) -> None:
        chosen, order = select("assignments", ASSIGNMENT), "ORDER BY tenant, agent, session"
        self.all = f"{chosen} {order}"
        self.of_tenant = f"{chosen} WHERE tenant = :tenant {order}"
        self.assign = (
            insert("assignments", ASSIGNMENT)
            + " ON CONFLICT (tenant, agent, session) DO UPDATE SET engine_id = excluded.engine_id,"
            " options = excluded.options"
        )
        self.unassign = f"DELETE FROM assignments WHERE {SESSION}"
