"""The commands that operators type: serve, doctor, engines, config, token, version."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from contextengine_server.cli.connection import Where, asks, run

engines_app = typer.Typer(help="Look at engines, and choose one.", no_args_is_help=True)
config_app = typer.Typer(
    help="Look at settings, check them, take over another host's.", no_args_is_help=True
)
token_app = typer.Typer(help="Bearer tokens.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        help=(
            "The settings file. Default: CONTEXTENGINE_CONFIG, else ./contextengine.yaml if there"
            " is one."
        ),
        show_default=False,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Any setting by its path, such as engine.default=legacy. Can be given again.",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the commands that stand by themselves."""
    app.command(
        epilog="Example: contextengine serve --address 127.0.0.1:50051 --store var/contextengine.db"
    )(serve)
    app.command(epilog="Example: contextengine doctor --json")(asks(doctor))
    app.command(epilog="Example: contextengine health --address 127.0.0.1:50051")(health)
    app.command(epilog="Example: contextengine vacuum --store var/contextengine.db")(asks(vacuum))
    app.command(epilog="Example: contextengine prune --dry-run --store var/contextengine.db")(
        asks(prune)
    )
    app.command(epilog="Example: contextengine backup /backups/monday.db")(asks(backup))
    app.command(epilog="Example: contextengine restore /backups/monday.db --replace")(asks(restore))
    app.command(epilog="Example: contextengine version")(version)


def serve(
    config: ConfigFile = None,
    address: Annotated[
        str | None,
        typer.Option(
            help="server.address: host:port, [ipv6]:port or unix:path.", show_default=False
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(help="store.url: a path, or another store's URL.", show_default=False),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="engine.default: the engine of all sessions with no other.", show_default=False
        ),
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure",
            help="server.insecure: allow an address beyond this machine without TLS and tokens.",
        ),
    ] = False,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"] | None,
        typer.Option(help="telemetry.logs.level", show_default=False),
    ] = None,
    log_format: Annotated[
        Literal["text", "json"] | None,
        typer.Option(help="telemetry.logs.format", show_default=False),
    ] = None,
    set_: Set = None,
) -> None:
    """Serve until SIGTERM or Ctrl-C, then drain.

    Prints one line when calls are answered. Exits with status 2 where it may not start, and says
    what to set; with 75 where that may pass, as when another process has its port.
    """
    from contextengine_server.cli.serve import parse_settings, serve

    flags = {
        "server.address": address,
        "store.url": store,
        "engine.default": engine,
        "server.insecure": insecure or None,
        "telemetry.logs.level": log_level,
        "telemetry.logs.format": log_format,
    }
    serve(config, flags | parse_settings(set_ or []))


def doctor(
    where: Where,
    session: Annotated[
        str,
        typer.Option(
            help="Also look at this session: its engine, and all of its rows.", show_default=False
        ),
    ] = "",
    agent: Annotated[str, typer.Option(help="The agent whose session it is.")] = "default",
    repair: Annotated[
        bool, typer.Option("--repair", help="Mend what can be worked out again in that session.")
    ] = False,
    clear_failures: Annotated[
        bool,
        typer.Option("--clear-failures", help="Strike off the failures of engines that it shows."),
    ] = False,
    backup: Annotated[
        Path | None,
        typer.Option(
            help=(
                "With --repair, of a store that no server has open: put damaged messages and"
                " summaries of all sessions, or of that one, right from this copy of the database."
            ),
            show_default=False,
        ),
    ] = None,
    deep: Annotated[bool, typer.Option(help="Also read a copy of the whole store.")] = False,
    json: Json = False,
) -> None:
    """Check settings, store, token ranks, port, TLS and engines, and say what to do about what is
    wrong.

    Asks the server where one answers, and looks at the local settings too; else checks all on its
    own. The exit status is 1 where anything is an error.
    """
    from contextengine_server.cli.doctor import diagnose

    if not run(diagnose(where, session, agent, repair, clear_failures, backup, json, deep)):
        raise typer.Exit(1)


def vacuum(where: Where) -> None:
    """Give the space of deleted sessions back to the disk, and overwrite all that is left of them.

    For a store that no server has open: a running one gives space back by itself, in the
    background.
    """
    from contextengine_server.cli.store import vacuum as work

    run(work(where))


def prune(
    where: Where,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be erased, and erase nothing.")
    ] = False,
    json: Json = False,
) -> None:
    """Erase the sessions that retention.rules let go: those that are too old, or too many.

    For a store that no server has open: a running one prunes by itself every retention.interval.
    """
    from contextengine_server.cli.store import prune as work

    run(work(where, dry_run, json))


def backup(
    where: Where,
    target: Annotated[Path, typer.Argument(help="The file to write. It must not exist.")],
    json: Json = False,
) -> None:
    """Copy the store into a file, as it is at one moment, and verify the copy.

    A server may go on writing meanwhile. The file appears under its name when all of it is on
    disk.
    """
    from contextengine_server.cli.store import back_up

    run(back_up(where, target, json))


def restore(
    where: Where,
    backup: Annotated[Path, typer.Argument(help="A file that `backup` wrote. It stays as it is.")],
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Where there is a database: move it aside, as NAME.replaced."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Put a copy of a backup in the store's place, after verifying it.

    For a store that no server has open. What was written since the backup is in the database that
    is moved aside.
    """
    from contextengine_server.cli.store import restore as work

    run(work(where, backup, replace, json))


def health(
    address: Annotated[
        str,
        typer.Option(
            envvar="CONTEXTENGINE_ADDRESS",
            help="The server to ask. Default: the address of the settings.",
            show_default=False,
        ),
    ] = "",
    service: Annotated[
        str,
        typer.Option(
            help="One service by its full name. Default: the server as a whole.", show_default=False
        ),
    ] = "",
    tls: Annotated[
        bool, typer.Option("--tls", help="Speak TLS, trusting the system's authorities.")
    ] = False,
    ca: Annotated[
        Path | None,
        typer.Option(
            help="Speak TLS, trusting the authorities in this PEM file.", show_default=False
        ),
    ] = None,
    config: ConfigFile = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for the answer.")] = 5.0,
) -> None:
    """Ask a server whether it serves, by grpc.health.v1, which needs no token. The exit status is 0
    only where it does."""
    from contextengine_server.cli.health import check_health

    state = check_health(address, service, tls, ca, config, timeout)
    print(state)
    if state != "SERVING":
        raise typer.Exit(1)


def version() -> None:
    """Print the versions of the server and of what it stands on."""
    from contextengine_server.cli.output import print_facts
    from contextengine_server.cli.settings import versions

    print_facts(versions())


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
