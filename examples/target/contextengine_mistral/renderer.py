"""A context as `messages` of Mistral's chat.

What the form cannot say here: media, reasoning, whether a tool failed, instructions in the middle,
harnesses' own roles, and that a message had both a text and calls, which become two messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from contextengine_server.projection.call_ids import CallIdFormat
from contextengine_server.projection.fragments import Fragment, JsonObject, fragment_of, listed
from contextengine_server.projection.model import (
    ChatRole,
    File,
    Image,
    Loss,
    Opaque,
    Text,
    ToolResult,
)
from contextengine_server.projection.placeholders import placeholder
from contextengine_server.projection.provider import ProviderTask, Rendered
from contextengine_server.projection.render_state import LEADING, RenderState, write_items
from contextengine_server.projection.text import dumped
from contextengine_server.projection.tool_pairs import Lost, PairedMessage

BRIDGE = "[The tools' results were taken in.]"
"""The model's text between results and a message of the user, which Mistral refuses behind
them."""


def render(task: ProviderTask) -> Rendered:
    """The messages. The system prompt leads them."""
    state = write_items(task, "mistral", lambda: _State(task.call_ids))
    system = {"role": "system", "content": task.instructions}
    leading = [dumped(system)] if task.instructions else []
    return Rendered(listed([*leading, *state.entries]), losses=state.losses)


class _State(RenderState):
    """The messages so far."""

    def __init__(self, call_ids: CallIdFormat) -> None:
        super().__init__(call_ids)
        self.entries: list[bytes] = []
        self._leads, self._answered = True, False

    def fork(self) -> Self:
        twin = super().fork()
        twin.entries = [*self.entries]
        return twin

    def write(self, index: int, message: PairedMessage, names: Sequence[str]) -> None:
        role = message.item.role
        self._leads = self._leads and role in LEADING
        if self._answered and role is not ChatRole.ASSISTANT:
            self.entries.append(dumped({"role": "assistant", "content": BRIDGE}))
            self.losses.append(Loss(index, "the user right behind results: a line between", "M2"))
        # What is made of a message knows nothing of its neighbours, so it is made once and kept.
        key = "mistral", self._leads, names
        fragment = message.made(key, _written, self._leads, names)
        if fragment.json:
            self.entries.append(fragment.json)
            self._answered = bool(names)
        self.lose(index, fragment.lost)


def _written(message: PairedMessage, leads: bool, names: Sequence[str]) -> Fragment:
    lost: list[Lost] = []
    speaker = "system" if leads else "user"
    if message.item.role is ChatRole.ASSISTANT:
        speaker = "assistant"
    elif message.item.role in LEADING and not leads:
        lost.append(("instructions in the middle: the user's text", "M1"))
    text = _text(message, lost)
    made: list[JsonObject] = [{"role": speaker, "content": text}] if text else []
    calls: list[JsonObject] = []
    results: list[JsonObject] = []
    for answered, name in zip(message.answers, names, strict=True):
        function = {"name": answered.call.name, "arguments": answered.call.arguments}
        calls.append({"id": name, "type": "function", "function": function})
        content = _result(answered.result, lost)
        results.append({"role": "tool", "tool_call_id": name, "content": content})
    if calls:
        made.append({"role": "assistant", "tool_calls": calls})
    elif not made:
        lost.append(("a message without text", "M4"))
    return fragment_of([*made, *results], lost)


def _text(message: PairedMessage, lost: list[Lost]) -> str:
    lines = []
    for part in message.parts:
        if isinstance(part, Text):
            lines.append(part.text)
        elif isinstance(part, Image | File | Opaque):
            lost.append(("a medium or a vendor's item: a line in its place", "M5"))
            lines.append(placeholder(part))
        elif part.kind == "reasoning":
            lost.append(("reasoning", "M5"))
    return "\n".join(line for line in lines if line.strip())


def _result(result: ToolResult, lost: list[Lost]) -> str:
    if result.is_error:
        lost.append(("that the tool failed", "M5"))
    lines = []
    for part in result.parts:
        if not isinstance(part, Text):
            lost.append(("a medium in a tool's result: a line in its place", "M5"))
        lines.append(part.text if isinstance(part, Text) else placeholder(part))
    return "\n".join(lines)
