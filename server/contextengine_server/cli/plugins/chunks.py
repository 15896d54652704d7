"""What the command of `plugins` does that works on the store."""

from __future__ import annotations

from msgspec.structs import asdict

from contextengine_server.cli.connection import Where, settings_of
from contextengine_server.cli.output import CommandFailed, print_json, size
from contextengine_server.cli.store import opened

DAY_MS = 86_400_000


async def prune(where: Where, days: float, tenant: str, json: bool) -> None:
    """Erases the chunks of sessions that nothing was written of for so many days, of a tenant or
    (empty) of all, and prints what went and what is left. Raises CommandFailed."""
    if where.address:
        raise CommandFailed("prune works on the store and not on a server: give --store", 2)
    async with opened(settings_of(where).store.url, "stop that server first") as store:
        gone = await store.chunks.prune(store.clock_ms() - round(days * DAY_MS), tenant)
        left = await store.chunks.totals(tenant)
    if json:
        print_json({"erased": asdict(gone), "left": asdict(left)})
        return
    print(
        f"{gone.chunks:,} chunks of {gone.sessions:,} sessions erased ({size(gone.bytes)}); left"
        f" are {left.chunks:,} of {left.sessions:,} sessions ({size(left.bytes)})"
    )
