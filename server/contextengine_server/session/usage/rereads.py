"""Calls that the model makes as it had before, told to those who watch: each as it arrives, by the
calls in memory alone.

After Comis's re-read detector (packages/agent/src/context-engine/reread-detector.ts), which looks
at the newest message where it is the model's, and reads the whole session for it each time.
"""

from __future__ import annotations

from contextengine_server.context.message import Entry
from contextengine_server.context.view import View
from contextengine_server.telemetry.events import Events
from contextengine_server.telemetry.meters import Meters

REREAD = "context:reread"
"""The name is that of Comis (docs/pipeline.md#what-is-seen-of-it)."""
MAX_TOOLS, MAX_NAME = 10, 64
"""Of the tools so many are named, each by so many characters."""


def tell_rereads(view: View, entry: Entry, events: Events, meters: Meters) -> None:
    """Tells of the calls of a message that was just stored, where the session had some before."""
    if view.asked is None:
        before = (one for one in view.entries() if one.sequence < entry.sequence)
        view.asked = {asked for one in before for asked in one.traits.asked}
    traits = entry.traits
    pairs = zip(traits.asked, traits.tools, strict=True)
    again = [tool for asked, tool in pairs if asked in view.asked]
    view.asked.update(traits.asked)
    if again:
        meters.changes["reread"].value += 1
        tools = [" ".join(tool.split())[:MAX_NAME] for tool in dict.fromkeys(again)]
        events.emit(
            REREAD,
            *view.scope,
            revision=entry.created,
            counts={"rereads": len(again)},
            attributes={"tools": ",".join(tools[:MAX_TOOLS])},
        )
