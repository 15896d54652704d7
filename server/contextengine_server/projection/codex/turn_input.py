"""The `input` of turn/start: the turn's text, and the pictures of this turn's prompt."""

from __future__ import annotations

from collections.abc import Sequence

from ..fragments import JsonObject
from ..model import File, Image, Loss, Text
from ..placeholders import placeholder
from ..task import Task
from .pictures import input_of


def attachments(task: Task, losses: list[Loss], warnings: list[str]) -> list[JsonObject]:
    """What stands beside the prompt's text: its pictures. What cannot be shown is named by a line
    in its place."""
    made: list[JsonObject] = []
    pictures = 0
    for part in task.prompt:
        if isinstance(part, Text):
            continue
        wrong = "a turn takes texts and pictures"
        if isinstance(part, Image):
            shown, wrong = input_of(part)
            if shown is not None:
                made.append(shown)
                continue
            pictures += 1
        rule = "X11" if isinstance(part, Image) else "X7"
        losses.append(Loss(-1, f"the prompt's {part.kind}: {wrong}", rule))
        if isinstance(part, Image | File):
            made.append(_input_text(placeholder(part)))
    if pictures:
        warnings.append(
            f"pictures_left_out: {pictures} of the prompt's pictures are not sent; the losses"
            " say why"
        )
    return made


def turn_input(prompt: str, attached: Sequence[JsonObject]) -> list[JsonObject]:
    """The turn's `input`: its text, and what stands beside it."""
    return [_input_text(prompt), *attached] if prompt else list(attached)


def text_chars(attached: Sequence[JsonObject]) -> int:
    """Characters that Codex counts besides the prompt's: it counts all texts of a turn."""
    return sum(len(part["text"]) for part in attached if part["type"] == "text")


def _input_text(text: str) -> JsonObject:
    return {"type": "text", "text": text, "text_elements": []}
