"""The migrations end in the tables, the tables hold the rows, and every statement finds what it
reads by an index."""

from __future__ import annotations

import io
import re
import sqlite3
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pglast
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from msgspec.structs import fields

from contextengine_server.store.charges import Spent
from contextengine_server.store.chunks import Chunk
from contextengine_server.store.debts import Debt
from contextengine_server.store.model_jobs import ModelJob
from contextengine_server.store.postgres.statements import SQL as POSTGRESQL
from contextengine_server.store.rows import (
    Assignment,
    Costs,
    MessageRow,
    SessionHead,
    Spawn,
    StoredReply,
    SummaryRow,
)
from contextengine_server.store.sql import migrations, schema
from contextengine_server.store.sql.statements import Statements
from contextengine_server.store.sqlite import database
from contextengine_server.store.sqlite.statements import SQL


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "store.db"
    database.prepare(made)
    return made


def engine(path: Path) -> sa.Engine:
    return sa.create_engine(
        "sqlite://", creator=lambda: database.connect(path), poolclass=sa.NullPool
    )


def test_the_revisions_are_those_of_the_scripts() -> None:
    scripts = ScriptDirectory.from_config(migrations.config())
    oldest_first = [script.revision for script in scripts.walk_revisions()][::-1]
    assert tuple(oldest_first) == migrations.REVISIONS
    assert scripts.get_heads() == [migrations.HEAD]


def test_the_migrations_end_in_the_tables(path: Path) -> None:
    with engine(path).connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), schema.metadata)
    assert differences == []


def test_the_indexes_are_the_same_to_the_letter(path: Path) -> None:
    """Alembic does not compare the conditions of indexes."""

    def indexes(db: sqlite3.Connection) -> dict[str, str]:
        found = db.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        )
        return {name: " ".join(text.split()) for name, text in found}

    fresh = path.with_name("fresh.db")
    with engine(fresh).begin() as connection:
        schema.metadata.create_all(connection)
    with database.connect(path) as migrated, database.connect(fresh) as made:
        assert indexes(migrated) == indexes(made)


@pytest.mark.parametrize(
    ("table", "row", "besides"),
    [
        (schema.sessions, SessionHead, set()),
        (schema.messages, MessageRow, set()),
        (schema.summaries, SummaryRow, set()),
        (schema.requests, StoredReply, {"created_revision"}),
        (schema.debts, Debt, set()),
        (schema.assignments, Assignment, set()),
        (schema.lent_jobs, ModelJob, set()),
        (schema.spawns, Spawn, set()),
        (schema.chunks, Chunk, {"place", "name"}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_every_field_of_a_row_has_its_column(table: sa.Table, row: type, besides: set[str]) -> None:
    names = {field.name for field in fields(row)} - {"scope"}
    assert {column.name for column in table.c} == names | {"tenant", "agent", "session"} | besides


def test_every_field_of_what_agents_spent_has_its_column() -> None:
    spending = {column.name for column in schema.spending.c}
    assert spending == {"tenant", "agent", "slot", *(field.name for field in fields(Spent))}
    costs = {column.name for column in schema.costs.c}
    assert costs == {"tenant", *(field.name for field in fields(Costs))}


def test_every_key_begins_with_the_tenant() -> None:
    for table in schema.metadata.tables.values():
        assert next(iter(table.primary_key)).name == "tenant", table.name


def every_statement(made: Statements) -> Iterator[tuple[str, str]]:
    for group, statements in vars(made).items():
        for name, value in vars(statements).items():
            if isinstance(value, str):
                yield f"{group}.{name}", value
            elif isinstance(value, dict):
                yield from ((f"{group}.{name}.{kind}", text) for kind, text in value.items())
            elif isinstance(value, tuple):
                yield from ((f"{group}.{name}.{at}", text) for at, text in enumerate(value))
    for agent, key, after in product((False, True), repeat=3):
        yield (
            f"heads.listing {agent} {key} {after}",
            made.heads.listing(agent=agent, key=key, after=after),
        )
    for key, after in product((False, True), repeat=2):
        yield f"heads.of_agent {key} {after}", made.heads.of_agent(key=key, after=after)


def numbered(statement: str) -> str:
    """The statement as PostgreSQL takes its parameters."""
    order: list[str] = []

    def number(found: re.Match[str]) -> str:
        name = found[1] or f"?{len(order)}"
        if name not in order:
            order.append(name)
        return f"${order.index(name) + 1}"

    return re.sub(r"(?<!:):(\w+)|\?", number, statement)


@pytest.mark.parametrize(
    ("name", "statement"),
    list(every_statement(POSTGRESQL)),
    ids=lambda value: value[:30],
)
def test_postgresql_can_read_every_statement(name: str, statement: str) -> None:
    (parsed,) = pglast.parse_sql(numbered(statement))
    assert parsed.stmt is not None
    # What parses may still be SQLite's own: its lists, its functions of two numbers, its row ids.
    assert not re.search(r"json_each|\bM(AX|IN)\([^)]*,|\browid\b|\bx'", statement), name


def test_postgresql_can_read_every_table() -> None:
    from sqlalchemy.dialects import postgresql
    from sqlalchemy.schema import CreateIndex, CreateTable

    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    for table in schema.metadata.sorted_tables:
        pglast.parse_sql(str(CreateTable(table).compile(dialect=dialect)))
        for index in table.indexes:
            pglast.parse_sql(str(CreateIndex(index).compile(dialect=dialect)))


def test_postgresql_can_read_every_migration() -> None:
    """All of them, from nothing to the present schema, as the script that they make."""
    said = io.StringIO()
    context = MigrationContext.configure(
        dialect_name="postgresql", opts={"as_sql": True, "output_buffer": said}
    )
    scripts = ScriptDirectory.from_config(migrations.config())
    with Operations.context(context):
        for revision in migrations.REVISIONS:
            scripts.get_revision(revision).module.upgrade()
    made = [parsed.stmt for parsed in pglast.parse_sql(said.getvalue())]
    tables = {
        one.relation.relname
        for one in made
        if isinstance(one, pglast.ast.CreateStmt) and one.relation is not None
    }
    assert tables == set(schema.metadata.tables)


OPERATORS = "chunks.totals", "chunks.sessions", "chunks.prune"
"""What reads a table whole, in commands that work on a store that no server has open."""


@pytest.mark.parametrize(
    ("name", "statement"), list(every_statement(SQL)), ids=lambda value: value[:30]
)
def test_every_statement_goes_by_an_index(path: Path, name: str, statement: str) -> None:
    with database.connect(path) as db:
        names = dict.fromkeys(re.findall(r":(\w+)", statement), 1)
        plan = db.execute(
            f"EXPLAIN QUERY PLAN {statement}", names or [1] * statement.count("?")
        ).fetchall()
    # A count reads its index whole, gauges the short tables of what waits, the doctor without a
    # server every assignment, a start every quota and debt, and an operator's command every chunk;
    # the queue of debts is an index of its own, and a JSON list is one.
    at_start = "quotas.all", "debts.take_back"
    whole = "heads.count_all", "workload", "assignments.all", *at_start, *OPERATORS
    allowed = {"json_each"} | (
        {"due"}
        if name in ("debts.due", "debts.debtors")
        else {"CONSTANT"}
        if name == "replies.remember"
        else set()
    )
    for *_, step in plan:
        if step.startswith("SCAN") and not name.startswith(whole):
            assert step.split()[1] in allowed, plan


HOT = {
    "jobs.due": "lent_jobs_queue (tenant=?)",
    "jobs.by_digest": "lent_jobs_digest (tenant=? AND digest=?)",
    "heads.delete_rest.3": "lent_jobs_session (tenant=? AND agent=? AND session=?)",
    "heads.delete_rest.4": "spawns_child (tenant=? AND agent=? AND session=?)",
    "heads.delete_rest.5": "agent_facts_session (tenant=? AND agent=? AND session=?)",
    "memory.of_session": "agent_facts_session (tenant=? AND agent=? AND session=?)",
    "memory.of_agent": "agent_facts_place (tenant=? AND agent=?)",
    "memory.newest": "agent_facts_place (tenant=? AND agent=?)",
    "memory.take_back": ("agent_facts_session (tenant=? AND agent=? AND session=? AND sequence>?)"),
    "memory.retired": (
        "messages_retired (tenant=? AND agent=? AND session=? AND retired_revision>?)"
    ),
    "heads.delete_rest.9": "spawns_parent (tenant=? AND parent_agent=? AND parent_session=?)",
    "spawns.asked": (
        "spawns_request (tenant=? AND parent_agent=? AND parent_session=? AND request_id=?)"
    ),
    "spawns.newest_of": "spawns_child (tenant=? AND agent=? AND session=?)",
    "spawns.live_children": (
        "spawns_parent (tenant=? AND parent_agent=? AND parent_session=? AND ended_ms=?)"
    ),
    "spawns.due": "spawns_due (expire_ms<?)",
    "spawns.any_over": "spawns_over (ended_ms>? AND ended_ms<?)",
    "messages.by_host_id": "messages_host_id (tenant=? AND agent=? AND host_id=? AND session=?)",
    "messages.atom_from": "messages_start (tenant=? AND agent=? AND session=? AND start>?)",
    "messages.atom_late": "messages_late (tenant=? AND agent=? AND session=? AND late_of=?)",
    "messages.late_between": (
        "messages_late (tenant=? AND agent=? AND session=? AND late_of>? AND late_of<?)"
    ),
    "messages.retired_since": (
        "messages_retired (tenant=? AND agent=? AND session=? AND retired_revision>?)"
    ),
    "heads.dependents": "sessions_parent (tenant=? AND agent=? AND parent_session=?)",
    "heads.idle": "sessions_idle (updated_ms<?)",
    "messages.pinned": "messages_pinned (tenant=? AND agent=? AND session=?)",
    "heads.listing False False True": (
        "sessions_newest (tenant=? AND (updated_ms,agent,session)<(?,?,?))"
    ),
    "heads.listing True True False": "sessions_key (tenant=? AND session_key=?)",
}


@pytest.mark.parametrize("name", sorted(HOT))
def test_a_look_up_uses_its_own_index(path: Path, name: str) -> None:
    statement = dict(every_statement(SQL))[name]
    with database.connect(path) as db:
        names = dict.fromkeys(re.findall(r":(\w+)", statement), 1)
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}", names)]
    assert any(step.endswith(f"INDEX {HOT[name]}") for step in plan), plan


def test_migrations_go_forward_only(path: Path) -> None:
    from alembic import command

    with engine(path).connect() as connection:
        configuration = migrations.config()
        configuration.attributes["connection"] = connection
        with pytest.raises(RuntimeError, match="restore a backup"):
            command.downgrade(configuration, "base")
    for script in ScriptDirectory.from_config(configuration).walk_revisions():
        with pytest.raises(RuntimeError) as refused:
            script.module.downgrade()
        assert str(refused.value) == (
            "migrations go forward only: restore a backup made before the upgrade"
        )
