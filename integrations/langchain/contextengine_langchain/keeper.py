"""What the middleware and the hook share: which session a run is about, what an assembly of it is
asked for, and its conversations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langgraph.config import get_config

from contextengine import AsyncClient, AsyncConversations, Client, Conversations
from contextengine.types import Budget, WindowBudget


class Keeper:
    """The conversations of an agent's runs."""

    def __init__(
        self,
        client: Client | AsyncClient,
        agent_id: str,
        session_id: str | Callable[[], str],
        window: int | None,
    ) -> None:
        # What is removed from a graph's state is meant to be gone.
        self.blocking = (
            Conversations(client, agent_id, whole=True) if isinstance(client, Client) else None
        )
        """None: the client is for asyncio."""
        self.waiting = (
            AsyncConversations(client, agent_id, whole=True)
            if isinstance(client, AsyncClient)
            else None
        )
        """None: the client blocks."""
        self._session_id = session_id
        self._window = window

    def session(self) -> str:
        """Which session the run is about. Empty: none."""
        if self._session_id:
            return self._session_id if isinstance(self._session_id, str) else self._session_id()
        try:
            return str(get_config().get("configurable", {}).get("thread_id") or "")
        except RuntimeError:  # outside of a run
            return ""

    def asked(self, model: Any = None, system: str = "") -> dict[str, Any]:
        """What an assembly is asked for. model: the agent's, if it is known; system: its system
        prompt."""
        parts = WindowBudget()
        profile = getattr(model, "profile", None) or {}
        window = self._window or profile.get("max_input_tokens")
        if window:
            parts.window = int(window)
        if system:
            parts.system_prompt_text = system
        name = getattr(model, "model_name", None) or getattr(model, "model", None)
        named = {"model": name} if isinstance(name, str) and name else {}
        return {"budget": Budget(window=parts), **named}
