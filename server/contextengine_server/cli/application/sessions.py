"""The commands that list and erase."""

from __future__ import annotations

from typing import Annotated

import typer

from contextengine_server.cli.application.arguments import Agent, Json, SessionId
from contextengine_server.cli.connection import Where, asks, run

sessions_app = typer.Typer(help="List and erase sessions.", no_args_is_help=True)
erasure_app = typer.Typer()


@sessions_app.command("list", epilog="Example: contextengine sessions list --agent airline")
@asks
def list_sessions(
    where: Where,
    agent: Annotated[
        str, typer.Option(help="Only of this agent. Default: of all.", show_default=False)
    ] = "",
    limit: Annotated[int, typer.Option(min=1, help="At most this many.")] = 50,
    json: Json = False,
) -> None:
    """List sessions, newest write first."""
    from contextengine_server.cli.sessions import list_sessions

    run(list_sessions(where, agent, limit, json))


@sessions_app.command(
    "delete", epilog="Example: contextengine sessions delete case-1 --agent airline --yes"
)
@asks
def delete_session(
    where: Where,
    session: SessionId,
    agent: Agent = "default",
    cascade: Annotated[
        bool,
        typer.Option(
            "--cascade", help="Also the sessions that continue it or were forked from it."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Erase a session and everything derived from it. This cannot be undone."""
    from contextengine_server.cli.transfer import delete_session

    if not yes:
        typer.confirm(f"Erase session {session!r} of agent {agent!r} for good?", abort=True)
    run(delete_session(where, session, agent, cascade))


@erasure_app.command(epilog="Example: contextengine delete --tenant acme --agent airline --yes")
@asks
def delete(
    where: Where,
    tenant: Annotated[str, typer.Option(help="The tenant.")],
    agent: Annotated[str, typer.Option(help="Only this agent.", show_default=False)] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Erase all that is stored of a tenant, or of one of its agents. This cannot be undone.

    A running server wants an operator's token of that tenant. Cut off? Give it again."""
    from contextengine_server.cli.store import erase

    if not tenant:
        raise typer.BadParameter("name the tenant", param_hint="--tenant")
    if not yes:
        typer.confirm(f"Erase all of {agent or 'all agents'} of {tenant!r} for good?", abort=True)
    run(erase(where, tenant, agent, json))
