"""Commands that work on a store that no server has open: `vacuum` and `prune`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from contextengine_server.cli.connection import Where, settings_of
from contextengine_server.cli.output import CommandFailed, print_json, print_table
from contextengine_server.cli.serve import refusal

if TYPE_CHECKING:
    from contextengine_server.commands.sessions.prune import Outdated
    from contextengine_server.store.protocols import Store
    from contextengine_server.store.rows import SessionHead


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


async def vacuum(where: Where) -> None:
    """Vacuums the store of the settings, and prints what it took before and after. Raises
    CommandFailed."""
    from contextengine_server.plugins.stores import kind_of

    if where.address:
        raise CommandFailed("vacuum works on the store and not on a server: give --store", 2)
    url = settings_of(where).store.url
    async with opened(url, "a running server gives space back by itself") as store:
        before = (await store.health()).facts.get("bytes", "")
        await store.vacuum()
        after = (await store.health()).facts.get("bytes", "")
    print(f"{kind_of(url).place(url)}: {before} bytes before, {after} after")


async def prune(where: Where, dry_run: bool, json: bool) -> None:
    """Erases what the rules of the settings let go from their store, and prints it. Raises
    CommandFailed."""
    from contextengine_server.app import retention_rules_of
    from contextengine_server.commands.sessions.prune import Prune
    from contextengine_server.session.sessions import now_ms

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

        done = await Prune(store, rules, now_ms, erase).run(dry_run=dry_run)
    _print_pruned(done, dry_run, json)


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
