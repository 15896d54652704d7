"""`doctor --deep`: the whole store, read from a copy of it, beside a server that has it open."""

from __future__ import annotations

import tempfile
from pathlib import Path

from contextengine_server.cli.connection import Where
from contextengine_server.cli.output import CommandFailed
from contextengine_server.cli.store import copied, opened
from contextengine_server.health.checks import ERROR, OK, Check
from contextengine_server.health.scrub import looked_through


async def deep_checks(where: Where) -> list[Check]:
    """What the database itself finds wrong, and whether every message and every summary is there
    and is what its hash names. Takes as much free disk as the store does. Raises CommandFailed
    where there is no store to read."""
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory) / "copy.db"
        try:
            await copied(where, "doctor --deep", copy)
        except CommandFailed as failure:
            advice = (
                "Restore a backup (`contextengine restore`), or copy it out by Sessions.Export."
            )
            return [Check("store.database", ERROR, failure.text, advice)]
        async with opened(str(copy), "") as store:
            seen = await looked_through(store)
    whole = "the database's own check of all pages and indexes finds nothing"
    return [Check("store.database", OK, whole), seen.check("store.rows")]
