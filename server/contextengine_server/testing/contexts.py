"""Contexts for suites: ways to say what is projected, lists that are cut anywhere, random ones, and
real sessions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from msgspec.structs import replace

from contextengine.formats import read_transcript
from contextengine_server.api.projection_items import list_items
from contextengine_server.projection.model import (
    ChatRole,
    Covers,
    File,
    Image,
    Item,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)

AIRLINE = Path(__file__).parent / "data" / "airline.jsonl"
"""Real sessions of customers of an airline, with tools; each uses an id for two calls."""


class Maker(msgspec.Struct, frozen=True):
    """Who produced a model's messages, as an item says it."""

    provider: str = ""
    model: str = ""


def user(text: str, sequence: int = 0, **more: Any) -> Item:
    """A message of the user."""
    return Item(ChatRole.USER, (Text(text),), sequence=sequence, **more)


def assistant(text: str = "", *parts: Part, sequence: int = 0, **more: Any) -> Item:
    """A message of the model: its text, if there is one, and other parts behind it."""
    said = (Text(text),) if text else ()
    return Item(ChatRole.ASSISTANT, (*said, *parts), sequence=sequence, **more)


def call(name: str = "c1", tool: str = "exec", arguments: Any = "{}") -> ToolCall:
    """A call of the id `name`; arguments that are no text become JSON."""
    return ToolCall(name, tool, arguments if isinstance(arguments, str) else json.dumps(arguments))


def result(name: str = "c1", text: str = "done", tool: str = "exec", **more: Any) -> ToolResult:
    """The answer to a call of the id `name`."""
    return ToolResult(name, tool, (Text(text),), **more)


def tool(*results: ToolResult, sequence: int = 0) -> Item:
    """A message of tools."""
    return Item(ChatRole.TOOL, results, sequence=sequence)


def summary(text: str, first: int, last: int, depth: int = 0) -> Item:
    """A summary of the messages from `first` to `last`."""
    covers = Covers(f"s{depth}-{first}", depth, first, last)
    return Item(ChatRole.USER, (Text(text),), id=f"ce:summary:s{depth}-{first}", summary=covers)


def numbered(items: Iterable[Item], first: int = 1) -> list[Item]:
    """The items as stored messages, summaries apart."""
    return [
        item if item.summary is not None else replace(item, sequence=at)
        for at, item in enumerate(items, first)
    ]


def cut_contexts(maker: Maker) -> dict[str, list[Item]]:
    """Lists cut anywhere, and other lists that no provider takes as they are, by what is wrong with
    them. Reasoning in them is of `maker`."""
    thought = Reasoning("I think.", signature=b"sig-1", item_id="rs_1")
    made: dict[str, Any] = {"provider": maker.provider, "model": maker.model}
    return {
        "begins with a call": [assistant("", call("c1")), tool(result("c1")), user("x")],
        "begins with a result": [tool(result("c1", "orphan")), assistant("a"), user("x")],
        "cut inside a pair": [user("x"), assistant("", call("c1"), call("c2")), tool(result("c1"))],
        "a late result": [
            user("x"),
            assistant("", call("c1")),
            user("wait"),
            tool(result("c1", "late")),
        ],
        "a result twice": [
            user("x"),
            assistant("", call("c1")),
            tool(result("c1")),
            tool(result("c1")),
        ],
        "bad ids": [
            user("x"),
            assistant("", call("a b"), call("x" * 80)),
            tool(result("a b"), result("x" * 80)),
        ],
        "the same id side by side": [
            user("x"),
            assistant("", call("c1"), call("c1")),
            tool(result("c1"), result("c1")),
        ],
        "nothing but the model": [assistant("hello"), assistant("", call("c1"))],
        "nothing said": [user(""), assistant(""), Item(ChatRole.ASSISTANT, ()), user("x")],
        "text behind a call": [
            user("x"),
            Item(ChatRole.ASSISTANT, (call("c1"), Text("so"))),
            tool(result("c1")),
        ],
        "thinking behind text": [user("x"), Item(ChatRole.ASSISTANT, (Text("a"), thought), **made)],
        "only thinking": [user("x"), Item(ChatRole.ASSISTANT, (thought,), **made), user("y")],
        "a user's own results": [
            assistant("", call("c1")),
            Item(ChatRole.USER, (Text("before"), result("c1"), Text("after"))),
        ],
        "thinking that no model made": [
            Item(ChatRole.USER, (thought, Text("u")), **made),
            user("x"),
        ],
        "calls that no model made": [
            Item(ChatRole.USER, (Text("I ran"), call("c1"))),
            tool(result("c1")),
            Item(ChatRole.CUSTOM, (call("c2"), result("c2")), custom_role="bash"),
            Item(ChatRole.DEVELOPER, (call("c3"),)),
            user("x"),
        ],
        "a lone surrogate in arguments": [
            user("x"),
            assistant("", call("c1", "t", '{"a": "\\ud800"}')),
        ],
    }


def random_context(random: Random, maker: Maker, length: int) -> list[Item]:
    """A list of stored messages in any order: calls and results of few ids meet, miss and repeat
    one another; there are media, reasoning, signatures, errors, odd roles, and items that no
    provider knows."""
    return numbered(_random_item(random, maker) for _ in range(length))


def _random_item(random: Random, maker: Maker) -> Item:
    role = random.choice(
        [
            ChatRole.USER,
            ChatRole.USER,
            ChatRole.ASSISTANT,
            ChatRole.ASSISTANT,
            ChatRole.ASSISTANT,
            ChatRole.TOOL,
            ChatRole.TOOL,
            ChatRole.TOOL,
            ChatRole.DEVELOPER,
            ChatRole.CUSTOM,
        ]
    )
    known = role is ChatRole.ASSISTANT and random.random() < 0.5
    return Item(
        role,
        tuple(_random_part(random, role) for _ in range(random.choice([1, 1, 2, 3]))),
        custom_role="notice" if role is ChatRole.CUSTOM else "",
        labels={"excluded": "true"} if random.random() < 0.03 else {},
        provider=maker.provider if known else random.choice(["", "elsewhere"]),
        model=maker.model if known else random.choice(["", "another"]),
    )


def _random_part(random: Random, role: ChatRole) -> Part:
    name = random.choice(["c1", "c1", "c2", "toolu_01-A", "c 3", "x" * 80, ""])
    kind = random.random()
    if role is ChatRole.TOOL or kind < 0.05:
        inner: list[Part] = [Text(_random_text(random))]
        inner += [Image("image/png", b"\x89PNG", detail="low")] if kind < 0.2 else []
        return ToolResult(name, random.choice(["", "exec"]), tuple(inner), is_error=kind < 0.5)
    if role is ChatRole.ASSISTANT and kind < 0.45:
        arguments = random.choice(['{"a": 1}', "{}", "", "[1, 2]", "no json"])
        return ToolCall(name, "exec", arguments, seal=b"seal" if kind < 0.2 else b"")
    if role is ChatRole.ASSISTANT and kind < 0.65:
        signature, redacted = random.choice([(b"sig", b""), (b"", b"gAAA"), (b"", b"")])
        return Reasoning("hm", signature, redacted, item_id=f"rs_{random.randrange(10**9)}")
    if kind < 0.7:
        return Opaque("elsewhere.format", "chart", '{"type": "chart"}')
    if kind < 0.78:
        return File("application/pdf", b"%PDF", name="a.pdf")
    return Text(_random_text(random))


def _random_text(random: Random) -> str:
    return random.choice(["", " ", "<b>\u2028&", "]}", f"words {random.random()}"])


def transcripts(path: Path) -> Iterator[list[Item]]:
    """The sessions of a file in a format that `contextengine import` reads, as stored messages."""
    for transcript in read_transcript(path):
        yield list_items(transcript.messages)
