"""Statements about work: debts of sessions, jobs for leased models, guards, quotas, and
what waits."""

from __future__ import annotations

from contextengine_server.store.debts import LONGEST_WAIT_MS

from .clauses import SESSION, insert, select
from .columns import DEBT, JOB
from .dialect import Dialect


class DebtStatements:
    """Background work that sessions owe."""

    def __init__(self, dialect: Dialect) -> None:
        of_kind = f"{SESSION} AND kind = :kind"
        # An owner may lose a lease and claim the same debt again: each claim counts as an attempt,
        # which tells the two apart.
        leased = (
            f"{of_kind} AND lease_owner = :lease_owner AND attempts = :attempts"
            " AND queued_ms = :queued_ms"
        )
        add = f"{insert('debts', DEBT)} ON CONFLICT (tenant, agent, session, kind)"
        self.of_session = f"{select('debts', DEBT)} WHERE {SESSION} ORDER BY queued_ms, kind"
        self.add = f"{add} DO NOTHING"
        self.add_or_hold = f"{add} DO UPDATE SET held = excluded.held"
        self.settle = f"DELETE FROM debts WHERE {of_kind}"
        coming = f"- :now BETWEEN 1 AND {LONGEST_WAIT_MS}"
        due = (
            f" AS due WHERE {dialect.is_false.format('held')}"
            f" AND NOT (not_before_ms {coming}) AND NOT EXISTS (SELECT 1 FROM debts"
            " WHERE tenant = due.tenant AND agent = due.agent AND session = due.session"
            f" AND lease_until_ms {coming})"
        )
        since = f"{dialect.greatest}(queued_ms, not_before_ms)"
        self.due = (
            f"{select('debts', DEBT)}{due} AND (:tenant = '' OR tenant = :tenant)"
            f" ORDER BY {since}, queued_ms LIMIT 1"
        )
        self.debtors = (
            f"SELECT tenant FROM (SELECT tenant, {since} AS since FROM debts{due}) AS owed"
            " GROUP BY tenant ORDER BY MIN(since), tenant"
        )
        self.lease = (
            "UPDATE debts SET lease_owner = :owner, lease_until_ms = :until,"
            f" attempts = attempts + 1 WHERE {of_kind}"
        )
        self.extend = f"UPDATE debts SET lease_until_ms = :until WHERE {leased}"
        self.finish = f"DELETE FROM debts WHERE {leased}"
        self.take_back = (
            "UPDATE debts SET lease_owner = '', lease_until_ms = 0 WHERE lease_until_ms > 0"
        )
        self.put_back = (
            "UPDATE debts SET lease_owner = '', lease_until_ms = 0, not_before_ms = :not_before,"
            f" last_error = :error, held = :hold WHERE {leased}"
        )


class JobStatements:
    """Jobs for leased models."""

    def __init__(self, dialect: Dialect) -> None:
        jobs = select("lent_jobs", JOB)
        this = "tenant = :tenant AND id = :id"
        open_ = dialect.is_false.format("answered")
        answered = dialect.is_true.format("answered")
        under_lease = f"{this} AND {open_} AND lease_id = :lease AND lease_id != ''"
        self.one = f"{jobs} WHERE {this}"
        self.by_digest = f"{jobs} WHERE tenant = :tenant AND digest = :digest AND digest != ''"
        self.insert = insert("lent_jobs", JOB)
        self.prolong = f"UPDATE lent_jobs SET expire_ms = :until WHERE {this}"
        self.expire = "DELETE FROM lent_jobs WHERE tenant = :tenant AND expire_ms <= :now"
        self.due = (
            f"{jobs}{dialect.through.format('lent_jobs_queue')} WHERE tenant = :tenant AND {open_}"
            " AND lease_until_ms <= :now AND expire_ms > :now AND attempts < :attempts"
            " AND (:agent = '' OR agent = :agent) AND (:tokens = 0 OR input_tokens <= :tokens)"
            f" AND (:any_model OR model = '' OR model{dialect.among.format('models')})"
            " ORDER BY queued_ms LIMIT 1"
        )
        self.lease = (
            "UPDATE lent_jobs SET lease_id = :lease, lease_until_ms = :until,"
            f" attempts = attempts + 1 WHERE {this}"
        )
        self.extend = (
            f"UPDATE lent_jobs SET lease_until_ms = {dialect.greatest}(lease_until_ms,"
            f" {dialect.least}(:until, expire_ms)) WHERE {under_lease}"
        )
        self.answer = (
            f"UPDATE lent_jobs SET answered = {dialect.true}, result = :result WHERE {under_lease}"
            " AND expire_ms > :now"
        )
        self.put_back = (
            f"UPDATE lent_jobs SET lease_id = '', lease_until_ms = :until WHERE {under_lease}"
        )
        self.coming = (
            f"SELECT 1 FROM lent_jobs{dialect.through.format('lent_jobs_session')} WHERE {SESSION}"
            f" AND digest != '' AND expire_ms > :now AND ({answered} OR (lease_id != ''"
            " AND lease_until_ms > :now)) LIMIT 1"
        )
        self.settle = (
            f"UPDATE lent_jobs SET answered = {dialect.true}, digest = '',"
            f" work = {dialect.no_bytes}, result = {dialect.no_bytes} WHERE {this}"
            " AND expire_ms <= :until"
        )
        self.remove = f"DELETE FROM lent_jobs WHERE {this} AND expire_ms <= :until"
        self.open_count = f"SELECT COUNT(*) FROM lent_jobs WHERE tenant = :tenant AND {open_}"


class GuardStatements:
    """What the guards of summarizers remember."""

    def __init__(self) -> None:
        self.state = "SELECT state FROM guards WHERE tenant = :tenant"
        self.change = (
            f"{insert('guards', ('tenant', 'state'))} ON CONFLICT (tenant) DO UPDATE"
            " SET state = excluded.state"
        )


class QuotaStatements:
    """What tenants may hold at once."""

    def __init__(self) -> None:
        self.all = "SELECT tenant, quota FROM quotas ORDER BY tenant"
        self.set = (
            f"{insert('quotas', ('tenant', 'quota'))} ON CONFLICT (tenant) DO UPDATE"
            " SET quota = excluded.quota"
        )
        self.unset = "DELETE FROM quotas WHERE tenant = :tenant"


class WorkloadStatements:
    """The work that waits, over all tenants: tables that are short, read whole."""

    def __init__(self, dialect: Dialect) -> None:
        waits = f"{dialect.is_false.format('held')} AND lease_until_ms <= :now"
        runs = f"{dialect.is_false.format('held')} AND lease_until_ms > :now"
        self.debts = (
            f"SELECT COUNT(*) FILTER (WHERE {waits}), COUNT(*) FILTER (WHERE {runs}),"
            f" COUNT(*) FILTER (WHERE {dialect.is_true.format('held')}),"
            f" MIN(queued_ms) FILTER (WHERE {waits}) FROM debts"
        )
        self.jobs = f"SELECT COUNT(*) FROM lent_jobs WHERE {dialect.is_false.format('answered')}"
        self.guards = "SELECT state FROM guards"
