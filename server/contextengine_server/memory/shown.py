"""What a request is shown of memory, read as it was at a moment that the session names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.memory.prompt import LOOKED_AT, MemoryPrompt, memory_addition
from contextengine_server.memory.rules import SHOWN_KINDS, MemoryRules
from contextengine_server.store.agent_facts import AgentFact
from contextengine_server.store.protocols import AgentMemory

_SHARE = 8
"""Of the room for messages memory takes at most this part. What a host gives is always shown."""


class ShownMemory(msgspec.Struct, frozen=True):
    """Memory for the addition to the system prompt. Which facts it shows is settled by a moment: so
    it stays as it is while facts are found, and is the same after a restart."""

    store: AgentMemory
    rules: MemoryRules | None
    """None: nothing is remembered, and the sections of hosts alone are shown."""

    async def texts(
        self, asked: MemoryPrompt, scope: Scope, as_of_ms: int, *, open_to_tools: bool
    ) -> tuple[str, ...]:
        """What may be said of memory, the longest first: with facts, with the tool alone, with
        neither. `open_to_tools`: the session may search memory."""
        rules, newest = self.rules, list[AgentFact]()
        if rules is None or not open_to_tools:
            asked = replace(asked, tools=frozenset())
        elif asked.searches and rules.shown and as_of_ms and scope.complete:
            kinds = [kind.value for kind in SHOWN_KINDS if kind in rules.kinds]
            newest = await self.store.newest_facts(
                scope.tenant, scope.agent, kinds, as_of_ms=as_of_ms, limit=LOOKED_AT
            )
        shown = rules.shown if rules is not None else 0
        bare = memory_addition(asked, (), 0)
        sections = memory_addition(replace(asked, tools=frozenset()), (), 0)
        found = memory_addition(asked, newest, shown) if newest else bare
        return tuple(dict.fromkeys((found, bare, sections)))


def fitting(texts: Sequence[str], count: Callable[[str], int], room: int) -> str:
    """The longest of them that takes at most an eighth of the room; the last where none does."""
    for text in texts[:-1]:
        if count(text) * _SHARE <= room:
            return text
    return texts[-1] if texts else ""
