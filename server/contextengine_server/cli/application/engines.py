"""The commands of `engines`."""

from __future__ import annotations

from typing import Annotated

import typer

from contextengine_server.cli.application.arguments import Json
from contextengine_server.cli.connection import Where, asks, run

engines_app = typer.Typer(help="Look at engines, and choose one.", no_args_is_help=True)


@engines_app.command("list", epilog="Example: contextengine engines list")
@asks
def list_engines(where: Where, json: Json = False) -> None:
    """List the engines, the default first."""
    from contextengine_server.cli.engines import list_engines

    run(list_engines(where, json))


@engines_app.command("show", epilog="Example: contextengine engines show dag")
@asks
def show_engine(
    where: Where,
    engine: Annotated[
        str,
        typer.Argument(help="The engine's id. Default: the one that serves.", show_default=False),
    ] = "",
    agent: Annotated[str, typer.Option(help="The agent whose session it is.")] = "default",
    session: Annotated[
        str, typer.Option(help="The engine and options of this session.", show_default=False)
    ] = "",
    json: Json = False,
) -> None:
    """Print an engine with its options."""
    from contextengine_server.cli.engines import show_engine

    run(show_engine(where, engine, agent, session, json))


@engines_app.command(
    "use",
    epilog="Example: contextengine engines use dag --agent airline --option freshTailTurns=12",
)
@asks
def use_engine(
    where: Where,
    engine: Annotated[
        str,
        typer.Argument(
            help="The engine's id. Leave out with --clear or --option.", show_default=False
        ),
    ] = "",
    agent: Annotated[
        str, typer.Option(help="For this agent. Default: for the whole tenant.", show_default=False)
    ] = "",
    session: Annotated[
        str, typer.Option(help="For this session of the agent.", show_default=False)
    ] = "",
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="An option of the engine. Can be given again.",
            show_default=False,
        ),
    ] = None,
    match: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=GLOB",
            help=(
                "For sessions by pattern: agent, session, key or model and a glob, min_window or"
                " max_window and tokens. Can be given again; all must match."
            ),
            show_default=False,
        ),
    ] = None,
    clear: Annotated[
        bool, typer.Option("--clear", help="Take back what was chosen for this scope.")
    ] = False,
) -> None:
    """Choose an engine, or options of it, for the tenant, an agent, a session, or sessions by
    pattern. Operators only.

    It serves from the next call on, on the same history.
    """
    from contextengine_server.cli.engines import use_engine

    run(use_engine(where, engine, agent, session, option or [], match or [], clear))
