"""A context as `messages` of OpenAI Chat Completions.

What the form cannot say: reasoning, whether a tool failed, pictures in tool results, the name of a harness's own role, and
whether one text stood alone or in a list of one.
"""

from __future__ import annotations

import json
import re

from ..describing import placeholder
from ..model import Call, File, Image, Item, Loss, Opaque, Part, Reasoning, Role, Text
from ..naming import CallIds
from ..pairing import Said
from ..rendering import Json, ProviderTask, Rendered, media_url, more_of, said_of

DIALECT = "openai.chat"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def render(task: ProviderTask) -> Rendered:
    """The messages. The system prompt leads them; `system` stays empty."""
    losses: list[Loss] = []
    leading, rest = said_of(task, losses)
    ids = CallIds(losses)
    messages: list[Json] = []
    if task.instructions:
        messages.append({"role": "system", "content": task.instructions})
    for said in (*leading, *rest):
        messages += _written(said, ids, losses)
    return Rendered(messages, losses=losses)


def _written(said: Said, ids: CallIds, losses: list[Loss]) -> list[Json]:
    item = said.item
    written: Json = {"role": item.role.value}
    if item.name and _NAME.fullmatch(item.name):
        written["name"] = item.name
    parts = [shown for part in said.parts if (shown := _part(part, said, losses)) is not None]
    content = _content(parts)
    if item.role is not Role.ASSISTANT:
        return [written | {"content": content}]
    refusals = [part["refusal"] for part in parts if part["type"] == "refusal"]
    texts = [part for part in parts if part["type"] != "refusal"]
    if refusals:
        written |= {"content": _content(texts) if texts else None, "refusal": "\n".join(refusals)}
    else:
        written["content"] = content if parts or not said.answers else None
    if not said.answers:
        return [written]
    calls, outputs = [], []
    for answered in said.answers:
        name = ids.name(answered.call.id, answered.key, said.index)
        calls.append(_call(answered.call, name, item))
        if answered.result.is_error:
            losses.append(Loss(said.index, "that the tool failed: the form has no place for it", "C6"))
        text = "".join(_result_text(part, said, losses) for part in answered.result.parts)
        output: Json = {"role": "tool", "tool_call_id": name, "content": text}
        if item.dialect == DIALECT and answered.result.name:
            output["name"] = answered.result.name
        outputs.append(output)
    return [written | {"tool_calls": calls}, *outputs]


def _content(parts: list[Json]) -> str | list[Json]:
    if not parts:
        return ""
    alone = len(parts) == 1 and parts[0].keys() == {"type", "text"}
    return str(parts[0]["text"]) if alone else parts


def _part(part: Part, said: Said, losses: list[Loss]) -> Json | None:
    item = said.item
    more = more_of(part, item, DIALECT)
    match part:
        case Text():
            return {"type": "text", "text": part.text, **more}
        case Call():
            return None
        case Reasoning():
            losses.append(Loss(said.index, "reasoning", "C7"))
            return None
        case Opaque() if part.format == DIALECT and item.dialect == DIALECT:
            opened: Json = json.loads(part.json)
            return opened
    if item.role is not Role.USER:
        losses.append(Loss(said.index, "a medium outside the user's message: a line in its place", "C7"))
        return {"type": "text", "text": placeholder(part)}
    match part:
        case Image():
            detail = {"detail": part.detail} if part.detail in ("auto", "low", "high") else {}
            return {"type": "image_url", "image_url": {"url": media_url(part), **detail}, **more}
        case File():
            name = {"filename": part.name} if part.name else {}
            where = {"file_id": part.uri} if part.data is None else {"file_data": media_url(part)}
            return {"type": "file", "file": {**name, **where}, **more}
    losses.append(Loss(said.index, "a vendor's item: a line in its place", "C7"))
    return {"type": "text", "text": placeholder(part)}


def _result_text(part: Part, said: Said, losses: list[Loss]) -> str:
    if isinstance(part, Text):
        return part.text
    losses.append(Loss(said.index, "a medium in a tool's result: a line in its place", "C6"))
    return placeholder(part)


def _call(call: Call, name: str, item: Item) -> Json:
    more = more_of(call, item, DIALECT)
    if more.get("type") == "custom":
        return {"id": name, "custom": {"name": call.name, "input": call.arguments}, **more}
    return {
        "id": name,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
        **more,
    }
