"""The way from every released schema to the present one. It goes forward only.

`REVISIONS` is stated here so that a start can tell an up-to-date database without importing
Alembic, which takes longer than all the rest of opening one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlalchemy as sa
    from alembic.config import Config

    from contextengine_server.store.schemas import SchemaStep

REVISIONS = tuple(f"{number:04}" for number in range(1, 18))
"""Every schema revision that this program knows, oldest first. The last is the present one."""

HEAD = REVISIONS[-1]


def config(scripts: Path = Path(__file__).parent) -> Config:
    """Alembic's configuration for a directory of migrations."""
    from alembic.config import Config

    made = Config()
    made.set_main_option("script_location", str(scripts).replace("%", "%%"))
    return made


def upgrade(
    connection: sa.Connection, to: str = "head", scripts: Path = Path(__file__).parent
) -> None:
    """Brings a database to a revision, inside the transaction that the connection is in."""
    from alembic import command

    configuration = config(scripts)
    configuration.attributes["connection"] = connection
    command.upgrade(configuration, to)


def steps(configuration: Config, since: str | None) -> tuple[SchemaStep, ...]:
    """The migrations after a revision (None: all), oldest first."""
    from alembic.script import ScriptDirectory

    from contextengine_server.store.schemas import SchemaStep

    newest_first = ScriptDirectory.from_config(configuration).walk_revisions(since or "base")
    found = [SchemaStep(one.revision, " ".join(one.doc.split())) for one in newest_first]
    return tuple(step for step in reversed(found) if step.revision != since)
