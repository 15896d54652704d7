"""ListTools: what a session's engine offers to the model."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from contextengine_server.commands.recall.search_memory import is_child
from contextengine_server.compaction.companions import Companions
from contextengine_server.engines.companion import OwnTool
from contextengine_server.memory.tool import MEMORY_SEARCH
from contextengine_server.recall.model_tools.definitions import TOOLS, Tool
from contextengine_server.session.address import Addresses, Ref
from contextengine_server.session.selection import Selection
from contextengine_server.store.protocols import Heads


class ListTools(msgspec.Struct, frozen=True):
    """Lists tools."""

    addresses: Addresses
    selection: Selection
    store: Heads
    companions: Companions
    remembers: bool
    """There is a memory of what sessions say."""

    async def run(self, tenant: str, ref: Ref) -> Sequence[Tool | OwnTool]:
        """The tools of the engine that serves the session; the search of memory, where the engine
        offers tools at all, and not to children; and what tools it has of its own, unless one of
        these names is taken. Raises EngineFailed."""
        address = await self.addresses.find(tenant, ref)
        engine = (await self.selection.engine_for(address.scope)).engine
        tools: list[Tool | OwnTool] = [TOOLS[name] for name in engine.tools.names]
        if tools and self.remembers:
            head = await self.store.head(address.scope)
            if head is None or not is_child(head):
                tools.append(MEMORY_SEARCH)
        taken = {tool.name for tool in tools}
        own = await self.companions.tools(address.scope, engine)
        return [*tools, *(tool for tool in own if tool.name not in taken)]
