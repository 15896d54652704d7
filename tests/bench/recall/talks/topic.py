"""What somebody tells, as a pattern: a fact in the opening and in each answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topic:
    """Something that one of the two tells."""

    slots: dict[str, tuple[str, ...]]
    opening: str
    asked: str
    """The question that the opening answers, of {who} told it."""
    answer: str
    more: tuple[tuple[str, str, str, str], ...]
    """What the other asks, what is answered, the question about it, the answer to that."""
    about: str
    """What it is about, as small talk names it."""
