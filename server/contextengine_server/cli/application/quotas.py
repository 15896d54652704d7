"""The commands of `quotas`."""

from __future__ import annotations

from typing import Annotated

import typer

from contextengine_server.cli.application.arguments import Json
from contextengine_server.cli.connection import Where, asks, run

quotas_app = typer.Typer(
    help="Look at what tenants hold of a server, and set what they may.", no_args_is_help=True
)

Tenant = Annotated[str, typer.Argument(help="The tenant.", show_default=False)]


@quotas_app.command("list", epilog="Example: contextengine quotas list")
@asks
def list_quotas(
    where: Where,
    tenant: Annotated[
        str,
        typer.Argument(
            help="The tenant. Default: one's own; for the server's owner all.", show_default=False
        ),
    ] = "",
    json: Json = False,
) -> None:
    """List tenants with what they hold and what they may. Operators only."""
    from contextengine_server.cli.quotas import list_quotas

    run(list_quotas(where, tenant, json))


@quotas_app.command("set", epilog="Example: contextengine quotas set acme --calls 100 --weight 2")
@asks
def set_quota(
    where: Where,
    tenant: Tenant,
    weight: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            max=1000,
            help="Its share beside others, who weigh 1.",
            show_default=False,
        ),
    ] = None,
    calls: Annotated[
        int | None,
        typer.Option(min=1, help="Calls at once, those that wait included.", show_default=False),
    ] = None,
    long_calls: Annotated[
        int | None,
        typer.Option(
            min=1, help="Calls of Compact, Import and Export at once.", show_default=False
        ),
    ] = None,
    streams: Annotated[
        int | None,
        typer.Option(min=1, help="Streams of Watch and Attach at once.", show_default=False),
    ] = None,
    waits: Annotated[
        int | None,
        typer.Option(min=1, help="Reads that wait for a revision at once.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Set a tenant's quota, in the place of the one that was set. What is left out is as the
    settings say. In force with the next call. The server's owner only."""
    from contextengine_server.cli.quotas import set_quota

    given = {
        "weight": weight,
        "calls": calls,
        "long_calls": long_calls,
        "streams": streams,
        "waits": waits,
    }
    run(set_quota(where, tenant, given, json))


@quotas_app.command("unset", epilog="Example: contextengine quotas unset acme")
@asks
def unset_quota(where: Where, tenant: Tenant, json: Json = False) -> None:
    """Remove a tenant's quota: it is as the settings say again. The server's owner only."""
    from contextengine_server.cli.quotas import unset_quota

    run(unset_quota(where, tenant, json))
