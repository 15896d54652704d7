"""How plugins for PyClaw are asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from inspect import isawaitable
from pathlib import Path
from typing import Any

import msgspec

from ..companion import Conversation
from ..rewrite import ChatMessage, RewriteRequest, text_of
from .host import EngineHost
from .kept import AtWork


class PyclawSession(msgspec.Struct, eq=False):
    """A plugin at work for a session."""

    plugin: Any
    state: Any
    at_work: AtWork | None
    seen: list[ChatMessage] = []
    """The list that it was given last."""

    def working(self) -> AbstractContextManager[None]:
        """While it is asked for something."""
        return self.at_work.working() if self.at_work is not None else nullcontext()


class PyclawHost(EngineHost):
    """Asks a plugin for PyClaw. Such plugins have no tools."""

    def __init__(
        self, make: Callable[[], Any], state: Callable[[str], Any], plugin: str, folder: Path
    ) -> None:
        """`make`: one for a session, of its own; `state`: what it may keep of that in memory;
        `plugin`, `folder`: whose it is."""
        self.make, self.state = make, state
        self._plugin, self._folder = plugin, folder

    async def begin(self, session_id: str, told: Conversation) -> PyclawSession:
        """See EngineHost. Compactions are counted on, since plugins call what they keep by that
        number."""
        made = PyclawSession(None, self.state(session_id), None)
        if told.chunks is not None:
            made.at_work = AtWork(told.chunks, self._plugin, self._folder)
        made.state.compaction_count = told.compactions
        with made.working():
            made.plugin = self.make()
            await made.plugin.bootstrap(made.state)
        return made

    async def compact(
        self, engine: PyclawSession, request: RewriteRequest
    ) -> list[ChatMessage] | None:
        """See EngineHost. It is shown what is new since it was asked last, and asked for a list;
        where it leaves the list as it is, for the one that it would assemble."""
        with engine.working():
            return await _compacted(engine, request)

    async def status(self, engine: PyclawSession) -> Mapping[str, object]:
        """See EngineHost."""
        says = getattr(engine.plugin, "get_status", None)
        with engine.working():
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
            with engine.working():
                await told(engine.state, messages)

    async def end(self, engine: PyclawSession) -> None:
        """See EngineHost."""


async def _compacted(engine: PyclawSession, request: RewriteRequest) -> list[ChatMessage] | None:
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
