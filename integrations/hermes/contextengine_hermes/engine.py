"""The context engine that Hermes loads (its `ContextEngine`).

Compaction is the service's. What Hermes reads of an engine is kept here: the tokens of the last
reply, the threshold, the window, the count. While the service is away nothing is dropped: a
compaction is reported as aborted, which Hermes shows, and the conversation goes on unchanged.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from agent.context_engine import ContextEngine

from contextengine import ContextEngineError
from contextengine.formats import FormatError
from contextengine.overflow import SHARE
from contextengine.types import Usage

from .conversation import TELL_S, Conversation
from .review import reviews
from .rows import Row
from .service import Service, service

_log = logging.getLogger(__name__)
Answer = TypeVar("Answer")

NAME = "contextengine"
SHOWN = 0.5
"""The share of the threshold that a compacted list has: Hermes appends to it until the next
compaction, and each begins the provider's cache anew."""
DEFERRED = "deferred to real usage"
"""Why a verdict waits, in ShouldCompact's word."""
_USAGE = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "total_tokens",
)
TROUBLE = (ContextEngineError, FormatError)
"""What a turn survives."""


class ContextengineEngine(ContextEngine):
    """contextengine, as Hermes calls an engine. One for each agent."""

    def __init__(self, shared: Callable[[], Service] = service) -> None:
        self._shared = shared
        self._conversation: Conversation | None = None
        self._model = ""
        self.last_prompt_tokens = 0
        self.last_completion_tokens = 0
        self.last_total_tokens = 0
        self.last_real_prompt_tokens = 0
        self.threshold_tokens = 0
        self.context_length = 0
        self.compression_count = 0
        self.awaiting_real_usage_after_compression = False
        self._last_compress_aborted = False
        self._last_summary_error: str | None = None
        self._last_compression_made_progress = False

    def __deepcopy__(self, memo: dict[int, Any]) -> ContextengineEngine:
        """Hermes copies the registered engine for each agent: a new conversation, the same
        service."""
        return type(self)(self._shared)

    @property
    def name(self) -> str:
        """What Hermes' settings name it by."""
        return NAME

    # Sessions.

    def on_session_start(self, session_id: str, **more: Any) -> None:
        """A conversation begins, or goes on under another id after a compaction."""
        before = self._conversation
        key = more.get("conversation_id") or ""
        now = self._shared().conversation(session_id, str(key))
        self._conversation = now
        self._model = str(more.get("model") or self._model)
        if more.get("boundary_reason") == "compression" and before is not None:
            self._told(before.taken, None)
        old = more.get("old_session_id")
        goes_on = more.get("boundary_reason") == "compression" and old and old != session_id
        now.begin(
            model=self._model,
            window=self.context_length,
            continues=self._shared().conversation(str(old)) if goes_on else None,
        )

    def on_session_end(self, session_id: str, messages: list[Row]) -> None:
        """A conversation ends for now: what is not stored is stored."""
        if not session_id or reviews():
            return
        ended = self._shared().conversation(session_id)
        if ended.proposing:  # said amid a compaction, of the list before it, which is stored
            return
        if messages:
            self._told(lambda: ended.record(messages), None)
        client = self._shared().client
        self._told(lambda: client.end_session(ended.ref, timeout=TELL_S), None)

    def on_session_reset(self) -> None:
        """Another conversation follows, which on_session_start names."""
        super().on_session_reset()
        self.last_real_prompt_tokens = 0
        self.awaiting_real_usage_after_compression = False

    def bind_session_state(self, session_db: object = None, session_id: str = "") -> None:
        """The agent goes on in another session (`/branch`, `/resume`), which Hermes says by this
        alone. session_db: where Hermes writes its sessions down."""
        before = self._conversation
        if before is not None and session_id and before.ref.session_id != session_id:
            self.on_session_start(session_id)

    def update_model(
        self,
        model: str,
        context_length: int,
        base_url: str = "",
        api_key: str = "",
        provider: str = "",
        api_mode: str = "",
    ) -> None:
        """Another model is called from now on."""
        super().update_model(model, context_length, base_url, api_key, provider, api_mode)
        self._model = model
        conversation, client = self._conversation, self._shared().client
        if conversation is None:
            return
        self._told(
            lambda: client.update_model(
                conversation.ref, model=model, window=context_length, timeout=TELL_S
            ),
            None,
        )

    # Compaction.

    def update_from_response(self, usage: dict[str, Any]) -> None:
        """What the provider billed for a reply; with nothing in it for one that did not say."""
        self.awaiting_real_usage_after_compression = False
        conversation, client = self._conversation, self._shared().client
        if usage:
            self.last_prompt_tokens = int(usage.get("prompt_tokens") or 0)
            self.last_completion_tokens = int(usage.get("completion_tokens") or 0)
            self.last_total_tokens = int(usage.get("total_tokens") or 0)
            self.last_real_prompt_tokens = self.last_prompt_tokens
        if conversation is None:
            return
        billed = _billed(usage)
        self._told(
            lambda: client.report_usage(conversation.ref, usage=billed, timeout=TELL_S), None
        )

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Whether a compaction is due. False while the service is away: it could make none."""
        return self._due(prompt_tokens)

    def should_compress_preflight(self, messages: list[Row]) -> bool:
        """The same before a call, over a list."""
        conversation = self._conversation
        if conversation is None:
            return False
        found = self._told(lambda: conversation.judge(messages), None)
        return found is not None and found.should_compact

    def should_defer_preflight_to_real_usage(self, rough_tokens: int) -> bool:
        """Whether an estimate is to be passed over: the provider has not said yet what the last
        compaction made of the prompt."""
        conversation = self._conversation
        if conversation is None:
            return False
        found = self._told(lambda: conversation.due(rough_tokens, preflight=True), None)
        return found is not None and found.reason == DEFERRED

    def has_content_to_compress(self, messages: list[Row]) -> bool:
        """Whether `/compress` has anything to do."""
        conversation = self._conversation
        if conversation is None:
            return True
        found = self._told(lambda: conversation.judge(messages), None)
        return found is None or found.has_content

    def compress(
        self,
        messages: list[Row],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
        force: bool = False,
        memory_context: str = "",
    ) -> list[Row]:
        """The list to go on with. The same list where there is nothing to do, or where the service
        is away: then `_last_compress_aborted` says so, which Hermes shows."""
        self._last_compress_aborted, self._last_summary_error = False, None
        self._last_compression_made_progress = False
        conversation = self._conversation
        if conversation is None:
            return messages
        room = int(self.threshold_tokens * SHOWN)
        if current_tokens and not force:
            # Where no compaction was due, the provider refused the list for its length.
            room = min(room or current_tokens, current_tokens // SHARE)
        try:
            made = conversation.compact(
                messages,
                tokens=current_tokens,
                room=room,
                focus=focus_topic or "",
                force=force,
                memory_context=memory_context,
            )
        except TROUBLE as error:
            _log.warning("contextengine: nothing was compacted: %s", error)
            self._last_compress_aborted, self._last_summary_error = True, str(error)
            return messages
        if made.changed:
            self.compression_count += 1
            self._last_compression_made_progress = True
        return made.rows if made.changed else messages

    # Tools.

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """The tools by which the model finds what is no longer shown."""
        shared = self._shared()
        ref = (self._conversation or shared.conversation("tools")).ref
        found = self._told(lambda: shared.client.list_tools(ref, timeout=TELL_S), None)
        return [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": json.loads(tool.input_schema_json or b'{"type":"object"}'),
            }
            for tool in (found.tools if found is not None else ())
        ]

    def handle_tool_call(self, name: str, args: dict[str, Any], **more: Any) -> str:
        """Runs such a tool; JSON, an error too."""
        conversation = self._conversation
        if conversation is None:
            return json.dumps({"error": "there is no conversation yet"})
        messages = more.get("messages")
        if messages:
            self._told(lambda: conversation.record(messages), None)
        try:
            reply = self._shared().client.call_tool(
                conversation.ref, name, arguments_json=json.dumps(args).encode()
            )
        except ContextEngineError as error:
            return json.dumps({"error": str(error)})
        return str(reply.result_json, "utf-8")

    def get_status(self) -> dict[str, Any]:
        """What Hermes shows of an engine, and what the service keeps of the conversation."""
        said: dict[str, Any] = super().get_status()
        conversation, client = self._conversation, self._shared().client
        if conversation is None:
            return said
        found = self._told(lambda: client.get_status(conversation.ref, timeout=TELL_S), None)
        if found is None:
            return {**said, "service": "away"}
        return {
            **said,
            "service": "there",
            "engine": found.engine.id,
            "stored_messages": found.message_count,
        }

    def _due(self, tokens: int | None) -> bool:
        conversation = self._conversation
        if conversation is None:
            return False
        found = self._told(lambda: conversation.due(tokens), None)
        if found is None:
            return False
        if found.threshold_tokens:
            self.threshold_tokens = found.threshold_tokens
        return bool(found.should_compact)

    def _told(self, call: Callable[[], Answer], otherwise: Answer | None) -> Answer | None:
        """A call that a turn survives."""
        try:
            return call()
        except TROUBLE as error:
            _log.warning("contextengine: %s", error)
            return otherwise


def _billed(usage: Mapping[str, Any]) -> Usage:
    told = {name: usage[name] for name in _USAGE if usage.get(name) is not None}
    if "input_tokens" not in told and usage.get("prompt_tokens") is not None:
        told["input_tokens"] = usage["prompt_tokens"]
    if "output_tokens" not in told and usage.get("completion_tokens") is not None:
        told["output_tokens"] = usage["completion_tokens"]
    return Usage(**{name: int(value) for name, value in told.items()})
