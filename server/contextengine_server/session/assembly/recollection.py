"""What a call is told of memory (docs/memory.md#in-the-system-prompt)."""

from __future__ import annotations

from msgspec.structs import replace

from contextengine_server.engines.contract import Engine
from contextengine_server.memory.shown import ShownMemory
from contextengine_server.session.assembly.assembly import AssembleCall
from contextengine_server.session.session import Session


async def remembering(
    memory: ShownMemory, call: AssembleCall, session: Session, engine: Engine
) -> AssembleCall:
    """The call with what may be said of memory: as it was when the session was made, or compacted
    or emptied last, so that the addition stays what it is meanwhile."""
    head, state = session.head, session.state
    as_of_ms = state.remembered_ms or (head.created_ms if head is not None else 0)
    # What an agent knows is not open to the children that it spawned, nor where an engine offers
    # no tools.
    listens = bool(engine.tools.names) and not state.depth
    texts = await memory.texts(call.memory, session.scope, as_of_ms, open_to_tools=listens)
    return replace(call, memory_texts=texts)
