"""A context as `system` and `messages` of Anthropic.

What the form cannot say: instructions in the middle (shown as the user's text), harnesses' own roles, arguments that are no
object, empty texts, names of participants, and messages of one role that stood side by side.
"""

from __future__ import annotations

import json
from typing import Any

from ..describing import placeholder
from ..model import Call, File, Image, Loss, Opaque, Part, Reasoning, Role, Text
from ..naming import CallIds
from ..pairing import Said
from ..rendering import (
    OPENER,
    Json,
    ProviderTask,
    Rendered,
    encoded,
    made_here,
    more_of,
    object_of,
    said_of,
)
from .caching import place

DIALECT = "anthropic.messages"
IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")


def render(task: ProviderTask) -> Rendered:
    """`system` as blocks, the messages by turns of the two roles, cache breakpoints on what stays."""
    losses: list[Loss] = []
    leading, rest = said_of(task, losses)
    ids = CallIds(losses)
    system = [_text(task.instructions)] if task.instructions.strip() else []
    for said in leading:
        system += [_text(part.text) for part in said.parts if isinstance(part, Text) and part.text.strip()]
    turns: list[tuple[str, list[Json]]] = []
    summaries = 0
    for said in rest:
        _add(turns, said, ids, losses, made_here(task, said.item, "anthropic"))
        if said.item.summary is not None and turns:
            summaries = len(turns[-1][1]) if len(turns) == 1 else summaries
    if turns and turns[0][0] == "assistant":
        turns.insert(0, ("user", [_text(OPENER)]))
        losses.append(Loss(-1, "the list begins with the model: a line of the user stands before it", "A2"))
    messages: list[Json] = [{"role": role, "content": blocks} for role, blocks in turns if blocks]
    place(system, messages, summaries, 4 if task.breakpoints is None else task.breakpoints)
    instructions = "\n\n".join(block["text"] for block in system)
    return Rendered([_plain(message) for message in messages], system or None, instructions, losses)


def _add(
    turns: list[tuple[str, list[Json]]], said: Said, ids: CallIds, losses: list[Loss], kept: bool
) -> None:
    role = "assistant" if said.item.role is Role.ASSISTANT else "user"
    if role == "user" and said.item.role is not Role.USER:
        losses.append(
            Loss(said.index, f"a {said.item.role.value} message in the middle: the user's text", "A1")
        )
    # Thinking begins a turn; behind another message of the model it would stand in the middle of one.
    begins = not turns or turns[-1][0] != "assistant"
    blocks = _thinking(said, losses, kept and begins)
    calls = [at for at, part in enumerate(said.parts) if isinstance(part, Call)]
    if calls and any(not isinstance(part, Call) for part in said.parts[calls[0] :]):
        losses.append(Loss(said.index, "what stood behind a call: before it here", "A6"))
    blocks += [block for part in said.parts if (block := _block(part, said, losses)) is not None]
    results: list[Json] = []
    for answered in said.answers:
        name = ids.name(answered.call.id, answered.key, said.index)
        given, whole = object_of(answered.call.arguments)
        if not whole:
            losses.append(Loss(said.index, "arguments that are no JSON object: carried as text", "A8"))
        more = more_of(answered.call, said.item, DIALECT)
        blocks.append({"type": "tool_use", "id": name, "name": answered.call.name, "input": given, **more})
        inner = [_result_part(part, said, losses) for part in answered.result.parts]
        content: Any = [block for block in inner if block is not None]
        if len(content) == 1 and content[0].keys() == {"type", "text"}:
            content = content[0]["text"]
        result: Json = {"type": "tool_result", "tool_use_id": name}
        result |= {"content": content} if content else {}
        result |= {"is_error": True} if answered.result.is_error else {}
        results.append(result)
    if not blocks:
        losses.append(Loss(said.index, "a message without content", "A13"))
        return
    _join(turns, role, blocks)
    if results:
        _join(turns, "user", results)


def _join(turns: list[tuple[str, list[Json]]], role: str, blocks: list[Json]) -> None:
    # Behind a call only its results may stand, so a message of the model that follows one begins a turn of its own by itself.
    if turns and turns[-1][0] == role:
        turns[-1][1].extend(blocks)
    else:
        turns.append((role, blocks))


def _thinking(said: Said, losses: list[Loss], kept: bool) -> list[Json]:
    """All of a message's thinking, unaltered and in order, or none of it (rule A10)."""
    parts = [part for part in said.parts if isinstance(part, Reasoning)]
    if not parts:
        return []
    first_other = next(
        (at for at, part in enumerate(said.parts) if not isinstance(part, Reasoning)), len(parts)
    )
    if not kept or first_other < len(parts) or any(not (part.signature or part.redacted) for part in parts):
        losses.append(Loss(said.index, "thinking: another model's, unsigned, or not at the beginning", "A9"))
        return []
    if len(parts) == len(said.parts):
        losses.append(Loss(said.index, "thinking that produced nothing", "A9"))
        return []
    made = []
    for part in parts:
        if part.redacted:
            made.append({"type": "redacted_thinking", "data": part.redacted.decode("utf-8", "replace")})
        else:
            signature = part.signature.decode("utf-8", "replace")
            made.append({"type": "thinking", "thinking": part.text, "signature": signature})
    return made


def _block(part: Part, said: Said, losses: list[Loss]) -> Json | None:
    match part:
        case Call() | Reasoning():
            return None
        case Text():
            if part.text.strip():
                return _text(part.text) | more_of(part, said.item, DIALECT)
            if part.text:
                losses.append(Loss(said.index, "a text of white space alone", "A13"))
            return None
        case Opaque() if part.format == DIALECT and said.item.dialect == DIALECT:
            opened: Json = json.loads(part.json)
            return opened
    if said.item.role is Role.ASSISTANT or not isinstance(part, Image | File):
        losses.append(Loss(said.index, "a part that has no place in this message: a line instead", "A14"))
        return _text(placeholder(part))
    return _medium(part, said, losses)


def _result_part(part: Part, said: Said, losses: list[Loss]) -> Json | None:
    if isinstance(part, Text):
        return _text(part.text) if part.text else None
    if isinstance(part, Image | File):
        return _medium(part, said, losses)
    losses.append(Loss(said.index, "a vendor's item in a tool's result: a line instead", "A14"))
    return _text(placeholder(part))


def _medium(part: Image | File, said: Said, losses: list[Loss]) -> Json:
    more = more_of(part, said.item, DIALECT)
    if isinstance(part, Image):
        if part.data is None and part.uri.startswith(("https://", "http://")):
            return {"type": "image", "source": {"type": "url", "url": part.uri}, **more}
        if part.data is None and part.uri:
            return {"type": "image", "source": {"type": "file", "file_id": part.uri}, **more}
        if part.data and part.mime in IMAGES:
            source = {"type": "base64", "media_type": part.mime, "data": encoded(part.data)}
            return {"type": "image", "source": source, **more}
    else:
        title = {"title": part.name} if part.name else {}
        source_of = _document(part)
        if source_of is not None:
            return {"type": "document", "source": source_of, **title, **more}
    losses.append(Loss(said.index, f"a medium of type {part.mime!r}: a line in its place", "A14"))
    return _text(placeholder(part))


def _document(part: File) -> Json | None:
    if part.data is None:
        if part.uri.startswith(("https://", "http://")):
            return {"type": "url", "url": part.uri}
        return {"type": "file", "file_id": part.uri} if part.uri else None
    if part.mime == "application/pdf":
        return {"type": "base64", "media_type": part.mime, "data": encoded(part.data)}
    if part.mime == "text/plain":
        return {"type": "text", "media_type": part.mime, "data": part.data.decode("utf-8", "replace")}
    return None


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _plain(message: Json) -> Json:
    """A message of one bare text as the form's short way to say it."""
    content = message["content"]
    if len(content) == 1 and content[0].keys() == {"type", "text"}:
        return {"role": message["role"], "content": content[0]["text"]}
    return message
