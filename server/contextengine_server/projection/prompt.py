"""This turn's prompt and the context before it, wherever the prompt was given."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from .model import ChatRole, Item, Part, Text, ToolResult, text_of
from .text import js_trim


def split_prompt(
    items: Sequence[Item], prompt: Sequence[Part], current_id: str = ""
) -> tuple[list[Item], tuple[Part, ...], int]:
    """The context, this turn's prompt, and its sequence where it is stored (0: it is not).

    A prompt that is given is left out of the context where the newest message is the user's and
    says the same, surrounding white space aside. Else the message named, wherever it stands, or the
    newest where it is the user's, is the prompt.
    """
    kept = list(items)
    newest = kept[-1] if kept else None
    users = newest is not None and newest.role is ChatRole.USER and newest.summary is None
    if prompt:
        said = js_trim(text_of(tuple(prompt)))
        # A prompt without text (pictures alone) is compared part by part: the texts of two such
        # prompts are equal whatever they show.
        repeated = users and newest is not None and (said or newest.parts == tuple(prompt))
        if repeated and newest is not None and js_trim(text_of(newest.parts)) == said:
            kept.pop()
            return kept, tuple(prompt), newest.sequence
        return kept, tuple(prompt), 0
    for at, item in enumerate(kept):
        if current_id and item.id == current_id:
            return kept[:at] + kept[at + 1 :], item.parts, item.sequence
    if users and newest is not None:
        return kept[:-1], newest.parts, newest.sequence
    return kept, (), 0


def with_preamble(
    items: Sequence[Item], prompt: Sequence[Part], preamble: str, current_id: str = ""
) -> tuple[Sequence[Item], Sequence[Part]]:
    """The context and this turn's prompt with a preamble before what the user says: before the
    prompt where one is given, else before the message named or the newest of the user's own. Where
    there is none it stands alone, as the prompt."""
    said = Text(preamble)
    if prompt:
        return items, (said, *prompt)
    kept = list(items)
    for at in range(len(kept) - 1, -1, -1):
        item = kept[at]
        spoken = item.role is ChatRole.USER and item.summary is None
        own = (item.sequence or item.live_index >= 0) and not any(
            isinstance(part, ToolResult) for part in item.parts
        )
        if spoken and own and current_id in ("", item.id):
            kept[at] = replace(item, parts=(said, *item.parts), cache=None)
            return kept, prompt
    return items, (said,)
