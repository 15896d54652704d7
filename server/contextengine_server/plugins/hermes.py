"""The class that engines for Hermes are written against, for those who write one here.

    from contextengine_server.plugins.hermes import ContextEngine

A plugin that imports it as `agent.context_engine` gets this one where Hermes is not installed. What
its members mean is Hermes's own (its developer guide, "Context Engine Plugins"); which of them are
asked here, and what becomes of the answers, is in docs/plugins.md.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any

REQUIRED = ("name", "update_from_response", "should_compress", "compress")
"""What an engine cannot be without."""


class ContextEngine(ABC):
    """An engine that compacts a list of messages."""

    last_prompt_tokens: int = 0
    last_completion_tokens: int = 0
    last_total_tokens: int = 0
    threshold_tokens: int = 0
    context_length: int = 0
    compression_count: int = 0
    threshold_percent: float = 0.75
    protect_first_n: int = 3
    protect_last_n: int = 6
    emit_automatic_compaction_status: bool = True

    @property
    @abstractmethod
    def name(self) -> str:
        """The engine's id."""

    @abstractmethod
    def update_from_response(self, usage: dict[str, Any]) -> None:
        """Told how large the prompt is, before it is asked."""

    @abstractmethod
    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """True where it wants to compact."""

    def should_compress_info(self, prompt_tokens: int | None = None) -> tuple[bool, str | None]:
        """The same, and why not where something keeps it from that."""
        return self.should_compress(prompt_tokens), None

    @abstractmethod
    def compress(
        self,
        messages: list[dict[str, Any]],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
        force: bool = False,
        memory_context: str = "",
    ) -> list[dict[str, Any]]:
        """The list, compacted."""

    def should_compress_preflight(self, messages: list[dict[str, Any]]) -> bool:
        """False."""
        return False

    def should_defer_preflight_to_real_usage(self, rough_tokens: int) -> bool:
        """False."""
        return False

    def has_content_to_compress(self, messages: list[dict[str, Any]]) -> bool:
        """True."""
        return True

    def prune_tool_results_only(
        self, messages: list[dict[str, Any]], current_tokens: int | None = None
    ) -> tuple[list[dict[str, Any]], int]:
        """The same list. Not asked here: results are made shorter by engines of the server."""
        return messages, 0

    def select_context(
        self,
        request_messages: list[dict[str, Any]],
        *,
        conversation_messages: list[dict[str, Any]] | None = None,
        incoming_message: dict[str, Any] | None = None,
        budget_tokens: int = 0,
    ) -> list[dict[str, Any]] | None:
        """None. Not asked here: what is shown is the server's affair."""
        return None

    def on_turn_complete(  # noqa: B027
        self, messages: list[dict[str, Any]], usage: dict[str, Any] | None = None, **more: Any
    ) -> None:
        """Nothing. Not asked here."""

    def pending_compression_operation(self, messages: list[dict[str, Any]]) -> str | None:
        """None. Not asked here."""
        return None

    def get_automatic_compaction_status_message(
        self, *, phase: str, default_message: str, **context: Any
    ) -> str | None:
        """The default. Not asked here: nothing is said in a chat."""
        return default_message if self.emit_automatic_compaction_status else None

    def on_session_start(self, session_id: str, **known: Any) -> None:  # noqa: B027
        """Nothing."""

    def on_session_end(self, session_id: str, messages: list[dict[str, Any]]) -> None:  # noqa: B027
        """Nothing."""

    def on_session_reset(self) -> None:
        """Its counters begin anew."""
        self.last_prompt_tokens = self.last_completion_tokens = self.last_total_tokens = 0
        self.compression_count = 0

    def update_model(
        self,
        model: str,
        context_length: int,
        base_url: str = "",
        api_key: str = "",
        provider: str = "",
        api_mode: str = "",
    ) -> None:
        """The threshold follows the window."""
        self.context_length = context_length
        self.threshold_tokens = int(context_length * self.threshold_percent)

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """None."""
        return []

    def handle_tool_call(self, name: str, args: dict[str, Any], **more: Any) -> str:
        """There is no such tool."""
        return json.dumps({"error": f"Unknown context engine tool: {name}"})

    def get_status(self) -> dict[str, Any]:
        """What hosts show."""
        used = max(0, self.last_prompt_tokens)
        share = min(100, used / self.context_length * 100) if self.context_length else 0
        return {
            "last_prompt_tokens": used,
            "threshold_tokens": self.threshold_tokens,
            "context_length": self.context_length,
            "usage_percent": share,
            "compression_count": self.compression_count,
        }
