"""The commands for a server and its store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from contextengine_server.cli.application.arguments import ConfigFile, Json, Set
from contextengine_server.cli.connection import Where, asks, run

operations_app = typer.Typer()


@operations_app.command(
    epilog="Example: contextengine serve --address 127.0.0.1:50051 --store var/contextengine.db"
)
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


@operations_app.command(epilog="Example: contextengine doctor --json")
@asks
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


@operations_app.command(epilog="Example: contextengine vacuum --store var/contextengine.db")
@asks
def vacuum(where: Where) -> None:
    """Give the space of deleted sessions back to the disk, and overwrite all that is left of them.

    For a store that no server has open: a running one gives space back by itself, in the
    background.
    """
    from contextengine_server.cli.store import vacuum as work

    run(work(where))


@operations_app.command(
    epilog="Example: contextengine prune --dry-run --store var/contextengine.db"
)
@asks
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


@operations_app.command(
    epilog="Example: contextengine archive --dry-run --store var/contextengine.db"
)
@asks
def archive(
    where: Where,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would go, and move nothing.")
    ] = False,
    json: Json = False,
) -> None:
    """Bring the sessions into object storage that archive.rules let go, and erase the objects that
    are needed no more.

    For a store that no server has open, or that several may have open: a running one does it by
    itself every archive.interval.
    """
    from contextengine_server.cli.store import archive as work

    run(work(where, dry_run, json))


@operations_app.command(epilog="Example: contextengine backup /backups/monday.db")
@asks
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


@operations_app.command(epilog="Example: contextengine restore /backups/monday.db --replace")
@asks
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


@operations_app.command(epilog="Example: contextengine health --address 127.0.0.1:50051")
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
    server_name: Annotated[
        str,
        typer.Option(
            help="Speak TLS, and look for this name in the certificate. Default: the address.",
            show_default=False,
        ),
    ] = "",
    cert: Annotated[
        Path | None,
        typer.Option(
            help="Speak TLS, and show this certificate (PEM) to a server that asks for one.",
            show_default=False,
        ),
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="The private key of --cert (PEM).", show_default=False)
    ] = None,
    config: ConfigFile = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for the answer.")] = 5.0,
) -> None:
    """Ask a server whether it serves, by grpc.health.v1, which needs no token. The exit status is 0
    only where it does."""
    from contextengine_server.cli.health import Trust, check_health

    state = check_health(address, service, Trust(tls, ca, server_name, cert, key), config, timeout)
    print(state)
    if state != "SERVING":
        raise typer.Exit(1)


@operations_app.command(epilog="Example: contextengine version")
def version() -> None:
    """Print the versions of the server and of what it stands on."""
    from contextengine_server.cli.output import print_facts
    from contextengine_server.cli.settings import versions

    print_facts(versions())
