"""Where Anthropic's cache breakpoints stand: at the ends of what the next request will begin with as well."""

from __future__ import annotations

from collections.abc import Iterator

from ..rendering import Json

MARK = {"type": "ephemeral"}
_MARKABLE = ("text", "image", "tool_use", "tool_result", "document")
"""Blocks that take a breakpoint; thinking has no place for one."""


def place(system: list[Json], messages: list[Json], summaries: int, limit: int) -> None:
    """Marks at most `limit` blocks: the end of the system prompt, the end of the summaries (the first `summaries` blocks of the first
    message), the newest block, and the end of the user's message before that, where the request before had its own.

    The newest come first where there is room for few: a breakpoint looks back over 20 blocks only.
    """
    marked = 0
    for block in _best(system, messages, summaries):
        if marked >= limit:
            return
        if "cache_control" not in block:
            block["cache_control"] = dict(MARK)
            marked += 1


def _best(system: list[Json], messages: list[Json], summaries: int) -> Iterator[Json]:
    users = [message["content"] for message in messages if message["role"] == "user"]
    ends = [messages[-1]["content"]] if messages else []
    ends += [content for content in users if content is not (ends[0] if ends else None)][-1:]
    for content in ends[:1]:
        yield from _last(content)
    yield from _last(system)
    if summaries:
        yield from _last(messages[0]["content"][:summaries])
    for content in ends[1:]:
        yield from _last(content)


def _last(blocks: list[Json]) -> Iterator[Json]:
    """The last block that takes a mark."""
    for block in reversed(blocks):
        empty = block["type"] == "text" and not block["text"]
        if block["type"] in _MARKABLE and not empty:
            yield block
            return
