"""The commands of `config` and `token`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contextengine_server.cli.application.arguments import ConfigFile, Json, Set

config_app = typer.Typer(
    help="Look at settings, check them, take over another host's.", no_args_is_help=True
)
token_app = typer.Typer(help="Bearer tokens.", no_args_is_help=True)


@config_app.command(
    "import",
    epilog="Example: contextengine config import ~/.openclaw/openclaw.json -o contextengine.yaml",
)
def import_config(
    file: Annotated[
        Path,
        typer.Argument(help="The other host's file.", exists=True, dir_okay=False, readable=True),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The file to write. Default: standard output.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Turn the configuration of OpenClaw, Genesis, FluffBuzz, Hermes, Comis or PyClaw into ours.

    What was mapped, and what was not and why, goes to standard error.
    """
    from contextengine_server.cli.settings import import_file

    import_file(file, output, force)


@config_app.command("show", epilog="Example: contextengine config show --set engine.default=legacy")
def show_config(config: ConfigFile = None, set_: Set = None, json: Json = False) -> None:
    """Print the settings in force, from file, environment and flags. Secrets are left out."""
    from contextengine_server.cli.settings import show

    show(config, set_ or [], json)


@config_app.command(
    "check", epilog="Example: contextengine config check --config contextengine.yaml"
)
def check_config(config: ConfigFile = None, set_: Set = None, json: Json = False) -> None:
    """Check settings against each other, without a server. The exit status is 1 where anything is
    an error."""
    from contextengine_server.cli.settings import check

    if not check(config, set_ or [], json):
        raise typer.Exit(1)


@token_app.command(
    "hash", epilog="Example: openssl rand -hex 32 | tee token | contextengine token hash"
)
def hash_token() -> None:
    """Print what auth.tokens holds of a token: its SHA-256. The token is read from standard input,
    never from a flag."""
    from contextengine_server.cli.settings import hash_from_stdin

    print(hash_from_stdin())
