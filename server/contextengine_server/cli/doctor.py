"""`doctor`: asks a running server, or looks at settings, store, ranks, port and engines by
itself."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from contextengine_server.cli.connection import Where, answers, connected, settings_of
from contextengine_server.cli.output import CommandFailed, one_line, print_json, print_table
from contextengine_server.cli.serve import refusal
from contextengine_server.health.checks import ERROR, OK, WARNING, Check, healthy

if TYPE_CHECKING:
    from contextengine_server.config.settings import Settings

_WORDS = {1: OK, 2: WARNING, 3: ERROR}
"""DoctorResponse.Status as we say it."""


class Asked(msgspec.Struct, frozen=True):
    """What a server is asked for besides its checks."""

    session: str
    """Empty: no session."""
    agent: str
    repair: bool
    clear_failures: bool


async def diagnose(
    where: Where,
    session: str,
    agent: str,
    repair: bool,
    clear_failures: bool,
    backup: Path | None,
    json: bool,
    deep: bool = False,
) -> bool:
    """Prints the checks; whether none is an error. `repair`: mends what can be mended in the
    session; with `backup`, damaged messages and summaries of all sessions from that file.
    `clear_failures`: strikes off the failures of engines. `deep`: reads the whole store as well."""
    if backup is not None:
        if not repair:
            raise CommandFailed("--backup needs --repair: nothing is changed without it", 2)
        from contextengine_server.cli.mend import mended_from

        checks = await mended_from(where, backup, agent, session)
        print_checks(checks, f"this command, with {backup}", json)
        return healthy(checks)
    if repair and not session:
        raise CommandFailed("--repair needs --session: name the session to mend", 2)
    asked = Asked(session, agent, repair, clear_failures)
    source, checks = await _checks(where, asked)
    if deep:
        from contextengine_server.cli.deep import deep_checks

        checks = [*checks, *await deep_checks(where)]
    print_checks(checks, source, json)
    return healthy(checks)


def print_checks(checks: Sequence[Check], source: str, json: bool) -> None:
    """A table of checks, or JSON."""
    if json:
        rows = [
            {"name": c.name, "status": c.status, "found": c.found, "advice": c.advice}
            for c in checks
        ]
        print_json({"ok": healthy(checks), "source": source, "checks": rows})
        return
    rows_shown = [(c.status, c.name, one_line(c.found, 200), c.advice) for c in checks]
    print_table(("", "check", "found", "what to do"), rows_shown, title=f"Checked by {source}")


async def _checks(where: Where, asked: Asked) -> tuple[str, list[Check]]:
    if where.address:
        return f"the server at {where.address}", await _asked(where, asked)
    try:
        settings = settings_of(where)
    except CommandFailed as failure:
        advice = (
            "Correct it; docs/configuration.md and `contextengine config show` have every name."
        )
        return "this command", [Check("settings", ERROR, failure.text, advice)]
    if not where.store and await answers(settings.server.address):
        # The server has the settings that it was started with; it may not start with these.
        local = [replace(check, name=f"local.{check.name}") for check in _settled(settings)]
        checks = [*await _asked(where, asked), *local]
        return f"the server at {settings.server.address}", checks
    if asked.session:
        raise CommandFailed(
            "--session needs a running server: start one, or name it with --address", 2
        )
    if asked.clear_failures:
        raise CommandFailed("--clear-failures needs a running server: none answers", 2)
    return "this command: no server answers", await offline_checks(settings)


async def _asked(where: Where, asked: Asked) -> list[Check]:
    from contextengine import SessionRef

    async with connected(where) as client:
        more: dict[str, Any] = {"clear_failures": True} if asked.clear_failures else {}
        if asked.session:
            more["session"] = SessionRef(agent_id=asked.agent, session_id=asked.session)
            more["repair"] = asked.repair
        reply = await client.engines.doctor(**more)
    return [Check(c.name, _WORDS.get(c.status, ERROR), c.found, c.advice) for c in reply.checks]


async def offline_checks(settings: Settings) -> list[Check]:
    """What can be seen without a server: the settings, the address, the database."""
    from contextengine_server.health.checks import port_check, rank_checks

    return [
        *_settled(settings),
        *await port_check(settings.server.address),
        *await rank_checks(settings),
        *await _store_checks(settings),
    ]


def _settled(settings: Settings) -> list[Check]:
    """What follows from the settings alone."""
    from contextengine_server.app import registry_of
    from contextengine_server.health.certificates import certificate_checks
    from contextengine_server.health.checks import engine_checks, settings_checks

    return [
        *settings_checks(settings),
        *_tls_checks(settings),
        *certificate_checks(settings),
        *engine_checks(registry_of(settings), settings.engine.default),
    ]


def _tls_checks(settings: Settings) -> list[Check]:
    """Certificate and key fit together."""
    tls = settings.server.tls
    if not tls.enabled:
        return []
    try:
        # An empty passphrase: an encrypted key is refused at the start, so nobody is asked for one
        # here.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            tls.cert_file, tls.key_file, lambda: ""
        )
    except (ssl.SSLError, OSError) as error:
        found = (
            f"{tls.cert_file} and {tls.key_file} cannot be used together: {error.strerror or error}"
        )
        advice = "Give a PEM certificate chain and its own PEM key without a passphrase."
        return [Check("server.tls.pair", ERROR, found, advice)]
    return [Check("server.tls.pair", OK, "certificate and key belong together")]


async def _store_checks(settings: Settings) -> list[Check]:
    """The database as it is, and what is assigned in it: nothing is made and nothing is
    upgraded."""
    from contextengine_server.api.pipeline.auth import ConfigurationError
    from contextengine_server.app import registry_of
    from contextengine_server.health.archive import archive_checks
    from contextengine_server.health.checks import assignment_checks, store_checks
    from contextengine_server.plugins.stores import kind_of
    from contextengine_server.store.errors import StoreInUse
    from contextengine_server.store.kinds import Readiness
    from contextengine_server.wiring.archive import cold_room_of

    url = settings.store.url
    kind = kind_of(url)
    outlook = await kind.outlook(url)
    if outlook.readiness is Readiness.ABSENT:
        return [Check("store", OK, outlook.found, outlook.advice)]
    if outlook.readiness is Readiness.OLDER:
        return [Check("store.schema", WARNING, outlook.found, outlook.advice)]
    store = kind.store(url)
    try:
        await store.open()
    except Exception as error:
        text = refusal(error)
        if text is None:
            raise
        in_use = isinstance(error, StoreInUse)
        advice = "Talk to that server with --address." if in_use else ""
        return [Check("store", ERROR, text, advice)]
    try:
        registry = registry_of(settings)
        checks = await store_checks(store)
        try:
            room = cold_room_of(settings.archive, store, store.clock_ms)
        except ConfigurationError as error:
            checks.append(Check("archive", ERROR, str(error)))
        else:
            checks += await archive_checks(room)
        # Tenants that a token or a certificate names stand in no setting, so all are asked for.
        return checks + assignment_checks(registry, await store.assignments(None))
    finally:
        await store.close()
