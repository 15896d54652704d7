"""Anthropic's blocks and turns as JSON, so that what was made of a message once is only joined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ..fragments import FRAGMENT_BYTES, JsonObject
from ..text import dumped

_MARK = b',"cache_control":{"type":"ephemeral"}}'
_LONG_MARK = b',"cache_control":{"type":"ephemeral","ttl":"1h"}}'
"""What is marked is kept for five minutes, or for an hour."""
_MARKABLE = ("text", "image", "tool_use", "tool_result", "document")
"""Blocks that take a breakpoint; thinking has no place for one."""


class Block(msgspec.Struct, frozen=True):
    """A block of content."""

    json: bytes
    markable: bool
    """True where a cache breakpoint may stand on it."""
    text: bytes | None = None
    """Its text, where it holds nothing else: alone in a message this is said the short way."""


class RoleTurn(msgspec.Struct, frozen=True):
    """What stands side by side in one role."""

    role: str
    blocks: tuple[Block, ...]
    json: bytes
    """As a message, or as the list of blocks where the role is the system's."""

    @property
    def size(self) -> int:
        """Bytes in memory, about."""
        return len(self.json) + sum(FRAGMENT_BYTES + 2 * len(block.json) for block in self.blocks)


def block_of(block: JsonObject) -> Block:
    """A block. A breakpoint that it brings along goes: they are placed anew, and there may be only
    so many."""
    block = {name: value for name, value in block.items() if name != "cache_control"}
    bare = block.keys() == {"type", "text"}
    markable = block.get("type") in _MARKABLE and block.get("text") != ""
    return Block(dumped(block), markable, dumped(block["text"]) if bare else None)


def turn_of(role: str, blocks: Iterable[Block]) -> RoleTurn:
    """A turn of these blocks."""
    whole = tuple(blocks)
    content = b"[" + b",".join([block.json for block in whole]) + b"]"
    if role == "system":
        return RoleTurn(role, whole, content)
    if len(whole) == 1 and whole[0].text is not None:
        content = whole[0].text
    return RoleTurn(role, whole, b'{"role":"%b","content":%b}' % (role.encode(), content))


def merged(turns: Sequence[RoleTurn]) -> RoleTurn:
    """Turns of one role that stand side by side, as one."""
    return turn_of(turns[0].role, [block for turn in turns for block in turn.blocks])


def marked(turn: RoleTurn, at: int, *, long: bool) -> RoleTurn:
    """The turn with a cache breakpoint on one of its blocks. `long`: kept for an hour."""
    block = turn.blocks[at]
    bearing = Block(block.json[:-1] + (_LONG_MARK if long else _MARK), block.markable)
    return turn_of(turn.role, (*turn.blocks[:at], bearing, *turn.blocks[at + 1 :]))
