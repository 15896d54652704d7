"""The tables in PostgreSQL: those that all stores share, with keys of their own.

The rows of sessions that grow without end are found by `home` and, but for heads and answers, by
`life` (see `keys`). Texts are compared by their bytes, whatever the database's own order is.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import UUID

from contextengine_server.store.sql import schema as shared
from contextengine_server.store.sql.columns import KEY

metadata = sa.MetaData()

_OF_LIVES = ("messages", "summaries")
_OF_HOMES = ("sessions", "requests")
_OWN = ("search_cursors",)
"""What is made anew here."""


def _home() -> sa.Column[int]:
    return sa.Column("home", sa.BigInteger, primary_key=True, autoincrement=False, nullable=False)


def _life(*, key: bool = True) -> sa.Column[str]:
    return sa.Column("life", UUID(as_uuid=False), primary_key=key, nullable=False)


def _column(column: sa.Column, *, key: bool) -> sa.Column:  # type: ignore[type-arg]
    """The same column, its texts compared by their bytes. `key`: of the key where it is there."""
    key = key and column.primary_key
    kind = sa.Text(collation="C") if isinstance(column.type, sa.Text) else column.type
    return sa.Column(
        column.name,
        kind,
        primary_key=key,
        nullable=column.nullable,
        autoincrement=False if key else "auto",
    )


def _table(table: sa.Table) -> sa.Table:
    columns = [_column(column, key=table.name != "costs") for column in table.c]
    with_options = None
    if table.name in _OF_LIVES:
        columns = [_home(), _life(), *(column for column in columns if column.name not in KEY)]
    elif table.name in _OF_HOMES:
        columns = [_home(), *columns]
    if table.name == "sessions":
        columns.insert(len(KEY) + 1, _life(key=False))
        with_options = {"fillfactor": "70"}  # each commit writes its row anew
    made: sa.Table = sa.Table(table.name, metadata, *columns, postgresql_with=with_options)
    return made


def _index(index: sa.Index, table: sa.Table) -> None:
    names = [column.name for column in index.columns]
    if table.name in _OF_LIVES:
        names = ["home", "life", *(name for name in names if name not in KEY)]
    condition = index.dialect_options["postgresql"]["where"]
    sa.Index(
        index.name,
        *(table.c[name] for name in names),
        unique=index.unique,
        postgresql_where=None if condition is None else sa.text(_said(condition)),
    )


def _said(condition: sa.ColumnElement[bool]) -> str:
    """A condition of an index, without the table's name."""
    from sqlalchemy.dialects import postgresql

    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    options = {"include_table": False, "literal_binds": True}
    return str(condition.compile(dialect=dialect, compile_kwargs=options))


for _shared in shared.metadata.sorted_tables:
    if _shared.name not in _OWN:
        _made = _table(_shared)
        for _one in sorted(_shared.indexes, key=lambda index: str(index.name)):
            _index(_one, _made)

_c = metadata.tables["costs"].c
# Models are named by whoever calls them, at any length.
sa.Index(
    "costs_key", _c.tenant, _c.agent, sa.func.md5(_c.provider), sa.func.md5(_c.model), unique=True
)

_r = metadata.tables["requests"].c
sa.Index("requests_agent", _r.tenant, _r.agent, postgresql_where=sa.text("session = ''"))

sa.Table(
    "search_cursors",
    metadata,
    _home(),
    _life(),
    *(
        sa.Column(name, sa.BigInteger, nullable=False)
        for name in ("sequence", "parts", "summaries", "revision")
    ),
)
sa.Table(
    "passages",
    metadata,
    _home(),
    _life(),
    *(
        sa.Column(name, sa.BigInteger, primary_key=True, autoincrement=False, nullable=False)
        for name in ("kind", "place", "part")
    ),
    *(sa.Column(name, sa.Text(collation="C"), nullable=False) for name in ("text", "words")),
    sa.Column("folded", sa.Text(collation="C"), nullable=True),
)
"""What search looks in: a passage as it stands, its words as they are compared, each between two
spaces, and the passage in lower case where that is another text."""

_UNLOGGED = ["UNLOGGED"]
sa.Table(
    "feed",
    metadata,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False, nullable=False),
    *(sa.Column(name, sa.BigInteger, nullable=False) for name in ("previous", "notes")),
    sa.Column("body", sa.LargeBinary, nullable=False),
    prefixes=_UNLOGGED,
)
"""What servers tell each other, a row for each batch."""
_l = sa.Table(
    "leases",
    metadata,
    *(
        sa.Column(name, sa.Text(collation="C"), primary_key=True, nullable=False)
        for name in (*KEY, "kind")
    ),
    sa.Column("owner", sa.Text(collation="C"), nullable=False),
    sa.Column("until_ms", sa.BigInteger, nullable=False),
    prefixes=_UNLOGGED,
)
"""What one server at a time may do."""
sa.Index("leases_over", _l.c.until_ms)
