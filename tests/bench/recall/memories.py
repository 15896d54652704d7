"""Sessions whose facts are known: five long monologues of a user's, 155 questions about them, and
their short answers.

From bfcl_memory. The question is never shown to anything that is measured but a search.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parents[2] / "data" / "bfcl_memory"


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a session."""

    text: str
    answers: tuple[str, ...]
    """Short texts, each of which answers it."""

    def answered(self, texts: Iterable[str]) -> bool:
        """True where an answer stands in one of the texts, in any case."""
        return any(
            answer.casefold() in text.casefold() for text in texts for answer in self.answers
        )

    def answered_by_words(self, texts: Iterable[str]) -> bool:
        """The same, stricter: an answer counts only where it stands as words of its own (no 11 in
        2011)."""
        return any(
            re.search(rf"(?<!\w){re.escape(answer.casefold())}(?!\w)", text.casefold())
            for text in texts
            for answer in self.answers
        )


@dataclass(frozen=True, slots=True)
class Memory:
    """A session: what a user said, in order, and the questions about it."""

    name: str
    said: tuple[str, ...]
    questions: tuple[Question, ...]


def memories() -> list[Memory]:
    """The five sessions, by name."""
    answers = {row["id"]: tuple(row["ground_truth"]) for row in _rows(DATA / "answers.jsonl")}
    asked: dict[str, list[Question]] = {}
    for row in _rows(DATA / "questions.jsonl"):
        text = row["question"][0][0]["content"]
        asked.setdefault(row["scenario"], []).append(Question(text, answers[row["id"]]))
    found = []
    for path in sorted(DATA.glob("memory_*.json")):
        name = path.stem.removeprefix("memory_")
        said = tuple(
            message["content"]
            for row in _rows(path)
            for turn in row["question"]
            for message in turn
        )
        found.append(Memory(name, said, tuple(asked[name])))
    return found


def _rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
