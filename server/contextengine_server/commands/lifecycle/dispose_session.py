"""DisposeSession: what is held of a session in memory is let go."""

from __future__ import annotations

import msgspec

from contextengine_server.commands.turn.reply_cache import ReplyCache
from contextengine_server.session.address import Addresses, Ref
from contextengine_server.session.sessions import SessionCache


class DisposeSession(msgspec.Struct, frozen=True):
    """Frees memory."""

    addresses: Addresses
    cache: SessionCache
    replies: ReplyCache

    async def run(self, tenant: str, ref: Ref) -> bool:
        """True where something was held and is let go; a session in use stays."""
        scope = (await self.addresses.find(tenant, ref)).scope
        self.replies.forget(scope)
        return self.cache.drop(scope)
