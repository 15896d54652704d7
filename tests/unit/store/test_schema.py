"""The migrations end in the tables, the tables hold the rows, and every statement finds what it
reads by an index."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import fields
from itertools import product
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from contextengine_server.store import migrations, schema
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
from contextengine_server.store.sqlite import database, statements


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
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_every_field_of_a_row_has_its_column(table: sa.Table, row: type, besides: set[str]) -> None:
    names = {field.name for field in fields(row)} - {"scope"}
    assert {column.name for column in table.c} == names | {"tenant", "agent", "session"} | besides


def test_every_key_begins_with_the_tenant() -> None:
    for table in schema.metadata.tables.values():
        assert next(iter(table.primary_key)).name == "tenant", table.name


def test_the_tables_are_ready_for_postgresql() -> None:
    from sqlalchemy.dialects import postgresql
    from sqlalchemy.schema import CreateIndex, CreateTable

    for table in schema.metadata.sorted_tables:
        str(CreateTable(table).compile(dialect=postgresql.dialect()))  # type: ignore[no-untyped-call]
        for index in table.indexes:
            str(CreateIndex(index).compile(dialect=postgresql.dialect()))  # type: ignore[no-untyped-call]


def every_statement() -> Iterator[tuple[str, str]]:
    for name, value in vars(statements).items():
        if (
            name.startswith("_")
            or not name.isupper()
            or name.endswith("COLUMNS")
            or name == "COUNTED"
        ):
            continue
        if isinstance(value, str):
            yield name, value
        elif isinstance(value, dict):
            yield from ((f"{name} {table}", text) for table, text in value.items())
        else:
            yield from ((f"{name} {number}", text) for number, text in enumerate(value))
    for agent, key, after in product((False, True), repeat=3):
        yield (
            f"listing {agent} {key} {after}",
            statements.listing(agent=agent, key=key, after=after),
        )


@pytest.mark.parametrize(
    ("name", "statement"), list(every_statement()), ids=lambda value: value[:30]
)
def test_every_statement_goes_by_an_index(path: Path, name: str, statement: str) -> None:
    with database.connect(path) as db:
        names = dict.fromkeys(re.findall(r":(\w+)", statement), 1)
        plan = db.execute(
            f"EXPLAIN QUERY PLAN {statement}", names or [1] * statement.count("?")
        ).fetchall()
    # A count reads its index whole, gauges the short tables of what waits; the queue of debts is an
    # index of its own, and a JSON list is one.
    allowed = {"json_each"} | (
        {"due"} if name == "DUE_DEBT" else {"CONSTANT"} if name == "REMEMBER" else set()
    )
    for *_, step in plan:
        if step.startswith("SCAN") and not name.startswith(("COUNT_ALL", "WORKLOAD")):
            assert step.split()[1] in allowed, plan


HOT = {
    "DUE_JOB": "lent_jobs_queue (tenant=?)",
    "JOB_BY_DIGEST": "lent_jobs_digest (tenant=? AND digest=?)",
    "DELETE_REST 3": "lent_jobs_session (tenant=? AND agent=? AND session=?)",
    "DELETE_REST 4": "spawns_child (tenant=? AND agent=? AND session=?)",
    "DELETE_REST 7": "spawns_parent (tenant=? AND parent_agent=? AND parent_session=?)",
    "SPAWN_ASKED": (
        "spawns_request (tenant=? AND parent_agent=? AND parent_session=? AND request_id=?)"
    ),
    "SPAWN_OF": "spawns_child (tenant=? AND agent=? AND session=?)",
    "LIVE_CHILDREN": (
        "spawns_parent (tenant=? AND parent_agent=? AND parent_session=? AND ended_ms=?)"
    ),
    "DUE_SPAWNS": "spawns_due (expire_ms<?)",
    "OVER_SPAWN": "spawns_over (ended_ms>? AND ended_ms<?)",
    "BY_HOST_ID": "messages_host_id (tenant=? AND agent=? AND host_id=? AND session=?)",
    "ATOM_FROM": "messages_start (tenant=? AND agent=? AND session=? AND start>?)",
    "ATOM_LATE": "messages_late (tenant=? AND agent=? AND session=? AND late_of=?)",
    "LATE_BETWEEN": (
        "messages_late (tenant=? AND agent=? AND session=? AND late_of>? AND late_of<?)"
    ),
    "RETIRED_SINCE": "messages_retired (tenant=? AND agent=? AND session=? AND retired_revision>?)",
    "DEPENDENTS": "sessions_parent (tenant=? AND agent=? AND parent_session=?)",
    "IDLE": "sessions_idle (updated_ms<?)",
    "PINNED": "messages_pinned (tenant=? AND agent=? AND session=?)",
    "listing False False True": "sessions_newest (tenant=? AND (updated_ms,agent,session)<(?,?,?))",
    "listing True True False": "sessions_key (tenant=? AND session_key=?)",
}


@pytest.mark.parametrize("name", sorted(HOT))
def test_a_look_up_uses_its_own_index(path: Path, name: str) -> None:
    statement = dict(every_statement())[name]
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
