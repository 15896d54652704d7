"""Doctor: says what is wrong and what to do. The same checks on the command line and over gRPC."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from contextengine_server.config.lint import config_lint
from contextengine_server.config.settings import Settings
from contextengine_server.engines.patterns import ROW
from contextengine_server.engines.registration import InvalidEngine
from contextengine_server.engines.registry import Registry
from contextengine_server.errors import DomainError
from contextengine_server.health.integrity import IntegrityReport
from contextengine_server.session.failures import Failure
from contextengine_server.session.selection import Selection
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Assignment
from contextengine_server.tokens import CorruptRanks, TokenCounter

OK, WARNING, ERROR = "ok", "warning", "error"

MAX_HOLDERS = 5
"""Of those that an engine is assigned to, so many are named."""


class Check(msgspec.Struct, frozen=True):
    """One check: how it is, what was found, what to do."""

    name: str
    status: str
    found: str
    advice: str = ""


def healthy(checks: Sequence[Check]) -> bool:
    """True where nothing is an error."""
    return all(check.status != ERROR for check in checks)


def settings_checks(settings: Settings) -> list[Check]:
    """Checks across settings."""
    checks = [Check(f.name, f.status, f.found, f.advice) for f in config_lint(settings)]
    ignored, stateless = len(settings.sessions.ignored), len(settings.sessions.stateless)
    if ignored or stateless:
        found = f"by pattern sessions are ignored ({ignored}) or stateless ({stateless})"
        checks.append(Check("sessions.treatment", OK, found))
    return checks


async def rank_checks(settings: Settings) -> list[Check]:
    """The token ranks of the package are whole."""
    counter = TokenCounter(settings.tokens.encoding)
    try:
        await counter.warm()
        tokens = counter.count_text("hello world")
    except CorruptRanks as error:
        return [Check("tokens.ranks", ERROR, str(error), "Install the package again.")]
    finally:
        counter.close()
    return [
        Check(
            "tokens.ranks",
            OK,
            f"{settings.tokens.encoding} counts «hello world» as {tokens} tokens",
        )
    ]


async def store_checks(store: Store) -> list[Check]:
    """The store answers and is at the newest schema."""
    health = await store.health()
    facts = "; ".join(f"{name} {value}" for name, value in health.facts.items())
    found = health.detail + (f" ({facts})" if facts else "")
    return [Check("store", OK if health.ok else ERROR, found, health.advice)]


def engine_checks(
    registry: Registry, default: str, failures: Sequence[Failure] = (), *, operator: bool = True
) -> list[Check]:
    """The selected engine resolves, and what failed; what an engine said then is for operators."""
    checks = []
    try:
        engine = registry.configured(default)
        checks.append(
            Check("engine.default", OK, f"{engine.id} {engine.version} ({engine.name}) resolves")
        )
    except DomainError as error:
        checks.append(
            Check("engine.default", ERROR, error.text, "Set engine.default to one of the ids.")
        )
    except InvalidEngine as error:
        checks.append(
            Check("engine.default", ERROR, str(error), "Mend or remove the engine's plugin.")
        )
    for refused in registry.unusable():
        if refused.id != default:
            found = f"{refused.id} of {refused.owner} cannot serve: {refused.why}"
            checks.append(
                Check("engine.unavailable", WARNING, found, "Mend or remove the engine's plugin.")
            )
    for failure in failures:
        found = (
            f"{failure.engine_id} failed {failure.count} times, first at {failure.operation}:"
            f" {failure.reason if operator else failure.how}"
        )
        checks.append(
            Check(
                "engine.failures",
                WARNING,
                found,
                "See the log; assign another engine where it goes on.",
            )
        )
    return checks


_ADVICE = {
    "message_hash": (
        "Put it right from a backup: `contextengine doctor --repair --backup FILE` while no server"
        " has the store open, or import the session again, exported from the backup."
    ),
    "summary_hash": (
        "Ask again with repair, or Compact with redo: they are made again, in place. What a host"
        " wrote comes back from a backup alone: `contextengine doctor --repair --backup FILE`."
    ),
    "missing_sequence": (
        "Restore the database from a backup: what was said cannot be worked out again."
    ),
    "lost_child": (
        "The messages below can still be expanded. Undo the compaction, or restore a backup."
    ),
    "crossed_summaries": (
        "Undo the compaction (Compact with undo_to_generation), and compact again."
    ),
    "stand_in_summary": (
        "Nothing, where the model comes back within a day: they are made again in the background."
        " Later: ask again with repair, or Compact with redo, once the model answers."
    ),
    "private_summary": (
        "Ask again with repair, or Compact with redo: they are made again, in place, without it."
    ),
}


def integrity_checks(report: IntegrityReport) -> list[Check]:
    """What was found in a session's rows, a check for each kind of issue."""
    if not report.issues:
        found = f"{report.messages} messages and {report.summaries} summaries agree with each other"
        return [Check("session.integrity", OK, found)]
    checks = []
    for issue in report.issues:
        name = f"session.integrity.{issue.kind}"
        if issue.mended:
            checks.append(Check(name, OK, f"{issue.found}: mended"))
        elif issue.mendable:
            checks.append(
                Check(name, WARNING, issue.found, "Ask again with repair: it can be mended.")
            )
        else:
            status = WARNING if issue.serves else ERROR
            checks.append(Check(name, status, issue.found, _ADVICE[issue.kind]))
    return checks


async def port_check(address: str) -> list[Check]:
    """The port is free. Asked only where no server of ours runs."""
    host, _, port = address.rpartition(":")
    if address.startswith("unix:"):
        return []
    try:
        infos = await asyncio.get_running_loop().getaddrinfo(
            host.strip("[]") or "127.0.0.1", int(port), type=socket.SOCK_STREAM
        )
        family, kind, protocol, _, place = infos[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError as error:
        advice = (
            "Another program holds the port, or the address is not this machine's: set"
            " server.address."
        )
        return [
            Check(
                "server.port",
                ERROR,
                f"{address} cannot be bound: {error.strerror or error}",
                advice,
            )
        ]
    return [Check("server.port", OK, f"{address} can be bound")]


def assignment_checks(registry: Registry, assigned: Sequence[Assignment]) -> list[Check]:
    """The engines that operators assigned resolve, each, with whom it was assigned to."""
    holders: dict[str, list[str]] = {}
    for row in assigned:
        if row.engine_id:
            holders.setdefault(row.engine_id, []).append(_holder(row))
    checks = []
    for engine_id, whom in sorted(holders.items()):
        try:
            registry.configured(engine_id)
        except (DomainError, InvalidEngine) as error:
            text = error.text if isinstance(error, DomainError) else str(error)
            more = f" and {len(whom) - MAX_HOLDERS} more" if len(whom) > MAX_HOLDERS else ""
            checks.append(
                Check(
                    "engine.assignment",
                    ERROR,
                    f"{engine_id} is assigned to {', '.join(whom[:MAX_HOLDERS])}{more}, which"
                    f" nothing serves: {text}",
                    "Assign an engine that exists, clear the assignment, or install the engine.",
                )
            )
    if holders and not checks:
        count = sum(map(len, holders.values()))
        checks.append(Check("engine.assignment", OK, f"{count} assigned engines resolve"))
    return checks


def _holder(row: Assignment) -> str:
    """Whom an engine is assigned to."""
    within = f" of tenant {row.tenant}"
    if not row.agent and row.session.startswith(ROW):
        return f"sessions by pattern {row.session.removeprefix(ROW)}{within}"
    if row.session:
        return f"session {row.session} of agent {row.agent}{within}"
    return f"agent {row.agent}{within}" if row.agent else f"tenant {row.tenant}"


_TOLD = frozenset({"engine.default", "engine.assignment", "tokens.ranks"})
"""What a runtime may read of these where they are well: the words of what is wrong may name files
of the host."""

_WITHHELD = "what was found is for operators"


def for_runtimes(checks: Sequence[Check]) -> list[Check]:
    """Checks as callers without the role operator may read them: how each is, and what was found
    only where that says nothing of the host, its files, its settings and others' sessions."""
    return [
        check
        if check.name.startswith("session.")
        or check.name == "engine.failures"
        or (check.name in _TOLD and check.status == OK)
        else Check(
            check.name,
            check.status,
            _WITHHELD,
            "" if check.status == OK else "Ask an operator to run `contextengine doctor`.",
        )
        for check in checks
    ]


class Examine(Protocol):
    """All checks of the server."""

    async def __call__(self, tenant: str, *, operator: bool) -> list[Check]:
        """What a tenant may know; `operator`: with what is for operators."""


class Scrubbing(Protocol):
    """What reads everything that is stored."""

    def found(self) -> Check:
        """What it found so far."""


class ServerChecks(msgspec.Struct, frozen=True):
    """All checks of a server, as `Examine` asks for them."""

    settings: Settings
    registry: Registry
    selection: Selection
    store: Store
    more: Callable[[Settings], Sequence[Check]] = lambda settings: ()
    """What else follows from the settings."""
    scrub: Scrubbing | None = None
    archive: Callable[[], Awaitable[Sequence[Check]]] | None = None
    """How the archive is."""

    async def __call__(self, tenant: str, *, operator: bool) -> list[Check]:
        """See Examine."""
        failures = self.selection.failures.of_tenant(tenant)
        default = self.settings.engine.default
        checks = [
            *settings_checks(self.settings),
            *self.more(self.settings),
            *await rank_checks(self.settings),
            *await store_checks(self.store),
            *(await self.archive() if self.archive is not None else ()),
            # It names sessions of all tenants.
            *([self.scrub.found()] if operator and self.scrub is not None else []),
            *engine_checks(self.registry, default, failures, operator=operator),
            *assignment_checks(self.registry, await self.store.assignments(tenant)),
        ]
        return checks if operator else for_runtimes(checks)
