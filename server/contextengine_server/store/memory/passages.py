"""The search index: every passage as the words that it is compared by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from contextengine_server.context.scope import Scope
from contextengine_server.store.search import (
    MAX_PARTS,
    MAX_PLACE,
    Advance,
    Cursor,
    DocumentKind,
    Lane,
)
from contextengine_server.store.words import sought, spread, stems

Place = tuple[int, int]
"""(place, part)."""


class Passage(msgspec.Struct, frozen=True):
    """A document, and what it is compared by."""

    text: str
    words: str
    """Its words, each between two spaces."""
    folded: str
    """The text in lower case."""


def finder(lane: Lane) -> Callable[[Passage], bool]:
    """Tells whether a way to match finds a passage."""
    if lane.substring:
        part = lane.text.lower()
        return lambda passage: part in passage.folded
    plain, begins = sought(lane.text)
    words = stems(plain)
    if not words:
        return lambda passage: False
    phrase = _between_spaces(words, open_end=begins)
    return lambda passage: phrase in passage.words


class Passages:
    """The index of all sessions."""

    def __init__(self) -> None:
        self._cursors: dict[tuple[Scope, str], Cursor] = {}
        self._passages: dict[tuple[Scope, DocumentKind], dict[Place, Passage]] = {}

    def cursor(self, scope: Scope, incarnation: str) -> Cursor | None:
        """How far the index has come with one life of a session; None where it has not begun."""
        return self._cursors.get((scope, incarnation))

    def take(self, step: Advance) -> None:
        """Takes a step's documents in, and moves the cursor, where that is where the step
        begins."""
        at = (step.scope, step.incarnation)
        if step.before != self._cursors.get(at, Cursor()):
            return
        self._cursors[at] = step.after
        for document in step.documents:
            if document.place <= MAX_PLACE and document.part < MAX_PARTS:
                passages = self._passages.setdefault((step.scope, document.kind), {})
                passages[document.place, document.part] = passage(document.text)

    def drop(self, scope: Scope) -> None:
        """Forgets a session."""
        for at in [at for at in self._cursors if at[0] == scope]:
            del self._cursors[at]
        for kind in DocumentKind:
            self._passages.pop((scope, kind), None)

    def newest_first(
        self, scope: Scope, kind: DocumentKind, first: int, last: int
    ) -> Iterator[tuple[Place, Passage]]:
        """The passages of a range of places, from the newest down."""
        passages = self._passages.get((scope, kind), {})
        return (
            (at, passages[at]) for at in sorted(passages, reverse=True) if first <= at[0] <= last
        )


def weigh(
    found: Iterable[tuple[Place, Passage]], lanes: Sequence[Lane]
) -> list[tuple[int, Place, int, Passage]]:
    """The passages that any lane matches: what the lanes weigh together, where the passage is, the
    lanes as bits, and the passage. The heaviest first and of equals the newest."""
    finders = [finder(lane) for lane in lanes]
    weighed = []
    for at, passage in found:
        hits = [number for number, holds in enumerate(finders) if holds(passage)]
        if hits:
            weight = sum(lanes[number].weight for number in hits)
            weighed.append((weight, at, sum(1 << number for number in hits), passage))
    return sorted(weighed, key=lambda one: one[:2], reverse=True)


def passage(text: str) -> Passage:
    return Passage(text, _between_spaces(stems(spread(text))), text.lower())


def _between_spaces(words: Sequence[str], *, open_end: bool = False) -> str:
    return f" {' '.join(words)}{'' if open_end else ' '}"
