"""The service as this process has it: one client for all agents, and their conversations.

Hermes copies the engine for each agent, and a connection cannot be copied: what is shared stands
here.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from functools import cache

from contextengine import Client

from .conversation import Conversation

MOST = 1_000
"""Conversations that are remembered. One that is forgotten is brought by its whole list again."""


class Service:
    """The client and the conversations of a process."""

    def __init__(self, client: Client, agent: str) -> None:
        self.client = client
        self.agent = agent
        self._conversations: OrderedDict[str, Conversation] = OrderedDict()
        self._lock = threading.Lock()

    def conversation(self, session_id: str, session_key: str = "") -> Conversation:
        """The conversation of a session of Hermes."""
        with self._lock:
            known = self._conversations.get(session_id)
            if known is None:
                known = Conversation(self.client, self.agent, session_id, session_key)
                self._conversations[session_id] = known
                if len(self._conversations) > MOST:
                    self._conversations.popitem(last=False)
            self._conversations.move_to_end(session_id)
            return known


@cache
def service() -> Service:
    """That of the environment: CONTEXTENGINE_ADDRESS, CONTEXTENGINE_AGENT, CONTEXTENGINE_TOKEN,
    CONTEXTENGINE_TLS. Connects at the first call."""
    asked = os.environ.get
    client = Client(
        asked("CONTEXTENGINE_ADDRESS", "127.0.0.1:50051"),
        token=asked("CONTEXTENGINE_TOKEN", ""),
        tls=asked("CONTEXTENGINE_TLS", "").lower() in ("1", "true", "yes"),
        retry_for=0,
        breaker=True,
    )
    return Service(client, asked("CONTEXTENGINE_AGENT", "hermes"))
