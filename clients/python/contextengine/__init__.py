"""Client of contextengine, the service that decides what a language model sees.

    from contextengine import Client, user

    with Client() as client:
        session = client.session(agent_id="support", session_id="case-1")
        context = session.assemble(ingest=[user("Where is my order?")])
        reply = call_model(context.messages)
        session.after_turn([reply])

`AsyncClient` is the same for asyncio. Messages, enums and requests are in `contextengine.types`,
typed errors in `contextengine.errors`, conversions from and to provider formats in
`contextengine.formats`.
"""

from .aio import AsyncClient
from .aio_conversation import AsyncConversation, AsyncConversations
from .aio_feed import AsyncFeed
from .aio_mirror import AsyncMirror
from .aio_session import AsyncSession
from .aio_transport import AsyncStream
from .batching import batches
from .client import Client
from .conversation import Conversation, Conversations
from .deltas import Assembly, DeltaMismatch
from .errors import ContextEngineError
from .feed import Feed
from .ids import new_id, with_ids
from .messages import assistant, system, text_of, tool_call, tool_result, user
from .mirror import Mirror
from .naming import name_by_content
from .runtime import Lending
from .session import Session
from .transport import Stream
from .types import Message, SessionRef

__all__ = [
    "Assembly",
    "AsyncClient",
    "AsyncConversation",
    "AsyncConversations",
    "AsyncFeed",
    "AsyncMirror",
    "AsyncSession",
    "AsyncStream",
    "Client",
    "ContextEngineError",
    "Conversation",
    "Conversations",
    "DeltaMismatch",
    "Feed",
    "Lending",
    "Message",
    "Mirror",
    "Session",
    "SessionRef",
    "Stream",
    "assistant",
    "batches",
    "name_by_content",
    "new_id",
    "system",
    "text_of",
    "tool_call",
    "tool_result",
    "user",
    "with_ids",
]
