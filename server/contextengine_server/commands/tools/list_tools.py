"""ListTools: what a session's engine offers to the model."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from contextengine_server.recall.model_tools.definitions import TOOLS, Tool
from contextengine_server.session.address import Addresses, Ref
from contextengine_server.session.selection import Selection


class ListTools(msgspec.Struct, frozen=True):
    """Lists tools."""

    addresses: Addresses
    selection: Selection

    async def run(self, tenant: str, ref: Ref) -> Sequence[Tool]:
        """The tools of the engine that serves the session."""
        address = await self.addresses.find(tenant, ref)
        engine = (await self.selection.engine_for(address.scope)).engine
        return [TOOLS[name] for name in engine.tools.names]
