"""Which server a command asks, and how: the options that all commands share, and the connection
itself."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
import typer

from contextengine_server.cli.output import CommandFailed

if TYPE_CHECKING:
    from contextengine import AsyncClient
    from contextengine_server.config.settings import Settings

T = TypeVar("T")
Command = Callable[..., None]

_PANEL = "Which server"
_PROBE_S = 5.0
"""How long a server may take to accept a connection, and to answer the first call."""


class Where(msgspec.Struct, frozen=True):
    """The server or the store that a command is about."""

    address: Annotated[
        str,
        typer.Option(
            envvar="CONTEXTENGINE_ADDRESS",
            help=(
                "The server to ask. Default: the address of the settings; where no server answers,"
                " the store is opened."
            ),
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = ""
    token: Annotated[
        str,
        typer.Option(
            envvar="CONTEXTENGINE_TOKEN",
            help="The bearer token to show.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = ""
    tls: Annotated[
        bool,
        typer.Option(
            "--tls", help="Speak TLS, trusting the system's authorities.", rich_help_panel=_PANEL
        ),
    ] = False
    ca: Annotated[
        Path | None,
        typer.Option(
            help="Speak TLS, trusting the authorities in this PEM file.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None
    config: Annotated[
        Path | None,
        typer.Option(
            help="The settings to find server and store by. Default: as for serve.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None
    store: Annotated[
        str,
        typer.Option(
            help="Open this store instead of asking a server: a path, or its URL.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = ""


def asks(command: Command) -> Command:
    """Gives a command the options of `Where`, after its own; the command gets them together, as
    `where`."""
    own = inspect.signature(command, eval_str=True)
    added = inspect.signature(Where, eval_str=True).parameters
    parameters = [p for p in own.parameters.values() if p.name != "where"] + list(added.values())

    @functools.wraps(command)
    def run(**given: Any) -> None:
        where = Where(**{name: given.pop(name) for name in added})
        command(where=where, **given)

    # typer reads the options off the signature.
    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    del run.__wrapped__
    return run


class Missing(Enum):
    """What to do where no server answers and the store's file does not exist."""

    REFUSE = "refuse"
    CREATE = "create"
    """Make the store: the command writes."""
    TEMPORARY = "temporary"
    """Use one that is thrown away: the command asks about nothing that is stored."""


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs a command's work. Refusals of the service become CommandFailed."""
    # What gRPC itself would log of a connection that fails, our own message says.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from contextengine import ContextEngineError

    try:
        return event_loop(work)
    except ContextEngineError as error:
        raise CommandFailed(explain(error)) from error
    except KeyboardInterrupt:
        raise CommandFailed("", 130) from None


def event_loop(work: Coroutine[Any, Any, T]) -> T:
    """Runs to the end, on uvloop where there is one."""
    try:
        import uvloop
    except ImportError:  # there is none for Windows
        return asyncio.run(work)
    return uvloop.run(work)


def explain(error: Any) -> str:
    """A refusal as one line: the reason, what is wrong, and what to do."""
    lead = f"{error.reason}: " if error.reason else f"{error.code.name}: "
    wait = f" (try again in {error.retry_after:g} s)" if error.retry_after else ""
    advice = _ADVICE.get(error.reason or error.code.name, "")
    return " ".join(f"{lead}{error.message}{wait}".split()) + (f". {advice}" if advice else "")


_ADVICE = {
    "UNAUTHENTICATED": "Give the token with --token or CONTEXTENGINE_TOKEN.",
    "PERMISSION_DENIED": "Use a token with the role operator.",
    "SESSION_NOT_FOUND": "`contextengine sessions list` shows those that exist.",
    "UNAVAILABLE": "The server went away; see its log, and run the command again.",
    "DEADLINE_EXCEEDED": "The server answers too slowly; look at its log.",
    "DEFECT": "The server's log has more under this id.",
}


@asynccontextmanager
async def connected(where: Where, missing: Missing = Missing.REFUSE) -> AsyncIterator[AsyncClient]:
    """A client of the server that `where` names; where none is named and none runs, of one opened
    on the store."""
    if where.address and where.store:
        raise CommandFailed(
            "--address names a server and --store a database: give one of the two", 2
        )
    if where.address:
        if not await answers(where.address):
            raise CommandFailed(
                f"no server answers at {where.address}: start one with `contextengine serve"
                f" --address {where.address}`, or leave --address (CONTEXTENGINE_ADDRESS) out to"
                " open the store"
            )
        async with _server(where, where.address) as client:
            yield client
        return
    settings = settings_of(where)
    if not where.store and await answers(settings.server.address):
        async with _server(where, settings.server.address) as client:
            yield client
        return
    async with _opened(where, settings, missing) as client:
        yield client


def settings_of(where: Where) -> Settings:
    """The settings that `where` names. Raises CommandFailed."""
    from contextengine_server.config.load import SettingsError, load_settings

    try:
        return load_settings(where.config, {"store.url": where.store or None})
    except SettingsError as error:
        raise CommandFailed(
            "the settings cannot be used: " + "; ".join(map(str, error.problems)), 2
        ) from error


async def answers(address: str) -> bool:
    """Whether anything accepts connections there."""
    try:
        async with asyncio.timeout(_PROBE_S):
            if address.startswith("unix:"):
                _, writer = await asyncio.open_unix_connection(address.removeprefix("unix:"))
            else:
                host, _, port = dialled(address).rpartition(":")
                _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except (OSError, ValueError, OverflowError):
        return False
    writer.close()
    return True


def dialled(address: str) -> str:
    """Where to call a server that listens at `address`: one that listens everywhere is called on
    this machine."""
    host, _, port = address.rpartition(":")
    return {"0.0.0.0": f"127.0.0.1:{port}", "[::]": f"[::1]:{port}"}.get(host, address)


@asynccontextmanager
async def _server(where: Where, address: str) -> AsyncIterator[AsyncClient]:
    """A client of a server that runs. Whatever else listens there is found out soon, not at a
    command's own deadline."""
    from contextengine.errors import DeadlinePassed, Unavailable

    async with _client(where, dialled(address)) as client:
        try:
            await client.engines.list(timeout=_PROBE_S)
        except (DeadlinePassed, Unavailable) as error:
            if error.reason:
                raise
            raise CommandFailed(
                f"what listens at {address} does not answer as a contextengine server"
                f" ({error.message}): does it speak TLS (--tls, --ca), or is it another program"
                " (give --address, or --store to open the database)?"
            ) from error
        yield client


def _client(where: Where, address: str) -> AsyncClient:
    from contextengine import AsyncClient

    try:
        return AsyncClient(
            address,
            token=where.token,
            tls=where.tls and where.ca is None,
            root_certificates=where.ca,
            max_message_bytes=2**31 - 1,
        )
    except (ValueError, OSError) as error:
        raise CommandFailed(str(error)) from error


@asynccontextmanager
async def _opened(where: Where, settings: Settings, missing: Missing) -> AsyncIterator[AsyncClient]:
    """A client of a server in this process, on the settings' store, that only this user can
    reach."""
    from contextengine_server.app import running
    from contextengine_server.config.server import TlsSettings
    from contextengine_server.config.telemetry import TelemetrySettings
    from contextengine_server.plugins.stores import EMPTY, kind_of
    from contextengine_server.store.kinds import Readiness
    from contextengine_server.telemetry.logs import configure_logging

    url = settings.store.url
    kind = kind_of(url)
    # A Unix socket's path has room for about a hundred characters.
    short = len(tempfile.gettempdir()) < 60
    directory = Path(tempfile.mkdtemp(prefix="contextengine-", dir=None if short else "/tmp"))
    try:
        if (await kind.outlook(url)).readiness is Readiness.ABSENT:
            if missing is Missing.REFUSE:
                raise CommandFailed(
                    f"no server answers at {settings.server.address}, and there is no database at"
                    f" {kind.place(url)}: start a server with `contextengine serve`, or name one"
                    " with --address or a store with --store"
                )
            if missing is Missing.TEMPORARY:
                url = EMPTY
        here = {"address": f"unix:{directory}/socket", "transport": "grpcio", "tls": TlsSettings()}
        server = settings.server.model_copy(update=here)
        store = settings.store.model_copy(update={"url": url})
        update = {"server": server, "store": store, "telemetry": TelemetrySettings()}
        configure_logging("error", json=False)
        async with AsyncExitStack() as stack:
            try:
                app = await stack.enter_async_context(running(settings.model_copy(update=update)))
            except Exception as error:
                raise _refused(settings, error) from error
            yield await stack.enter_async_context(_client(Where(token=where.token), app.address))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _refused(settings: Settings, error: Exception) -> Exception:
    """What keeps the store from being opened, as CommandFailed; a defect as it is."""
    from contextengine_server.cli.serve import refusal
    from contextengine_server.store.errors import StoreInUse

    text = refusal(error)
    if text is None:
        return error
    if isinstance(error, StoreInUse):
        text = (
            f"no server answers at {settings.server.address}, but {text}. Name that server with"
            " --address or CONTEXTENGINE_ADDRESS"
        )
    return CommandFailed(text)
