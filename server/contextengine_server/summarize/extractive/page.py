"""How an extractive summary reads: what was said in its order, the ledger below it."""

from __future__ import annotations

from collections.abc import Sequence

from contextengine_server.summarize.extractive.passages import STATE, SourcePassage
from contextengine_server.summarize.extractive.units import Unit

_INDENT = "\n "
_STOPS = ".,;:，。；、"
"""What says nothing beside the mark behind it."""


class SummaryPage:
    """The text of a summary, from what was chosen of its passages.

    Each row begins with who speaks, and what is said word for word with the number of its message
    as well. Who speaks on the same day in several rows is named with the first of them. The
    calendar day stands above the first row of it. What follows on lines of its own is indented: no
    text can pass for a row of another's.
    """

    def __init__(self, passages: Sequence[SourcePassage]) -> None:
        self._passages = passages
        self.said: dict[int, str] = {}
        """Passages that are shown word for word, by index."""
        self.notes: Sequence[Unit] = ()
        """Units of the others."""
        self.ledger: Sequence[str] = ()
        self._alone = len({passage.label for passage in passages}) == 1
        """Only one speaks: it need not be said again with each row."""

    def labels(self) -> list[str]:
        """By passage, what its row begins with besides its number."""
        return ["" if self._alone else head_of(passage) for passage in self._passages]

    def text(self) -> str:
        """The summary."""
        bodies = {index: text.replace("\n", _INDENT) for index, text in self.said.items()}
        last: Unit | None = None
        for unit in sorted(self.notes, key=lambda unit: (unit.passage, unit.position)):
            body = bodies.get(unit.passage)
            bodies[unit.passage] = unit.text if body is None else _joined(body, last, unit)
            last = unit
        rows: list[str] = []
        day = speaker = ""
        for index in sorted(bodies):
            passage = self._passages[index]
            if passage.day and passage.day != day:
                day = passage.day
                rows.append(f"[{day}]")
                speaker = ""
            if speaker and passage.label == speaker and index not in self.said:
                rows.append(" " + bodies[index])
                continue
            number = f"#{passage.sequence} " if index in self.said and passage.sequence else ""
            rows.append(number + head_of(passage) + bodies[index])
            speaker = passage.label
        if self.ledger:
            rows += [STATE, *self.ledger]
        return "\n".join(rows)


def head_of(passage: SourcePassage) -> str:
    """What a row begins with."""
    return f"{passage.label}: " if passage.label else ""


def _joined(body: str, last: Unit | None, unit: Unit) -> str:
    """A passage with another unit of it, and a mark where something was left out between. The mark
    takes the place of the stop or comma before it."""
    if last is None or unit.line or last.line:
        return body + _INDENT + unit.text
    if unit.position == last.position + 1:
        return body + " " + unit.text
    return body.rstrip(_STOPS) + " … " + unit.text
