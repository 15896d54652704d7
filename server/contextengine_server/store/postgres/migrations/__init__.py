"""The way from every released schema to the present one. It goes forward only.

Alembic writes each step as SQL, which is run in one transaction and can be read before. The tables
are the shared ones with keys of their own (`store.postgres.schema`), so the steps are too.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from alembic.config import Config

REVISIONS = ("p0001", "p0002", "p0003", "p0004")
"""Every schema revision that this program knows, oldest first. The last is the present one."""

HEAD = REVISIONS[-1]

SERVES = "p0002"
"""The oldest revision whose programs may work on a database of the present schema: it stays where
it is while steps only add (expand), and moves up with one that takes away or gives stored rows
another meaning (contract). See docs/scaling.md."""

MARK = "serves "
"""What stands before `SERVES` in the comment on the table of revisions, where programs that are
older than the schema find it."""

TABLES = (
    "agent_facts", "archives", "assignments", "chunks", "costs", "debts", "feed", "guards",
    "leases", "lent_jobs", "messages", "passages", "quotas", "requests", "search_cursors",
    "session_keys", "sessions", "spawns", "spending", "summaries",
)  # fmt: skip
"""The tables of the present schema."""


def config() -> Config:
    """Alembic's configuration."""
    from alembic.config import Config

    made = Config(output_buffer=io.StringIO())
    made.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return made


def script(since: str | None, to: str = HEAD) -> str:
    """The SQL that brings a database from one revision (None: it is empty) to another."""
    from alembic import command

    configuration = config()
    command.upgrade(configuration, f"{since or 'base'}:{to}", sql=True)
    written = configuration.output_buffer
    assert isinstance(written, io.StringIO)
    return f"{written.getvalue()}COMMENT ON TABLE alembic_version IS '{MARK}{SERVES}';\n"
