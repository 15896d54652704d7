"""`serve`: the settings, the refusals, the ready line."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from contextengine_server.cli.connection import event_loop
from contextengine_server.cli.output import CommandFailed
from contextengine_server.health.collector import resting, spare
from contextengine_server.telemetry.logs import get_logger

if TYPE_CHECKING:
    from contextengine_server.app import App
    from contextengine_server.config.settings import Settings

REFUSED = 2
"""The exit status where the server may not start: something must be set first."""


PASSING = 75
"""The exit status where the server cannot start now and may soon, as sysexits.h has it
(EX_TEMPFAIL): its port or its store is another process's still, or its disk is full. Whoever starts
it tries again."""


def serve(config: Path | None, flags: dict[str, Any]) -> None:
    """Serves until SIGTERM or SIGINT. Raises CommandFailed where it may not start, saying what to
    set: with status 2, or 75 where that may pass."""
    with resting():
        _start(config, flags)


def _start(config: Path | None, flags: dict[str, Any]) -> None:
    from contextengine_server.config.lint import config_lint
    from contextengine_server.config.load import SettingsError, load_settings
    from contextengine_server.telemetry.logs import configure_logging

    try:
        settings = load_settings(config, flags)
    except SettingsError as error:
        raise CommandFailed("not started:\n" + _lines(map(str, error.problems)), REFUSED) from error
    # Errors of other groups leave a server that can be asked what is wrong.
    found = [
        f for f in config_lint(settings) if f.status == "error" and f.name.startswith("server.")
    ]
    if found:
        raise CommandFailed(
            "not started:\n" + _lines(f"{f.name}: {f.found}. {f.advice}" for f in found), REFUSED
        )
    logs = settings.telemetry.logs
    configure_logging(logs.level, json=logs.format == "json")
    started = False

    def ready(address: str) -> None:
        nonlocal started
        started = True
        _ready(settings, address)

    try:
        event_loop(_serve(settings, ready, lambda: load_settings(config, flags)))
    except Exception as error:
        text = refusal(error)
        if started or text is None:
            raise
        status = PASSING if _passes(error) else REFUSED
        raise CommandFailed(f"not started: {text}", status) from error


async def _serve(
    settings: Settings, ready: Callable[[str], None], read: Callable[[], Settings]
) -> NoReturn:
    """Serves until SIGTERM or SIGINT, then drains and ends the process. `ready` is told the address
    once calls are answered; at SIGHUP `read` reads the settings again."""
    from contextengine_server.app import running
    from contextengine_server.health import interpreter

    log = get_logger("contextengine.app")
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with running(settings, ends=True) as app:
        spare()
        interpreter.serve()
        loop.add_signal_handler(signal.SIGHUP, _reload, app, read)
        ready(app.address)
        await stop.wait()
        log.info("draining", grace_s=settings.server.drain_grace.total_seconds())
    log.info("closed")
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    # At once: the port is still open, and a loop that ends like any other would cancel the calls
    # that came last.
    os._exit(0)


def _reload(app: App, read: Callable[[], Settings]) -> None:
    """Takes credentials and certificates of the settings as they are now into force; all else waits
    for a restart."""
    from contextengine_server.api.pipeline.auth import ConfigurationError
    from contextengine_server.app import server_options
    from contextengine_server.config.load import SettingsError

    log = get_logger("contextengine.app")
    try:
        settings = read()
        app.server.reload(server_options(settings))
    except (SettingsError, ConfigurationError) as error:
        log.error("not_reloaded", why=str(error))
        return
    auth = settings.auth
    log.info(
        "reloaded",
        tokens=len(auth.tokens),
        issuers=len(auth.jwt),
        certificates=len(auth.certificates),
        tls=settings.server.tls.enabled,
    )


def refusal(error: BaseException) -> str | None:
    """Why a server could not start, where that is something to set or mend; None where it is a
    defect."""
    from contextengine_server.api.pipeline.auth import ConfigurationError
    from contextengine_server.engines.registration import InvalidEngine
    from contextengine_server.errors import UnknownEngine
    from contextengine_server.store.errors import StoreRefused
    from contextengine_server.tokens import CorruptRanks

    match error:
        case UnknownEngine():
            return f"{error.text}. Set engine.default to one of them"
        case StoreRefused():
            return f"store.url: {error}"
        case ConfigurationError() | InvalidEngine():
            return str(error)
        case CorruptRanks():
            return f"{error}; install the package again"
        case OSError():
            return f"{error.filename or 'the system'}: {error.strerror or error}"
    return None


def _passes(error: BaseException) -> bool:
    """True where a server that could not start may do so later with the same settings."""
    from contextengine_server.api.pipeline.auth import AddressInUse
    from contextengine_server.store.errors import StoreInUse

    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)
    return isinstance(error, (AddressInUse, StoreInUse))


def parse_settings(pairs: list[str]) -> dict[str, Any]:
    """`path=value` pairs by path; values are YAML. Raises CommandFailed."""
    if not pairs:
        return {}
    import yaml  # late: most servers are started without

    flags = {}
    for pair in pairs:
        path, separator, value = pair.partition("=")
        if not separator or not path.strip():
            raise CommandFailed(
                f"--set {pair}: must be path=value, such as engine.default=legacy", REFUSED
            )
        try:
            flags[path.strip()] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise CommandFailed(
                f"--set {path}: the value is not valid YAML: {error}", REFUSED
            ) from error
    return flags


def _ready(settings: Settings, address: str) -> None:
    from contextengine_server.plugins.stores import kind_of

    auth = settings.auth
    who = "no tokens: every caller is tenant `default`"
    if auth.jwt or auth.certificates:
        who = f"callers by {auth.told}"
    elif auth.tokens:
        who = f"callers by token, {len(auth.tokens)} known"
    how = "TLS" if settings.server.tls.enabled else "plaintext"
    place = kind_of(settings.store.url).place(settings.store.url)
    print(f"ready on {address} ({how}; {who}; store {place})")
    sys.stdout.flush()


def _lines(problems: Any) -> str:
    return "\n".join(f"  {problem}" for problem in problems)
