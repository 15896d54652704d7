"""The commands of `migrate`."""

from __future__ import annotations

import typer

from contextengine_server.cli.application.arguments import Json
from contextengine_server.cli.connection import Where, asks, run

migrate_app = typer.Typer(
    help=(
        "Bring a store to the schema of this version. A server does so itself when it starts: these"
        " are for whoever wants to read the steps before, or run them apart from the servers."
    ),
    no_args_is_help=True,
)


@migrate_app.command(
    epilog="Example: contextengine migrate plan --store postgresql://db-1/contextengine"
)
@asks
def plan(where: Where, json: Json = False) -> None:
    """Print what would be done, as SQL, and do nothing.

    A server may go on meanwhile. For SQLite the SQL is of the tables alone: what a step works out
    of stored rows is not in it.
    """
    from contextengine_server.cli.migrate import plan as work

    run(work(where, json))


@migrate_app.command(
    epilog="Example: contextengine migrate apply --store postgresql://db-1/contextengine"
)
@asks
def apply(where: Where) -> None:
    """Do it: whole or not at all, in one transaction.

    Of several at once, servers that start among them, one does it and the others wait for it
    (PostgreSQL) or are told who does (SQLite, which no server may have open). Make a backup first:
    migrations go forward only.
    """
    from contextengine_server.cli.migrate import apply as work

    run(work(where))


@migrate_app.command(
    epilog="Example: contextengine migrate verify --store postgresql://db-1/contextengine"
)
@asks
def verify(where: Where, json: Json = False) -> None:
    """Say whether the schema is the one that this version works on: its revision, and each table,
    column and index.

    The exit status is 0 where it is, 1 where it is not, and 2 where that cannot be told. What is
    there besides, such as an index of your own, does no harm.
    """
    from contextengine_server.cli.migrate import verify as work

    if not run(work(where, json)):
        raise typer.Exit(1)
