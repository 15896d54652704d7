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
    """A text without the blocks in it."""

    words: str
    """What others said in it."""
    items: tuple[str, ...]
    """The ids of the service's items that its blocks hold."""


def block(items: Sequence[tuple[str, str]], addition: str) -> str:
    """The text of a message that shows items of the service: (id, text) each, and what else the
    model is to be told."""
    inner = _JOINT.join(filter(None, [addition, *(text for _, text in items)]))
    ids = ",".join(one for one, _ in items)
    return f'<contextengine items="{ids}" digest="{_digest(ids, inner)}">\n{inner}{_CLOSING}'


def part(text: str) -> Parted:
    """Takes the blocks out of a text. What only looks like one stays."""
    pieces: list[str] = []
    items: list[str] = []
    at = 0
    while found := _OPENING.search(text, at):
        end = _end(text, found)
        if end < 0:
            pieces.append(text[at : found.end()])
            at = found.end()
            continue
        pieces.append(text[at : found.start()].removesuffix(_JOINT))
        items.extend(filter(None, found[1].split(",")))
        at = end
        if text.startswith(_JOINT, at) and not any(pieces):
            at += len(_JOINT)
    return Parted("".join([*pieces, text[at:]]), tuple(items))


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
