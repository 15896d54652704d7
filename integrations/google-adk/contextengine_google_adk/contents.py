"""Contents of a request as the service keeps them, and back. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from google.genai import types

from contextengine import Message, name_by_content
from contextengine.conversation import shown_verbatim
from contextengine.formats import from_gemini, to_gemini
from contextengine.types import Item


def kept(contents: Iterable[types.Content]) -> list[Message]:
    """Contents as messages, named by what they say. Raises FormatError."""
    messages = from_gemini(
        content.model_dump(mode="json", by_alias=True, exclude_none=True) for content in contents
    )
    name_by_content(messages)
    return messages


def shown(
    items: Iterable[Item], contents: Sequence[types.Content], kept: Sequence[Message]
) -> list[types.Content]:
    """What the service answered, in the request's own contents where they are shown verbatim."""
    own = {message.id: content for message, content in zip(kept, contents, strict=True)}
    made: list[types.Content] = []
    ours = False
    for item in items:
        before, ours = ours, not shown_verbatim(item, own)
        if not ours:
            written = [own[item.id]]
        else:
            told: Any = to_gemini([item.message])["contents"]
            written = [types.Content.model_validate(one) for one in told]
        for one in written:
            if made and (ours or before) and results(one) and results(made[-1]):
                # Gemini wants the results of calls side by side in one content.
                both = [*(made.pop().parts or ()), *(one.parts or ())]
                one = types.Content(role="user", parts=both)
            made.append(one)
    return made


def results(content: types.Content) -> bool:
    """Whether it has results of calls."""
    return any(part.function_response for part in content.parts or ())


def with_addition(instruction: Any, addition: str) -> Any:
    """The system's instruction with what the service says beside the contents, behind it, so that
    the beginning stays what the provider has cached."""
    if not addition:
        return instruction
    if not instruction:
        return addition
    if isinstance(instruction, str):
        return f"{instruction}\n\n{addition}"
    if isinstance(instruction, types.Content):
        parts = [*(instruction.parts or ()), types.Part(text=addition)]
        return types.Content(role=instruction.role, parts=parts)
    return [*instruction, addition] if isinstance(instruction, list) else [instruction, addition]


def text_of(instruction: Any) -> str:
    """The words of an instruction, to be counted."""
    match instruction:
        case str():
            return instruction
        case types.Content():
            return "\n".join(part.text or "" for part in instruction.parts or ())
        case types.Part():
            return instruction.text or ""
        case list():
            return "\n".join(map(text_of, instruction))
    return ""
