"""Commands that work on the store and not on a server, `backup`, `restore`, `vacuum`, `prune`,
`archive`, and `delete`, which works on either."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from contextengine_server.cli.connection import Where, answers, connected, settings_of
from contextengine_server.cli.output import CommandFailed, print_json, print_table
from contextengine_server.cli.serve import refusal

if TYPE_CHECKING:
    from contextengine_server.commands.sessions.prune import Outdated
    from contextengine_server.context.scope import Scope
    from contextengine_server.store.kinds import StoreKind
    from contextengine_server.store.protocols import Store
    from contextengine_server.store.rows import Deleted, SessionHead


@asynccontextmanager
async def opened(url: str, advice: str) -> AsyncIterator[Store]:
    """A store that nobody else has open, for as long as it is worked on; `advice` is what to do
    where a server has it. Raises CommandFailed, also for what the store refuses meanwhile."""
    from contextengine_server.plugins.stores import kind_of
    from contextengine_server.store.errors import StoreError, StoreInUse
    from contextengine_server.store.kinds import Readiness

    kind = kind_of(url)
    outlook = await kind.outlook(url)
    if outlook.readiness is Readiness.ABSENT:
        raise CommandFailed(outlook.found, 2)
    store = kind.store(url)
    try:
        await store.open()
        yield store
    except Exception as error:
        text = refusal(error) or (str(error) if isinstance(error, StoreError) else None)
        if text is None:
            raise
        more = f"; {advice}" if isinstance(error, StoreInUse) else ""
        raise CommandFailed(f"{text}{more}") from error
    finally:
        await store.close()


async def back_up(where: Where, target: Path, json: bool) -> None:
    """Copies the store of the settings into a file, and prints what the copy holds. Raises
    CommandFailed."""
    place, done = await copied(where, "backup", target)
    _print_copied(f"{place} is copied to {target}", done, json)


async def copied(where: Where, command: str, target: Path) -> tuple[str, dict[str, int]]:
    """Copies the store of the settings into a file; where the store is, and what the copy holds.
    Raises CommandFailed, also where the store is damaged."""
    kind, url = of_settings(where, command)
    with refused():
        return kind.place(url), await kind.back_up(url, target)


async def restore(where: Where, backup: Path, replace: bool, json: bool) -> None:
    """Puts a copy of a backup in the place of the settings' store, and prints what it holds. Raises
    CommandFailed."""
    kind, url = of_settings(where, "restore")
    with refused("stop that server first"):
        done = await kind.restore(url, backup, replace=replace)
    _print_copied(f"{backup} is restored to {kind.place(url)}", done, json)


def of_settings(where: Where, command: str) -> tuple[StoreKind, str]:
    """The store of the settings, its kind and its URL. Raises CommandFailed where a server is
    named."""
    from contextengine_server.plugins.stores import kind_of

    if where.address:
        raise CommandFailed(f"{command} works on the store and not on a server: give --store", 2)
    url = settings_of(where).store.url
    return kind_of(url), url


@contextmanager
def refused(advice: str = "", status: int = 1) -> Iterator[None]:
    """What the store refuses is the command's failure; `advice` is what to do where a server has
    it."""
    from contextengine_server.store.errors import StoreError, StoreInUse

    try:
        yield
    except StoreError as error:
        more = f"; {advice}" if isinstance(error, StoreInUse) and advice else ""
        raise CommandFailed(f"{error}{more}", status) from error


def _print_copied(what: str, done: dict[str, int], json: bool) -> None:
    if json:
        print_json(done)
        return
    print(f"{what}: {', '.join(f'{count:,} {name}' for name, count in done.items())}, verified")


async def vacuum(where: Where) -> None:
    """Vacuums the store of the settings, and prints what it took before and after. Raises
    CommandFailed."""
    kind, url = of_settings(where, "vacuum")
    async with opened(url, "a running server gives space back by itself") as store:
        before = (await store.health()).facts.get("bytes", "")
        await store.vacuum()
        after = (await store.health()).facts.get("bytes", "")
    print(f"{kind.place(url)}: {before} bytes before, {after} after")


async def prune(where: Where, dry_run: bool, json: bool) -> None:
    """Erases what the rules of the settings let go from their store, and prints it. Raises
    CommandFailed."""
    from contextengine_server.commands.sessions.prune import Prune
    from contextengine_server.wiring.limits import retention_rules_of

    if where.address:
        raise CommandFailed("prune works on the store and not on a server: give --store", 2)
    settings = settings_of(where)
    rules = retention_rules_of(settings)
    if not rules:
        raise CommandFailed("there are no rules: set retention.rules", 2)
    advice = "a running server prunes by itself where retention.interval is set"
    async with opened(settings.store.url, advice) as store:

        async def erase(head: SessionHead) -> bool:
            await store.delete(head.scope, expected_revision=head.revision, cascade=False)
            return True

        done = await Prune(store, rules, store.clock_ms, erase).run(dry_run=dry_run)
    _print_pruned(done, dry_run, json)


async def archive(where: Where, dry_run: bool, json: bool) -> None:
    """Brings the sessions into the archive that the rules of the settings let go, and prints them.
    Raises CommandFailed."""
    from contextengine_server.api.pipeline.auth import ConfigurationError
    from contextengine_server.archive.objects import ObjectsUnavailable
    from contextengine_server.wiring.archive import archive_sessions_of, cold_room_of

    kind, url = of_settings(where, "archive")
    settings = settings_of(where).archive
    if not settings.rules:
        raise CommandFailed("there are no rules: set archive.url and archive.rules", 2)
    advice = "a running server archives by itself where archive.interval is set"
    async with opened(url, advice) as store:
        try:
            room = cold_room_of(settings, store, store.clock_ms)
            work = archive_sessions_of(settings, store, room, store.clock_ms)
            done = [one async for one in work.run(dry_run=dry_run)]
        except (ObjectsUnavailable, ConfigurationError) as error:
            raise CommandFailed(f"the archive cannot be used: {error}") from error
    columns = ("tenant", "agent", "session", "bytes", "last write")
    rows = [(*one.head.scope, one.bytes, _time(one.head.updated_ms)) for one in done]
    if json:
        named = [dict(zip(columns, row, strict=True)) for row in rows]
        print_json({"dry_run": dry_run, "sessions": named})
        return
    shown = [(*row[:3], f"{row[3]:,}", row[4]) for row in rows]
    word = "would go" if dry_run else "went"
    print_table(columns, shown, title=f"{len(done)} sessions of {kind.place(url)} {word}")


async def erase(where: Where, tenant: str, agent: str, json: bool) -> None:
    """Erases all of an agent or a tenant, by the server where one answers, else in the store, and
    prints what went. Raises CommandFailed."""
    settings = settings_of(where)
    done = _Gone()
    if where.address or (not where.store and await answers(settings.server.address)):
        from contextengine.types import DeleteRequest

        everything = DeleteRequest.Everything(tenant=tenant, agent_id=agent)
        async with connected(where) as client:
            while done.more:
                reply = await client.sessions.delete(everything_of=everything)
                done.add(
                    len(reply.session_ids),
                    reply.message_count,
                    reply.summary_count,
                    reply.other_row_count,
                    reply.more,
                )
    else:
        from contextengine_server.commands.sessions.erase import DEFAULT_SESSIONS, Erase

        async with opened(settings.store.url, "name that server with --address") as store:

            async def gone(scope: Scope) -> Deleted:
                return await store.delete(
                    scope, expected_revision=None, cascade=True, overwritten=False
                )

            work = Erase(store, gone)
            while done.more:
                part = await work.run(tenant, agent, DEFAULT_SESSIONS)
                done.add(len(part.sessions), part.messages, part.summaries, part.rows, part.more)
    if json:
        print_json({"tenant": tenant, "agent": agent, **done.counts})
        return
    whose = f"agent {agent!r} of tenant {tenant!r}" if agent else f"tenant {tenant!r}"
    counted = ", ".join(
        f"{count:,} {name.replace('_', ' ')}" for name, count in done.counts.items()
    )
    print(f"erased {whose}: {counted}")


class _Gone:
    """What went so far, and whether there is more."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(("sessions", "messages", "summaries", "other_rows"), 0)
        self.more = True

    def add(self, *counts: int) -> None:
        """What a part took away: as many of each, and at last whether there is more."""
        *counted, more = counts
        for name, count in zip(self.counts, counted, strict=True):
            self.counts[name] += count
        self.more = bool(more)


def _print_pruned(done: list[Outdated], dry_run: bool, json: bool) -> None:
    columns = ("tenant", "agent", "session", "limit", "bytes", "last write")
    rows = [(*one.head.scope, one.limit, one.bytes, _time(one.head.updated_ms)) for one in done]
    if json:
        named = [dict(zip(columns, row, strict=True)) for row in rows]
        print_json({"dry_run": dry_run, "sessions": named})
        return
    shown = [(*row[:4], f"{row[4]:,}", row[5]) for row in rows]
    total = sum(one.bytes for one in done)
    word = "would be erased" if dry_run else "erased"
    print_table(columns, shown, title=f"{len(done)} sessions of {total:,} bytes {word}")


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
