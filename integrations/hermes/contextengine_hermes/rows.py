"""Messages as Hermes has them, chat messages with keys of its own, and as the service has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contextengine import Message, user
from contextengine.formats import from_openai, to_openai
from contextengine.types import ROLE_DEVELOPER, ROLE_SYSTEM, Item

from .block import block, part

Row = dict[str, Any]
"""A message of Hermes. Keys that begin with an underscore are not sent to a model."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A message of Hermes' list, and what of it is not ours."""

    row: Row
    """As Hermes has it."""
    said: Row | None
    """What others said in it, without Hermes' own keys. None: nothing."""
    items: tuple[str, ...] = ()
    """Items of the service that it shows."""

    def messages(self) -> Iterator[Message]:
        """As the service is told of it: its own items by their ids alone."""
        for one in self.items:
            yield user("(an item of the service)", id=one)
        if self.said is not None:
            yield from from_openai([self.said])


def listed(rows: Iterable[Row]) -> list[Listed]:
    """A list of Hermes. What Hermes made up for one request only is left out."""
    return [_listed(row) for row in rows if not _passing(row)]


def placed(items: Sequence[Item], known: Sequence[Listed], addition: str) -> list[Row]:
    """The list that the service answered, in Hermes' own messages where they are shown verbatim.
    Summaries that stand side by side are one message; what the model is told of them stands in the
    first."""
    rows: list[Row] = []
    shown: list[tuple[str, str]] = []
    at = 0

    def close() -> None:
        nonlocal addition
        if shown or addition:
            rows.append({"role": "user", "content": block(shown, addition)})
            shown.clear()
            addition = ""

    for item in items:
        if item.HasField("summary"):
            shown.append((item.message.id, "".join(p.text.text for p in item.message.parts)))
            continue
        if shown or (addition and item.message.role not in _LEADING):
            close()
        for written in to_openai([item.message]):
            found = _find(written, known, at)
            if found is None:
                rows.append(written)
                continue
            at = found + 1
            whole = known[found]
            rows.append({**whole.row, **written} if whole.items else whole.row)
    close()
    return rows


_LEADING = (ROLE_SYSTEM, ROLE_DEVELOPER)
_NOTE = "ce:note"
"""Stands for a block that shows no item, only what the model is told."""


def _find(written: Row, known: Sequence[Listed], begin: int) -> int | None:
    """Which message of the list it is."""
    for at in range(begin, len(known)):
        said = known[at].said
        if said == written:
            return at
    return None


def _listed(row: Row) -> Listed:
    said = {key: value for key, value in row.items() if not key.startswith("_")}
    content = row.get("content")
    if row.get("role") != "user" or not isinstance(content, str | list):
        return Listed(row, said)
    pieces = content if isinstance(content, list) else [{"text": content}]
    kept, items = _parted(pieces)
    if not items:
        return Listed(row, said)
    words = kept if isinstance(content, list) else "".join(piece["text"] for piece in kept)
    return Listed(row, {**said, "content": words} if words else None, tuple(items))


def _parted(pieces: Sequence[Any]) -> tuple[list[Any], list[str]]:
    """Parts of a message without the blocks in their texts, and the items of those."""
    kept: list[Any] = []
    items: list[str] = []
    for piece in pieces:
        text = piece.get("text") if isinstance(piece, Mapping) else None
        found = part(text) if isinstance(text, str) else None
        if found is None or found.words == text:
            kept.append(piece)
            continue
        items.extend(found.items or (_NOTE,))
        if found.words.strip():
            kept.append({**piece, "text": found.words})
    return kept, items


def _passing(row: Row) -> bool:
    """Whether Hermes made it up to get a turn going again: it takes it back itself."""
    return any(key.endswith("_synthetic") or key == "_thinking_prefill" for key in row)
