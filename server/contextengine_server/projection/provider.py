"""The forms of providers, of which the whole list is sent with each request: what is asked of their
renderers, what they answer, and a projection made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from .call_ids import PLAIN, CallIdFormat
from .model import ChatRole, Item, Loss, Part
from .projection import Projection
from .prompt import split_prompt, with_preamble
from .target import Target
from .task import Task

OPENER = "[Earlier messages of this conversation are not shown.]"
"""A user's text before a list that would begin with the model, which Anthropic and Gemini refuse.
Cutting forward to the next user's text instead would lose what an agent just did."""


class ProviderTask(msgspec.Struct, frozen=True, kw_only=True):
    """A context for a provider."""

    items: Sequence[Item]
    prompt: Sequence[Part] = ()
    """This turn's prompt where it is not among the items."""
    instructions: str = ""
    """The system prompt: the engine's addition and the harness's own."""
    provider: str = ""
    model: str = ""
    """Who will be called. Reasoning is kept only where both are known to have made it."""
    breakpoints: int | None = None
    """The most cache breakpoints. None: as many as the provider takes."""
    keep_long: bool = False
    """True where what stays is to be kept for the provider's longest time."""
    call_ids: CallIdFormat = PLAIN
    """Which ids of tool calls the provider takes."""


class Rendered(msgspec.Struct, frozen=True):
    """A context in a provider's form, as JSON."""

    messages_json: bytes
    """The list."""
    system_json: bytes = b""
    """The system part, where the form keeps it apart and there is one."""
    instructions: str = ""
    losses: list[Loss] = msgspec.field(default_factory=list)


class ProviderRenderer(msgspec.Struct, frozen=True):
    """Projects into a provider's form with its own `render`."""

    render: Callable[[ProviderTask], Rendered]

    def __call__(self, target: Target, task: Task) -> Projection:
        """The task in the form of `target`."""
        items, prompt = task.items, task.prompt
        if prompt:
            items, prompt, _ = split_prompt(items, prompt)
        if task.preamble:
            items, prompt = with_preamble(items, prompt, task.preamble, task.current_id)
        # The addition stands before the harness's own system prompt, as AssembleResponse says.
        sections = [text.strip() for text in (task.addition, task.base)]
        rendered = self.render(
            ProviderTask(
                items=items,
                prompt=prompt,
                instructions="\n\n".join(filter(None, sections)),
                provider=task.provider,
                model=task.model,
                breakpoints=task.breakpoints,
                keep_long=task.keep_long,
                call_ids=target.call_ids,
            )
        )
        size = len(rendered.messages_json) + len(rendered.system_json)
        return Projection(
            instructions=rendered.instructions,
            messages_json=rendered.messages_json,
            system_json=rendered.system_json,
            losses=rendered.losses,
            warnings=_warnings(target, task, rendered),
            estimated_tokens=-(-size // 4),
            message_count=task.message_count,
        )


def _warnings(target: Target, task: Task, rendered: Rendered) -> list[str]:
    warnings = []
    if rendered.messages_json == b"[]":
        warnings.append(
            "empty_messages: there is nothing to send but the system prompt, and"
            f" {target.name} refuses an empty list: give this turn's prompt"
        )
    if task.inject:
        warnings.append(
            "inject_items: this form has no native thread to inject into; the messages are the"
            " whole context"
        )
    return warnings


def made_here(item: Item, names: Sequence[str], provider: str, model: str) -> bool:
    """True where the model that will be called is known to have produced the item: only then its
    reasoning is sent back. `names` are those of the provider, for which reasoning and signatures
    are the same; the first is meant where `provider` is empty."""
    called = (provider or names[0]).lower()
    producer = item.provider.lower()
    same = producer == called or (producer in names and called in names)
    made = item.role is ChatRole.ASSISTANT and bool(item.model)
    return made and item.model == model and same and called in names
