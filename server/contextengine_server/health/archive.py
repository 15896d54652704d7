"""The doctor's look at the archive: whether it answers, what it holds, what is left to erase."""

from __future__ import annotations

from contextengine_server.archive.cold_room import ColdRoom
from contextengine_server.archive.objects import ObjectsUnavailable
from contextengine_server.health.checks import ERROR, OK, WARNING, Check
from contextengine_server.store.errors import StoreUnavailable

_NAME = "archive"
_DAMAGED = (
    "Put the objects that the log names back from another version or a copy of the bucket, or"
    " delete their sessions."
)


async def archive_checks(room: ColdRoom) -> list[Check]:
    """None where there is no archive and no session is in one."""
    try:
        totals = await room.totals()
    except StoreUnavailable:
        return []  # the store says so itself
    held = f"{totals.sessions:,} sessions in {totals.bytes:,} bytes"
    if totals.doomed:
        held += f", {totals.doomed:,} objects to be erased"
    if room.objects is None:
        if not totals.sessions and not totals.doomed:
            return []
        found = f"it holds {held}, and archive.url is not set: they cannot come back"
        return [Check(_NAME, ERROR, found, "Set archive.url to the bucket that they are in.")]
    try:
        await room.probe()
    except ObjectsUnavailable as error:
        advice = "Look at the bucket, the way to it and the credentials (docs/archive.md)."
        return [Check(_NAME, ERROR, f"it cannot be used: {error}; it holds {held}", advice)]
    if room.counts.damaged:
        found = f"{room.counts.damaged} times an object was damaged or missing; it holds {held}"
        return [Check(_NAME, WARNING, found, _DAMAGED)]
    return [Check(_NAME, OK, f"it answers, and holds {held}")]
