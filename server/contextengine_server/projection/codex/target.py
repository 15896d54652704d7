"""The record of Codex, and a projection made of what its renderers answer."""

from __future__ import annotations

import json
from collections.abc import Sequence

from msgspec.structs import replace

from ..fragments import JsonObject
from ..model import Item, Loss
from ..projection import Parts, Projection
from ..prompt import split_prompt
from ..target import Target
from ..task import Task
from ..text import dumped, utf8
from .renderer import RENDERERS, render
from .validator import validate


def project(target: Target, task: Task) -> Projection:
    """The task as what goes to the Codex app server."""
    items, prompt, sequence = split_prompt(task.items, task.prompt, task.current_id)
    done = render(replace(task, items=items, prompt=prompt, prompt_sequence=sequence))
    injected = [dumped(item) for item in done.items]
    sent = utf8(done.instructions) + utf8(done.prompt) + sum(map(len, injected))
    return Projection(
        instructions=done.instructions,
        prompt=done.prompt,
        inject_items_json=injected,
        turn_input_json=dumped(done.turn_input) if _more_than_text(done.turn_input) else b"",
        context_range=done.context_range,
        action=done.action,
        reason=done.reason,
        binding=done.binding,
        losses=_placed(done.losses, items, task.items),
        warnings=done.warnings,
        stats=done.stats,
        estimated_tokens=-(-sent // 4),  # as Codex itself estimates
        # A prompt that was among the items does not stand before itself.
        message_count=task.message_count - (len(items) < len(task.items)),
    )


def body_of(parts: Parts) -> JsonObject:
    """The members of thread/start, thread/inject_items and turn/start."""
    body: JsonObject = {}
    if parts.instructions:
        body["developerInstructions"] = parts.instructions
    if parts.inject_items_json:
        body["items"] = [json.loads(item) for item in parts.inject_items_json]
    alone = [{"type": "text", "text": parts.prompt}] if parts.prompt else []
    body["input"] = json.loads(parts.turn_input_json) if parts.turn_input_json else alone
    return body


def _more_than_text(turn_input: Sequence[JsonObject]) -> bool:
    return len(turn_input) > 1 or any(part["type"] != "text" for part in turn_input)


def _placed(losses: list[Loss], items: Sequence[Item], whole: Sequence[Item]) -> list[Loss]:
    """Losses of these items with their places in the whole list, which holds the prompt as well."""
    if len(items) == len(whole) or not losses:
        return losses
    places = {id(item): at for at, item in enumerate(whole)}
    return [
        loss if loss.index < 0 else replace(loss, index=places[id(items[loss.index])])
        for loss in losses
    ]


TARGET = Target(
    name="codex",
    title="Codex app server",
    number=1,
    renderer=project,
    validator=validate,
    body=body_of,
    renderers=RENDERERS,
    threads=True,
)
