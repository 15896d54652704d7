"""How plugins for PyClaw are asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import isawaitable
from typing import Any

import msgspec

from ..companion import Conversation
from ..rewrite import ChatMessage, RewriteRequest, text_of
from .host import EngineHost


class PyclawSession(msgspec.Struct, eq=False):
    """A plugin at work for a session."""

    plugin: Any
    state: Any
    seen: list[ChatMessage] = []
    """The list that it was given last."""


class PyclawHost(EngineHost):
    """Asks a plugin for PyClaw. Such plugins have no tools."""

    def __init__(self, make: Callable[[], Any], state: Callable[[str], Any]) -> None:
        """`make`: one for a session, of its own; `state`: what it may keep of that."""
        self.make, self.state = make, state

    async def begin(self, session_id: str, told: Conversation) -> PyclawSession:
        """See EngineHost. Compactions are counted on, since plugins call what they keep by that
        number."""
        plugin, state = self.make(), self.state(session_id)
        state.compaction_count = told.compactions
        await plugin.bootstrap(state)
        return PyclawSession(plugin, state)

    async def compact(
        self, engine: PyclawSession, request: RewriteRequest
    ) -> list[ChatMessage] | None:
        """See EngineHost. It is shown what is new since it was asked last, and asked for a list;
        where it leaves the list as it is, for the one that it would assemble."""
        plugin, state, messages = engine.plugin, engine.state, list(request.messages)
        await plugin.ingest(_new(engine.seen, messages), state)
        engine.seen = list(messages)
        result = await plugin.compact(list(messages), state, max_tokens=request.available)
        answer: list[ChatMessage] = result.messages
        if answer == messages:
            assembled: list[ChatMessage] = await plugin.assemble(state)
            return assembled or None
        state.compaction_count += 1
        await plugin.on_compact_complete(result, state)
        return _with_summary(messages, answer, getattr(result, "summary", None) or "")

    async def status(self, engine: PyclawSession) -> Mapping[str, object]:
        """See EngineHost."""
        says = getattr(engine.plugin, "get_status", None)
        said = says(engine.state) if says is not None else {}
        told: Mapping[str, object] = await said if isawaitable(said) else said
        return told

    async def ended(
        self,
        engine: PyclawSession,
        session_id: str,
        messages: list[ChatMessage],
        *,
        emptied: bool,
    ) -> None:
        """See EngineHost."""
        told = getattr(engine.plugin, "on_session_end", None)
        if told is not None:
            await told(engine.state, messages)

    async def end(self, engine: PyclawSession) -> None:
        """See EngineHost."""


def _new(seen: Sequence[ChatMessage], messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """What stands behind the last message of an earlier list; all where that is not there."""
    for index in range(len(messages) - 1, -1, -1):
        if seen and messages[index] == seen[-1]:
            return list(messages[index + 1 :])
    return list(messages)


def _with_summary(
    messages: Sequence[ChatMessage], answer: list[ChatMessage], summary: str
) -> list[ChatMessage]:
    """The answer with the summary where the first message is missing, unless a message has it."""
    is_list = isinstance(answer, list) and all(isinstance(one, dict) for one in answer)
    if not summary or not is_list or any(summary in text_of(one) for one in answer):
        return answer
    same = 0
    while same < min(len(answer), len(messages)) and answer[same] == messages[same]:
        same += 1
    return [*answer[:same], {"role": "assistant", "content": summary}, *answer[same:]]
