"""A context as `messages` of OpenAI Chat Completions.

What the form cannot say: reasoning, whether a tool failed, pictures in tool results, the name of a
harness's own role, and whether one text stood alone or in a list of one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Self

from ..call_ids import CallIdFormat
from ..fragments import Fragment, JsonObject, extended, fragment_of, listed, more_of, own_item
from ..media import IMAGES, data_url, is_provider_file, is_web_address, resolved
from ..model import ChatRole, File, Image, Item, Opaque, Part, Reasoning, Text, ToolCall
from ..placeholders import placeholder
from ..provider import ProviderTask, Rendered
from ..render_state import RenderState, write_items
from ..text import dumped
from ..tool_pairs import Lost, PairedMessage

DIALECT = "openai.chat"
_OWN = {ChatRole.USER: ("input_audio",), ChatRole.ASSISTANT: ("refusal",)}
"""Vendor's items that have a place, by the role."""
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def render(task: ProviderTask) -> Rendered:
    """The messages. The system prompt leads them; `system_json` stays empty."""
    state = write_items(task, DIALECT, lambda: _State(task.call_ids))
    leading = (
        [dumped({"role": "system", "content": task.instructions})] if task.instructions else []
    )
    return Rendered(listed([*leading, *state.entries]), losses=state.losses)


class _State(RenderState):
    def __init__(self, call_ids: CallIdFormat) -> None:
        super().__init__(call_ids)
        self.entries: list[bytes] = []

    def fork(self) -> Self:
        twin = super().fork()
        twin.entries = [*self.entries]
        return twin

    def write(self, index: int, message: PairedMessage, names: Sequence[str]) -> None:
        fragment = message.made((DIALECT, names), _written, names)
        self.entries.append(fragment.json)
        if fragment.lost:
            self.lose(index, fragment.lost)


def _written(message: PairedMessage, names: Sequence[str]) -> Fragment:
    item = message.item
    lost: list[Lost] = []
    written: JsonObject = {"role": item.role.value}
    if item.name and _NAME.fullmatch(item.name):
        written["name"] = item.name
    parts = [shown for part in message.parts if (shown := _part(part, item, lost)) is not None]
    content = _content(parts)
    if item.role is not ChatRole.ASSISTANT:
        return fragment_of([written | {"content": content}], lost)
    refusals = [str(part.get("refusal")) for part in parts if part.get("type") == "refusal"]
    texts = [part for part in parts if part.get("type") != "refusal"]
    if refusals:
        written |= {"content": _content(texts) if texts else None, "refusal": "\n".join(refusals)}
    else:
        written["content"] = content if parts or not message.answers else None
    calls, outputs = [], []
    for answered, name in zip(message.answers, names, strict=True):
        calls.append(_call(answered.call, name, item))
        if answered.result.is_error:
            lost.append(("that the tool failed: the form has no place for it", "C6"))
        text = "".join(_result_text(part, lost) for part in answered.result.parts)
        output: JsonObject = {"role": "tool", "tool_call_id": name, "content": text}
        if item.dialect == DIALECT and answered.result.name:
            output["name"] = answered.result.name
        outputs.append(output)
    return fragment_of([written | ({"tool_calls": calls} if calls else {}), *outputs], lost)


def _content(parts: list[JsonObject]) -> str | list[JsonObject]:
    if not parts:
        return ""
    alone = len(parts) == 1 and parts[0].keys() == {"type", "text"}
    return str(parts[0]["text"]) if alone else parts


def _part(part: Part, item: Item, lost: list[Lost]) -> JsonObject | None:
    match part:
        case Text():
            return extended({"type": "text", "text": part.text}, part, item, DIALECT)
        case ToolCall():
            return None
        case Reasoning():
            lost.append(("reasoning", "C7"))
            return None
        case Opaque() if part.format == DIALECT and item.dialect == DIALECT:
            own = own_item(part)
            if own is not None and own["type"] in _OWN.get(item.role, ()):
                return own
    if item.role is not ChatRole.USER:
        lost.append(("a medium outside the user's message: a line in its place", "C7"))
        return {"type": "text", "text": placeholder(part)}
    shown = _medium(part) if isinstance(part, Image | File) else None
    if shown is not None:
        return extended(shown, part, item, DIALECT)
    what = "a vendor's item" if isinstance(part, Opaque) else "a medium that the form cannot show"
    lost.append((f"{what}: a line in its place", "C7"))
    return {"type": "text", "text": placeholder(part)}


def _medium(part: Image | File) -> JsonObject | None:
    medium = resolved(part)
    if isinstance(medium, Image) and (
        is_web_address(medium) or (medium.mime in IMAGES and medium.data)
    ):
        detail = {"detail": medium.detail} if medium.detail in ("auto", "low", "high") else {}
        url = medium.uri if medium.data is None else data_url(medium)
        return {"type": "image_url", "image_url": {"url": url, **detail}}
    if isinstance(medium, File) and (is_provider_file(medium) or medium.data):
        name = {"filename": medium.name} if medium.name else {}
        where = {"file_id": medium.uri} if medium.data is None else {"file_data": data_url(medium)}
        return {"type": "file", "file": {**name, **where}}
    return None


def _result_text(part: Part, lost: list[Lost]) -> str:
    if isinstance(part, Text):
        return part.text
    lost.append(("a medium in a tool's result: a line in its place", "C6"))
    return placeholder(part)


def _call(call: ToolCall, name: str, item: Item) -> JsonObject:
    if more_of(call, item, DIALECT).get("type") == "custom":
        custom = {
            "id": name,
            "custom": {"name": call.name, "input": call.arguments},
            "type": "custom",
        }
        return extended(custom, call, item, DIALECT)
    function = {"name": call.name, "arguments": call.arguments}
    return extended({"id": name, "type": "function", "function": function}, call, item, DIALECT)
