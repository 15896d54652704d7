"""The commands of `plugins`: their options and their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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


@plugins_app.command("prune", epilog="Example: contextengine plugins prune chunks.db --days 30")
def prune_chunks(
    file: Annotated[Path, typer.Argument(help="The file of a plugin's ContextStore.")],
    days: Annotated[
        float,
        typer.Option(min=0, help="Sessions that nothing was written of for so many days go."),
    ],
) -> None:
    """Erase what a plugin for PyClaw keeps of old sessions in its store of chunks.

    Nothing else does that: chunks are kept until their session is deleted. What the server keeps of
    the sessions stays.
    """
    from contextengine_server.cli.plugins.actions import prune

    prune(file, days)
