"""`doctor --repair --backup`: damaged messages and summaries of a store that no server has open are
put right from a copy of the database."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import AsyncExitStack, closing
from pathlib import Path

from contextengine_server.api.pipeline.auth import DEFAULT_TENANT
from contextengine_server.cli.connection import Where, settings_of
from contextengine_server.cli.output import CommandFailed
from contextengine_server.cli.store import opened
from contextengine_server.health.backup import MendedSession, mend_from
from contextengine_server.health.checks import ERROR, OK, Check

STOP = "stop that server, or import the session again from an export of the backup"


async def mended_from(where: Where, backup: Path, agent: str, session: str) -> list[Check]:
    """Mends what the backup can mend; a check for each session in which something was damaged.
    Raises CommandFailed."""
    if where.address:
        raise CommandFailed("--backup works on the store and not on a server: give --store", 2)
    settings = settings_of(where)
    tenants = sorted({DEFAULT_TENANT, *(token.tenant for token in settings.auth.tokens)})
    checks: list[Check] = []
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(opened(settings.store.url, STOP))
        copy = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "backup.db"
        _copied(backup, copy)
        from_ = await stack.enter_async_context(opened(str(copy), STOP))
        for tenant in tenants:
            told = await mend_from(store, from_, tenant, agent=agent, session=session)
            checks += [_check(one) for one in told]
    return checks or [Check("store.damaged_rows", OK, "nothing is damaged")]


def _check(one: MendedSession) -> Check:
    name = f"session.{one.scope.agent}.{one.scope.session}"
    found = f"{one.mended} of {one.damaged} damaged rows were mended from the backup"
    if one.mended == one.damaged:
        return Check(name, OK, found)
    return Check(name, ERROR, found, "Try an older backup: this one has not what is missing.")


def _copied(backup: Path, copy: Path) -> None:
    """Copies a database with what is in its log: opening one may upgrade it, and a backup is left
    as it is."""
    try:
        with (
            closing(sqlite3.connect(f"{backup.absolute().as_uri()}?mode=ro", uri=True)) as read,
            closing(sqlite3.connect(copy)) as write,
        ):
            read.backup(write)
    except sqlite3.Error as error:
        raise CommandFailed(f"--backup: {backup} cannot be read: {error}", 2) from error
