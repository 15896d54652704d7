"""Where summaries stand in a list of Hermes: one message of ours, told from what others said by the
digest in its first line.

Hermes keeps messages without ids and joins what stands side by side in one role, so a block may
come back within a message that a user wrote.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

_OPENING = re.compile(r'<contextengine items="([^"\n]*)" digest="([0-9a-f]{16})">\n')
_CLOSING = "\n</contextengine>"
_JOINT = "\n\n"
"""What Hermes puts between messages that it joins."""


@dataclass(frozen=True, slots=True)
class Parted:
    """A text and the blocks in it."""

    pieces: tuple[str | tuple[str, ...], ...]
    """In order: what others said, and the ids of the service's items that a block holds."""

    @property
    def words(self) -> str:
        """What others said in it."""
        return _JOINT.join(piece for piece in self.pieces if isinstance(piece, str))

    @property
    def items(self) -> tuple[str, ...]:
        """The ids of the service's items that its blocks hold."""
        blocks = [piece for piece in self.pieces if not isinstance(piece, str)]
        return tuple(one for ids in blocks for one in ids)


def block(items: Sequence[tuple[str, str]], addition: str) -> str:
    """The text of a message that shows items of the service: (id, text) each, and what else the
    model is to be told."""
    inner = _JOINT.join(filter(None, [addition, *(text for _, text in items)]))
    ids = ",".join(one for one, _ in items)
    return f'<contextengine items="{ids}" digest="{_digest(ids, inner)}">\n{inner}{_CLOSING}'


def part(text: str) -> Parted:
    """Takes the blocks out of a text. What only looks like one stays."""
    pieces: list[str | tuple[str, ...]] = []
    at = search = 0
    while found := _OPENING.search(text, search):
        end = search = _end(text, found)
        if end < 0:
            search = found.end()
            continue
        pieces.append(text[at : found.start()].removesuffix(_JOINT))
        pieces.append(tuple(filter(None, found[1].split(","))))
        at = search = end + len(_JOINT) * text.startswith(_JOINT, end)
    pieces.append(text[at:])
    return Parted(tuple(piece for piece in pieces if piece != ""))


def _end(text: str, opening: re.Match[str]) -> int:
    """Where a block ends, -1 where it is none: its text may hold what looks like an end."""
    at = opening.end()
    while (at := text.find(_CLOSING, at)) >= 0:
        if _digest(opening[1], text[opening.end() : at]) == opening[2]:
            return at + len(_CLOSING)
        at += 1
    return -1


def _digest(ids: str, inner: str) -> str:
    return blake2b(f"{ids}\n{inner}".encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
