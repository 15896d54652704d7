"""What is added to the system prompt: what the engine says of the summaries that are shown; that
something is neither shown nor summarized, with the tool that finds it
(docs/semantics.md#what-stays-and-what-goes); what is known of memory
(docs/memory.md#in-the-system-prompt)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from contextengine_server.context.plan import Plan, Summarized
from contextengine_server.context.view import Summary, View
from contextengine_server.engines.contract import SESSION_SEARCH, Engine
from contextengine_server.memory.shown import ShownMemory
from contextengine_server.session.assembly.assembly import AssembleCall
from contextengine_server.session.encoding import Encoding
from contextengine_server.session.session import Session

LEFT_OUT = "Earlier messages of this conversation are left out here and not summarized."
_FINDERS = ("ctx_search", SESSION_SEARCH)
"""Tools of recall that find a message."""


def addition_of(engine: Engine, summaries: Sequence[Summary], *, left_out: bool) -> str:
    """What is said where these summaries are shown."""
    said = engine.addition(summaries)
    if not left_out:
        return said
    found = left_out_words(engine)
    return f"{said}\n{found}" if said else found


def beneath(memory: str, said: str) -> str:
    """What is said beneath what is said of memory."""
    return f"{memory}\n\n{said}" if said else memory


def left_out_words(engine: Engine) -> str:
    """That something is left out, and the tool of the engine that finds it."""
    finder = next((name for name in engine.tools.names if name in _FINDERS), None)
    return LEFT_OUT if finder is None else f"{LEFT_OUT} Find them with {finder}."


def leaves_out(plan: Plan, view: View) -> bool:
    """True where a step is neither shown nor covered by a summary that is shown."""
    behind = 0
    for segment in plan.segments:
        if isinstance(segment, Summarized):
            first, last = segment.summary.first_step, segment.summary.last_step
        else:
            first, last = segment.first, segment.last
        if first > behind:
            return True
        behind = max(behind, last + 1)
    return behind < view.steps


def kept_for_words(
    engine: Engine, view: View, encoding: Encoding, room: int, *, summaries: bool = True
) -> int:
    """The tokens of a room for items that are kept free for saying that something is left out: from
    the moment on when the room no longer holds all that was ever said, whether something is left
    out then or summaries make room. So nothing has to go, nor comes back, for the words alone.

    `summaries`: whether room is kept for what is said of them, beneath which these words stand; by
    themselves they may cost more.
    """
    if not engine.declared.evicts or view.total <= room:
        return 0
    shown = view.summaries if summaries else ()
    said = encoding.text_tokens(engine.addition(shown))
    return encoding.text_tokens(addition_of(engine, shown, left_out=True)) - said


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
