"""A context as `systemInstruction` and `contents` of Gemini.

What the form cannot say: instructions in the middle, harnesses' own roles, arguments that are no
object, whether a result was one text or several, what a medium in a result was besides a line, and
contents of one role that stood side by side.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Self

import msgspec

from ..call_ids import CallIdFormat
from ..fragments import FRAGMENT_BYTES, JsonObject, listed, more_of, object_of
from ..media import encoded, resolved
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
    text_of,
)
from ..placeholders import placeholder
from ..provider import OPENER, ProviderTask, Rendered, made_here
from ..render_state import LEADING, RenderState, write_items
from ..text import dumped
from ..tool_pairs import Lost, PairedMessage

DIALECT = "gemini.content"
PROVIDERS = ("google", "gemini", "google-genai", "vertex", "google-vertex", "vertexai")
"""Names of the provider, by which reasoning is known to be its own."""
STAND_IN = "skip_thought_signature_validator"
"""What Gemini documents for a call whose signature there is none of: history of another model, or
made up."""
INVENTED = "gemini-"
"""Ids of calls that came without one begin so; they are not sent."""

_NEWER = re.compile(r"gemini-(\d+)")


class Content(msgspec.Struct, frozen=True):
    """What stands side by side in one role."""

    role: str
    parts: bytes
    """Joined; empty where there are none."""
    json: bytes
    """As a content."""

    @property
    def size(self) -> int:
        """Bytes in memory, about."""
        return len(self.parts) + len(self.json) + FRAGMENT_BYTES


class MessageContents(msgspec.Struct, frozen=True):
    """What becomes of a message: what it says, and the results behind its calls."""

    own: Content
    answers: Content
    lost: tuple[Lost, ...]

    @property
    def size(self) -> int:
        """Bytes in memory, about."""
        return self.own.size + self.answers.size + FRAGMENT_BYTES


def render(task: ProviderTask) -> Rendered:
    """The contents, what stands side by side in one role merged; results of a turn's calls together
    right behind them."""
    provider, model = task.provider, task.model
    state = write_items(
        task, (DIALECT, provider, model), lambda: _State(task.call_ids, provider, model)
    )
    groups, losses = state.groups, state.losses
    if groups and groups[0][0].role == "model":
        groups.insert(0, [_content("user", dumped({"text": OPENER}))])
        losses.append(
            Loss(-1, "the list begins with the model: a line of the user stands before it", "G3")
        )
    texts = [*([task.instructions] if task.instructions.strip() else []), *state.texts]
    system = dumped({"parts": [{"text": text} for text in texts]}) if texts else b""
    contents = [group[0] if len(group) == 1 else _merged(group) for group in groups]
    return Rendered(
        listed([content.json for content in contents]), system, "\n\n".join(texts), losses
    )


class _State(RenderState):
    def __init__(self, call_ids: CallIdFormat, provider: str, model: str) -> None:
        super().__init__(call_ids)
        self._provider, self._model = provider, model
        # Only the turn that goes on is checked, but a stand-in that came and went would break the
        # cached prefix.
        self._signed = _signs(model)
        self._leads, self._role = True, ""
        self.texts: list[str] = []
        """The session's own leading instructions."""
        self.groups: list[list[Content]] = []
        """What stands side by side in one role."""

    def fork(self) -> Self:
        twin = super().fork()
        twin.texts = [*self.texts]
        twin.groups = [*self.groups[:-1], *([*group] for group in self.groups[-1:])]
        return twin

    def write(self, index: int, message: PairedMessage, names: Sequence[str]) -> None:
        item, role, signed = message.item, self._role, self._signed
        self._leads = self._leads and item.role in LEADING
        if self._leads:
            self.texts += [
                part.text for part in message.parts if isinstance(part, Text) and part.text
            ]
            return
        kept = message.sealed and made_here(item, PROVIDERS, self._provider, self._model)
        shown = message.made((DIALECT, kept, signed, names), _shown, names, kept, signed)
        if shown.lost:
            self.lose(index, shown.lost)
        for content in (shown.own, shown.answers) if names else (shown.own,):
            if content.role == role and content.parts:
                self.groups[-1].append(content)
            elif content.parts:
                self.groups.append([content])
                role = content.role
        self._role = role


def _content(role: str, parts: bytes) -> Content:
    return Content(role, parts, b'{"role":"%b","parts":[%b]}' % (role.encode(), parts))


def _merged(group: Sequence[Content]) -> Content:
    return _content(group[0].role, b",".join([content.parts for content in group]))


def _signs(model: str) -> bool:
    """True for Gemini 3 and newer, which check signatures."""
    found = _NEWER.search(model)
    return found is not None and int(found[1]) >= 3


def _shown(
    message: PairedMessage, names: Sequence[str], kept: bool, signed: bool
) -> MessageContents:
    item = message.item
    lost: list[Lost] = []
    if item.role not in (ChatRole.USER, ChatRole.ASSISTANT):
        lost.append((f"a {item.role.value} message in the middle: the user's text", "G1"))
    parts: list[JsonObject] = []
    responses: list[JsonObject] = []
    answered_as = zip(message.answers, names, strict=True)
    for part in message.parts:
        if not isinstance(part, ToolCall):
            made = _part(part, lost, kept)
            parts += [made] if made is not None else []
            continue
        answered, name = next(answered_as)
        with_id = {} if name.startswith(INVENTED) and item.dialect == DIALECT else {"id": name}
        given, whole = object_of(part.arguments)
        if not whole:
            lost.append(("arguments that are not a JSON object: carried as text", "G7"))
        call: JsonObject = {"functionCall": {**with_id, "name": part.name, "args": given}}
        if part.seal and kept:
            call["thoughtSignature"] = _seal(part)
        elif part.seal:
            lost.append(("a signature of another model", "G9"))
        if signed and not responses and "thoughtSignature" not in call:
            call["thoughtSignature"] = STAND_IN
        parts.append(call)
        response = _response(answered.result, item, lost)
        responses.append({"functionResponse": {**with_id, "name": part.name, "response": response}})
    if not parts:
        lost.append(("a message without content", "G2"))
    speaker = "model" if item.role is ChatRole.ASSISTANT else "user"
    answers = _content("user", dumped(responses)[1:-1])
    return MessageContents(_content(speaker, dumped(parts)[1:-1]), answers, tuple(lost))


def _seal(part: Part) -> str:
    return STAND_IN if part.seal == STAND_IN.encode() else encoded(part.seal)


def _part(part: Part, lost: list[Lost], kept: bool) -> JsonObject | None:
    sealed = {"thoughtSignature": _seal(part)} if part.seal and kept else {}
    match part:
        case Text():
            if not part.text and not sealed:
                return None
            return {"text": part.text, **sealed}
        case Reasoning():
            if not kept or not part.text:
                lost.append(("thoughts of another model", "G9"))
                return None
            return {"text": part.text, "thought": True, **sealed}
        case Image() | File() if (medium := resolved(part)) is not None:
            if medium.data and medium.mime:
                return {
                    "inlineData": {"mimeType": medium.mime, "data": encoded(medium.data)},
                    **sealed,
                }
            if medium.data is None:
                typed = {"mimeType": medium.mime} if medium.mime else {}
                return {"fileData": {**typed, "fileUri": medium.uri}, **sealed}
    lost.append(("a part that has no place here: a line instead", "G2"))
    return {"text": placeholder(part) if isinstance(part, Image | File | Opaque) else ""}


def _response(result: ToolResult, item: Item, lost: list[Lost]) -> JsonObject:
    """A result as an object: `output`, or `error` where the tool failed; an object that came from
    Gemini comes back as it was."""
    if more_of(result, item, DIALECT).get("response") == "object":
        given, whole = object_of(text_of(result.parts))
        if whole:
            return given
    texts = [part.text if isinstance(part, Text) else placeholder(part) for part in result.parts]
    if any(not isinstance(part, Text) for part in result.parts):
        lost.append(("a medium in a tool's result: a line in its place", "G7"))
    return {"error" if result.is_error else "output": "\n".join(texts)}
