"""`vacuum`: a store that no server has open is written anew."""

from __future__ import annotations

from contextengine_server.cli.connection import Where, settings_of
from contextengine_server.cli.output import CommandFailed
from contextengine_server.cli.serve import refusal


async def vacuum(where: Where) -> None:
    """Vacuums the store of the settings, and prints what it took before and after. Raises
    CommandFailed."""
    from contextengine_server.plugins.stores import kind_of
    from contextengine_server.store.errors import StoreError, StoreInUse
    from contextengine_server.store.kinds import Readiness

    if where.address:
        raise CommandFailed("vacuum works on the store and not on a server: give --store", 2)
    url = settings_of(where).store.url
    kind = kind_of(url)
    outlook = await kind.outlook(url)
    if outlook.readiness is Readiness.ABSENT:
        raise CommandFailed(outlook.found, 2)
    store = kind.store(url)
    try:
        await store.open()
        before = (await store.health()).facts.get("bytes", "")
        await store.vacuum()
        after = (await store.health()).facts.get("bytes", "")
    except Exception as error:
        text = refusal(error) or (str(error) if isinstance(error, StoreError) else None)
        if text is None:
            raise
        advice = (
            "; a running server gives space back by itself" if isinstance(error, StoreInUse) else ""
        )
        raise CommandFailed(f"{text}{advice}") from error
    finally:
        await store.close()
    print(f"{kind.place(url)}: {before} bytes before, {after} after")
