"""What the steps of migrations do since the oldest schema whose servers still work on the present
one: they add, and nothing else (docs/scaling.md#upgrading-without-an-outage)."""

from __future__ import annotations

import re

import pytest

from contextengine_server.store.postgres.migrations import HEAD, REVISIONS, SERVES, script

_ADDS = re.compile(
    r"CREATE TABLE \w+ \(.*\)"
    r"|CREATE INDEX \w+ ON \w+ .*"
    r"|ALTER TABLE \w+ ADD COLUMN \w+ (?!.*\bUNIQUE\b)(?!.*\bREFERENCES\b)"
    r"((?!.*NOT NULL).*|.*NOT NULL DEFAULT .*)"
    r"|UPDATE alembic_version SET version_num='\w+' WHERE alembic_version\.version_num = '\w+'"
    r"|COMMENT ON TABLE alembic_version IS '.*'"
    r"|BEGIN|COMMIT",
    re.DOTALL,
)
"""What a server that does not know of it goes on beside: a unique index, or a column that it would
have to fill, refuses what it writes."""


def expands(statement: str) -> bool:
    return _ADDS.fullmatch(statement) is not None


def statements(sql: str) -> list[str]:
    lines = "\n".join(line for line in sql.splitlines() if not line.startswith("--"))
    return [one.strip() for one in lines.split(";") if one.strip()]


def test_steps_since_the_oldest_that_is_served_only_add() -> None:
    assert SERVES in REVISIONS
    told = statements(script(SERVES))
    assert f"version_num='{HEAD}'" in " ".join(told)
    assert [one for one in told if not expands(one)] == []


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE debts",
        "ALTER TABLE sessions DROP COLUMN state",
        "ALTER TABLE sessions RENAME COLUMN state TO states",
        "ALTER TABLE sessions ALTER COLUMN state SET NOT NULL",
        "ALTER TABLE sessions ADD COLUMN newer BIGINT NOT NULL",
        "ALTER TABLE sessions ADD COLUMN newer BIGINT UNIQUE",
        "CREATE UNIQUE INDEX newer_of ON messages (newer)",
        "UPDATE messages SET step = 0",
        "DELETE FROM debts",
    ],
)
def test_what_contracts_is_told(statement: str) -> None:
    assert not expands(statement)
