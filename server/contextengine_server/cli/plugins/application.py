"""The commands of `plugins`: their options and their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contextengine_server.cli.application.arguments import Json
from contextengine_server.cli.connection import Where, asks, run

plugins_app = typer.Typer(
    help="Engines in the directory of plugins: see, link, enable, disable.", no_args_is_help=True
)

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="The settings that name the directory. Default: as for serve.",
        show_default=False,
    ),
]
Directory = Annotated[
    Path | None,
    typer.Option(
        help="plugins.directory: where plugins are. Default: that of the settings.",
        show_default=False,
    ),
]
Name = Annotated[str, typer.Argument(help="The plugin's name, as its plugin.yaml says.")]


@plugins_app.command("list", epilog="Example: contextengine plugins list")
def list_plugins(
    config: ConfigFile = None,
    directory: Directory = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the plugins of the directory, and what is wrong with them.

    Of plugins that are not enabled only plugin.yaml is read. The code of the others runs, as it
    would when a server starts.
    """
    from contextengine_server.cli.plugins.actions import found_in, show

    show(found_in(config, directory), json)


@plugins_app.command("link", epilog="Example: contextengine plugins link ./my-engine")
def link_plugin(
    folder: Annotated[
        Path, typer.Argument(help="The plugin's folder.", exists=True, file_okay=False)
    ],
    config: ConfigFile = None,
    directory: Directory = None,
) -> None:
    """Make a folder elsewhere a plugin of the directory, by a symbolic link.

    Nothing is copied: what is changed there counts from the next start of the server. Its code does
    not run before it is enabled.
    """
    from contextengine_server.cli.plugins.actions import found_in, link

    link(found_in(config, directory), folder)


@plugins_app.command("enable", epilog="Example: contextengine plugins enable my-engine")
def enable_plugin(name: Name, config: ConfigFile = None, directory: Directory = None) -> None:
    """Let a plugin's code run from the next start of the server on.

    Its engine can be chosen then. It serves nobody before it is: by engine.default, or by
    `contextengine engines use`.
    """
    from contextengine_server.cli.plugins.actions import enable, found_in

    enable(found_in(config, directory), name)


@plugins_app.command("disable", epilog="Example: contextengine plugins disable my-engine")
def disable_plugin(name: Name, config: ConfigFile = None, directory: Directory = None) -> None:
    """Let a plugin's code not run any more, from the next start of the server on.

    Sessions that have its engine keep their history, and are answered an error that names it until
    another engine is chosen for them.
    """
    from contextengine_server.cli.plugins.actions import disable, found_in

    disable(found_in(config, directory), name)


@plugins_app.command("prune", epilog="Example: contextengine plugins prune --days 30")
@asks
def prune_chunks(
    where: Where,
    days: Annotated[
        float,
        typer.Option(min=0, help="Sessions that nothing was written of for so many days."),
    ],
    tenant: Annotated[
        str, typer.Option(help="Only this tenant's. Default: of all.", show_default=False)
    ] = "",
    json: Json = False,
) -> None:
    """Erase the chunks that plugins for PyClaw keep of old sessions.

    For a store that no server has open. Nothing else erases chunks by their age: they are kept
    until their session is deleted, by retention as well. The sessions stay.
    """
    from contextengine_server.cli.plugins.chunks import prune

    run(prune(where, days, tenant, json))
