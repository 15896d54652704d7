"""A context as `system` and `messages` of Anthropic.

What the form cannot say: instructions in the middle (shown as the user's text), harnesses' own
roles, arguments that are no object, empty texts, names of participants, and messages of one role
that stood side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import msgspec

from ..call_ids import CallIdFormat
from ..fragments import FRAGMENT_BYTES, JsonObject, extended, listed, object_of, own_item
from ..media import IMAGES, encoded, is_provider_file, is_web_address, resolved
from ..model import (
    ChatRole,
    File,
    Image,
    Item,
    Loss,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from ..placeholders import placeholder
from ..provider import OPENER, ProviderTask, Rendered, made_here
from ..render_state import LEADING, RenderState, write_items
from ..tool_pairs import Lost, PairedMessage
from .blocks import RoleTurn, block_of, merged, turn_of
from .cache_control import place

DIALECT = "anthropic.messages"
PROVIDERS = ("anthropic",)
"""Names of the provider, by which reasoning is known to be its own."""


class MessageTurns(msgspec.Struct, frozen=True):
    """What becomes of a message: what it says, and the results behind its calls."""

    own: RoleTurn
    answers: RoleTurn
    lost: tuple[Lost, ...]

    @property
    def size(self) -> int:
        """Bytes in memory, about."""
        return self.own.size + self.answers.size + FRAGMENT_BYTES


def render(task: ProviderTask) -> Rendered:
    """`system` as blocks, the messages by turns of the two roles, cache breakpoints on what
    stays."""
    provider, model = task.provider, task.model
    state = write_items(
        task, (DIALECT, provider, model), lambda: _State(task.call_ids, provider, model)
    )
    groups, losses = state.groups, state.losses
    if groups and groups[0][0].role == "assistant":
        groups.insert(0, [turn_of("user", [block_of(_text(OPENER))])])
        losses.append(
            Loss(-1, "the list begins with the model: a line of the user stands before it", "A2")
        )
    texts = [*([task.instructions] if task.instructions.strip() else []), *state.texts]
    system = [turn_of("system", [block_of(_text(text)) for text in texts])] if texts else []
    turns = [group[0] if len(group) == 1 else merged(group) for group in groups]
    limit = 4 if task.breakpoints is None else task.breakpoints
    place(system, turns, state.summaries, limit, long=task.keep_long)
    blocks = system[0].json if system else b""
    return Rendered(listed([turn.json for turn in turns]), blocks, "\n\n".join(texts), losses)


class _State(RenderState):
    def __init__(self, call_ids: CallIdFormat, provider: str, model: str) -> None:
        super().__init__(call_ids)
        self._provider, self._model = provider, model
        self._leads, self._role = True, ""
        self.texts: list[str] = []
        """The session's own leading instructions."""
        self.groups: list[list[RoleTurn]] = []
        """What stands side by side in one role."""
        self.summaries = 0
        """How many of the first group's blocks are summaries."""

    def fork(self) -> Self:
        twin = super().fork()
        twin.texts = [*self.texts]
        twin.groups = [*self.groups[:-1], *([*group] for group in self.groups[-1:])]
        return twin

    def write(self, index: int, message: PairedMessage, names: Sequence[str]) -> None:
        item, role = message.item, self._role
        self._leads = self._leads and item.role in LEADING
        if self._leads:
            self.texts += [
                part.text for part in message.parts if isinstance(part, Text) and part.text.strip()
            ]
            return
        # Thinking begins a turn; behind another message of the model it would stand in the middle
        # of one.
        begins = message.sealed and role != "assistant"
        kept = begins and made_here(item, PROVIDERS, self._provider, self._model)
        shown = message.made((DIALECT, kept, names), _shown, names, kept)
        if shown.lost:
            self.lose(index, shown.lost)
        for turn in (shown.own, shown.answers) if names else (shown.own,):
            if turn.role == role and turn.blocks:
                self.groups[-1].append(turn)
            elif turn.blocks:
                self.groups.append([turn])
                role = turn.role
        self._role = role
        if item.summary is not None and len(self.groups) == 1:
            self.summaries = sum(len(turn.blocks) for turn in self.groups[0])


def _shown(message: PairedMessage, names: Sequence[str], kept: bool) -> MessageTurns:
    lost: list[Lost] = []
    item = message.item
    if item.role not in (ChatRole.USER, ChatRole.ASSISTANT):
        lost.append((f"a {item.role.value} message in the middle: the user's text", "A1"))
    blocks = _thinking(message, lost, kept)
    calls = [at for at, part in enumerate(message.parts) if isinstance(part, ToolCall)]
    if calls and any(not isinstance(part, ToolCall) for part in message.parts[calls[0] :]):
        lost.append(("what stood behind a call: before it here", "A6"))
    blocks += [block for part in message.parts if (block := _block(part, item, lost)) is not None]
    results: list[JsonObject] = []
    for answered, name in zip(message.answers, names, strict=True):
        given, whole = object_of(answered.call.arguments)
        if not whole:
            lost.append(("arguments that are not a JSON object: carried as text", "A8"))
        use: JsonObject = {
            "type": "tool_use",
            "id": name,
            "name": answered.call.name,
            "input": given,
        }
        blocks.append(extended(use, answered.call, item, DIALECT))
        results.append(_result(answered.result, name, item, lost))
    if not blocks:
        lost.append(("a message without content", "A13"))
    speaker = "assistant" if item.role is ChatRole.ASSISTANT else "user"
    said_here, answers = (
        turn_of(speaker, map(block_of, blocks)),
        turn_of("user", map(block_of, results)),
    )
    return MessageTurns(said_here, answers, tuple(lost))


def _result(result: ToolResult, name: str, item: Item, lost: list[Lost]) -> JsonObject:
    inner = [_result_part(part, item, lost) for part in result.parts]
    content: Any = [block for block in inner if block is not None]
    if len(content) == 1 and content[0].keys() == {"type", "text"}:
        content = content[0]["text"]
    made: JsonObject = {"type": "tool_result", "tool_use_id": name}
    made |= {"content": content} if content else {}
    return made | ({"is_error": True} if result.is_error else {})


def _thinking(message: PairedMessage, lost: list[Lost], kept: bool) -> list[JsonObject]:
    """All of a message's thinking, unaltered and in order, or none of it (rule A10)."""
    parts = [part for part in message.parts if isinstance(part, Reasoning)]
    if not parts:
        return []
    first_other = next(
        (at for at, part in enumerate(message.parts) if not isinstance(part, Reasoning)), len(parts)
    )
    if (
        not kept
        or first_other < len(parts)
        or any(not (part.signature or part.redacted) for part in parts)
    ):
        lost.append(("thinking: another model's, unsigned, or not at the beginning", "A9"))
        return []
    if len(parts) == len(message.parts):
        lost.append(("thinking that produced nothing", "A9"))
        return []
    made = []
    for part in parts:
        if part.redacted:
            made.append(
                {"type": "redacted_thinking", "data": part.redacted.decode("utf-8", "replace")}
            )
        else:
            signature = part.signature.decode("utf-8", "replace")
            made.append({"type": "thinking", "thinking": part.text, "signature": signature})
    return made


def _block(part: Part, item: Item, lost: list[Lost]) -> JsonObject | None:
    match part:
        case ToolCall() | Reasoning():
            return None
        case Text():
            if part.text.strip():
                return extended(_text(part.text), part, item, DIALECT)
            if part.text:
                lost.append(("a text of white space alone", "A13"))
            return None
        case Opaque() if (
            part.format == DIALECT and item.dialect == DIALECT and (own := own_item(part))
        ):
            return own
    if item.role is ChatRole.ASSISTANT or not isinstance(part, Image | File):
        lost.append(("a part that has no place in this message: a line instead", "A14"))
        return _text(placeholder(part))
    return _medium(part, item, lost)


def _result_part(part: Part, item: Item, lost: list[Lost]) -> JsonObject | None:
    if isinstance(part, Text):
        return _text(part.text) if part.text else None
    if isinstance(part, Image | File):
        return _medium(part, item, lost)
    lost.append(("a vendor's item in a tool's result: a line instead", "A14"))
    return _text(placeholder(part))


def _medium(part: Image | File, item: Item, lost: list[Lost]) -> JsonObject:
    medium = resolved(part)
    source = _source(medium) if medium is not None else None
    if source is None:
        lost.append((f"a medium of type {part.mime!r}: a line in its place", "A14"))
        return _text(placeholder(part))
    title = {"title": part.name} if isinstance(part, File) and part.name else {}
    kind = "image" if isinstance(part, Image) else "document"
    return extended({"type": kind, "source": source, **title}, part, item, DIALECT)


def _source(medium: Image | File) -> JsonObject | None:
    if is_web_address(medium):
        return {"type": "url", "url": medium.uri}
    if is_provider_file(medium):
        return {"type": "file", "file_id": medium.uri}
    if medium.data is None:
        return None
    if medium.mime in (IMAGES if isinstance(medium, Image) else ("application/pdf",)):
        return {"type": "base64", "media_type": medium.mime, "data": encoded(medium.data)}
    if isinstance(medium, File) and medium.mime == "text/plain":
        return {
            "type": "text",
            "media_type": medium.mime,
            "data": medium.data.decode("utf-8", "replace"),
        }
    return None


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}
