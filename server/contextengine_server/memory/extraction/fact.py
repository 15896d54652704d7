"""What a fact is, as it is found in one text."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class FactKind(StrEnum):
    """What a fact is about."""

    NAME = "name"
    """What the user is called."""
    EMAIL = "email"
    DATE = "date"
    """A day, and what is on it."""
    PREFERENCE = "preference"
    """What the user likes, or wants to be done at all times."""
    DECISION = "decision"
    ADDRESS = "address"
    """Where the user lives or gets mail."""
    IDENTIFIER = "identifier"
    """A number or code, and what it is of."""
    ENTITY = "entity"
    """A person or organization, and what it is to the user."""


class FoundFact(msgspec.Struct, frozen=True):
    """A fact."""

    kind: FactKind
    value: str
    """In short, as it was said."""
    subject: str
    """What it is about: of two facts of one kind and subject that differ, the later one holds."""
    text: str
    """The sentence it was found in."""
    replaces: str = ""
    """What it says holds no more, in words of the fact that said so; empty: nothing."""
    corrects: bool = False
    """It takes back what was said just before, without naming it."""

    @property
    def line(self) -> str:
        """`kind: value`."""
        return f"{self.kind}: {self.value}"


def normal(text: str) -> str:
    """A text as it is compared: without case, marks at its ends, and space."""
    return " ".join(text.casefold().split()).strip(".,;:!?\"'`*_()[]，。；：！？、 ")
