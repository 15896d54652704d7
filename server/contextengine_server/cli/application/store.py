"""The commands of `store`."""

from __future__ import annotations

from typing import Annotated

import typer

from contextengine_server.cli.application.arguments import Json
from contextengine_server.cli.connection import run

store_app = typer.Typer(help="Move from one store to another.", no_args_is_help=True)

From = Annotated[str, typer.Argument(metavar="FROM", help="The store to read: a path, or its URL.")]


@store_app.command(
    epilog="Example: contextengine store copy var/contextengine.db postgresql://db-1/contextengine"
)
def copy(
    source: From,
    target: Annotated[
        str, typer.Argument(metavar="TO", help="The store to make: a path, or its URL.")
    ],
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Erase what the target holds first, if that is no copy."),
    ] = False,
    json: Json = False,
) -> None:
    """Make one store what another is at this moment: SQLite to PostgreSQL, back, or any two.

    Servers may go on with FROM, and write to it; TO must have none. Each session is read back and
    compared before it is committed. Run it again to go on after it was cut off, or to bring over
    what changed since: only that is copied. So: copy, stop the servers, copy again, start them on
    TO. A target that holds anything that this copy did not bring is refused. What search looks in
    is made again by the server that opens TO.
    """
    from contextengine_server.cli.store_copy import copy as work

    run(work(source, target, replace, json))


@store_app.command(
    epilog=(
        "Example: contextengine store compare var/contextengine.db postgresql://db-1/contextengine"
    )
)
def compare(
    one: From,
    other: Annotated[str, typer.Argument(metavar="OTHER", help="The store to compare it with.")],
    json: Json = False,
) -> None:
    """Say whether two stores hold the same: each session with all its messages and summaries, and
    every other row, by their hashes.

    The exit status is 0 where they do, 1 where they do not, and 2 where that cannot be told.
    """
    from contextengine_server.cli.store_copy import compare as work

    if not run(work(one, other, json)):
        raise typer.Exit(1)
