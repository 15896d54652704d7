"""Short ways to say what is projected, and to project it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.api.projection_items import message_in
from contextengine_server.projection.codex.jsonl import parse
from contextengine_server.projection.codex.renderer import Projected, render
from contextengine_server.projection.model import (
    Item,
    Part,
    Text,
)
from contextengine_server.projection.prompt import split_prompt
from contextengine_server.projection.task import Task
from contextengine_server.projection.thread import Binding
from contextengine_server.testing.contexts import (
    assistant,
    call,
    numbered,
    result,
    summary,
    tool,
    user,
)

__all__ = [
    "assistant",
    "bound",
    "call",
    "done",
    "numbered",
    "openclaw",
    "read",
    "records",
    "result",
    "summary",
    "task",
    "tool",
    "turns",
    "user",
]


def turns(count: int, size: int = 200, first: int = 1) -> list[Item]:
    """Turns of four messages: a request, a call, its result, an answer."""
    made: list[Item] = []
    for turn in range(count):
        name = f"c{turn}"
        made += [
            user(f"request {turn} " + "q" * size),
            assistant(f"thinking {turn}", call(name, arguments={"path": "p" * size})),
            tool(result(name, f"output {turn} " + "o" * size)),
            assistant(f"answer {turn} " + "a" * size),
        ]
    return numbered(made, first)


def task(
    items: Iterable[Item] = (), prompt: str | tuple[Part, ...] = "go on", **fields: Any
) -> Task:
    """What is asked, the prompt taken out of the items as a service does."""
    given = (Text(prompt),) if isinstance(prompt, str) and prompt else tuple(prompt or ())
    kept, said, sequence = split_prompt(list(items), given)
    known: dict[str, Any] = {
        "renderer": "jsonl",
        "epoch": "e1",
        "engine_id": "dag",
        "budget": 80_000,
    }
    return Task(items=kept, prompt=said, prompt_sequence=sequence, **(known | fields))


def done(
    items: Iterable[Item] = (), prompt: str | tuple[Part, ...] = "go on", **fields: Any
) -> Projected:
    return render(task(items, prompt, **fields))


def openclaw(items: Iterable[Item] = (), prompt: str = "go on", **fields: Any) -> Projected:
    return done(items, prompt, **({"renderer": "openclaw"} | fields))


def bound(projected: Projected, thread: str = "thread-1", **more: Any) -> Binding:
    """What the harness keeps once it knows the thread."""
    return replace(projected.binding, thread_id=thread, **more)


def records(projected: Projected) -> list[dict[str, Any]]:
    return parse(projected.prompt)[0]


def read(messages: Iterable[pb.Message], **more: Any) -> list[Item]:
    """Messages as they come from the wire, in their order."""
    return [
        replace(message_in(message, sequence=at), **more) for at, message in enumerate(messages, 1)
    ]
