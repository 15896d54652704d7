"""Short ways to say what is projected, and to project it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.api.projection_items import message_in
from contextengine_server.projection.codex.jsonl import parse
from contextengine_server.projection.codex.renderer import Projected, render
from contextengine_server.projection.model import (
    ChatRole,
    Covers,
    Item,
    Part,
    Text,
    ToolCall,
    ToolResult,
)
from contextengine_server.projection.prompt import split_prompt
from contextengine_server.projection.task import Task
from contextengine_server.projection.thread import Binding


def user(text: str, sequence: int = 0, **more: Any) -> Item:
    return Item(ChatRole.USER, (Text(text),), sequence=sequence, **more)


def assistant(text: str = "", *parts: Part, sequence: int = 0, **more: Any) -> Item:
    return Item(
        ChatRole.ASSISTANT, (*((Text(text),) if text else ()), *parts), sequence=sequence, **more
    )


def call(name: str = "c1", tool: str = "exec", arguments: Any = "{}") -> ToolCall:
    return ToolCall(name, tool, arguments if isinstance(arguments, str) else json.dumps(arguments))


def result(name: str = "c1", text: str = "done", tool: str = "exec", **more: Any) -> ToolResult:
    return ToolResult(name, tool, (Text(text),), **more)


def tool(*results: ToolResult, sequence: int = 0) -> Item:
    return Item(ChatRole.TOOL, results, sequence=sequence)


def summary(text: str, first: int, last: int, depth: int = 0) -> Item:
    covers = Covers(f"s{depth}-{first}", depth, first, last)
    return Item(ChatRole.USER, (Text(text),), id=f"ce:summary:s{depth}-{first}", summary=covers)


def numbered(items: Iterable[Item], first: int = 1) -> list[Item]:
    """The items as stored messages, summaries apart."""
    return [
        item if item.summary is not None else replace(item, sequence=at)
        for at, item in enumerate(items, first)
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
