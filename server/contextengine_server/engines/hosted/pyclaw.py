"""How plugins for PyClaw are asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ..rewrite import ChatMessage, RewriteRequest, text_of


class PyclawSession(msgspec.Struct, eq=False):
    """A plugin at work for a session."""

    plugin: Any
    state: Any
    seen: list[ChatMessage] = []
    """The list that it was given last."""


class PyclawHost(msgspec.Struct, frozen=True):
    """Asks a plugin for PyClaw."""

    make: Callable[[], Any]
    """Makes one for a session, of its own."""
    state: Callable[[str], Any]
    """Makes what it may keep of a session."""

    async def begin(self, session_id: str) -> PyclawSession:
        """See EngineHost."""
        plugin, state = self.make(), self.state(session_id)
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
