"""What a language brings along."""

from __future__ import annotations

import re
from functools import cached_property

import msgspec


class SentencePattern:
    """A regular expression that is compiled when something is first looked for: all of them
    together take a twentieth of the time in which the server starts, and one engine alone needs
    them."""

    def __init__(self, pattern: str, flags: re.RegexFlag) -> None:
        self._given = (pattern, flags)

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(*self._given)

    def compile(self) -> None:
        """Compiles it now."""
        _ = self._compiled

    def search(self, text: str) -> re.Match[str] | None:
        """Its first match anywhere in a text."""
        return self._compiled.search(text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """Its match of a text as a whole."""
        return self._compiled.fullmatch(text)


class Language(msgspec.Struct, frozen=True):
    """Patterns over one sentence, in small letters and without the mark that ends it."""

    filler: SentencePattern
    """Matches a phrase that says nothing, as a whole."""
    question: SentencePattern
    """Is found in a sentence that asks, whether or not a question mark ends it."""
    instruction: SentencePattern
    """Is found in a sentence by which a user lays down what holds from then on."""
    no_instruction: SentencePattern
    """Is found in one that only looks so: somebody tells of himself, or consoles."""
    own: SentencePattern
    """Is found in a sentence that states a fact of who says it: a preference, who and where he
    is. An assistant that speaks of itself states none."""
    fact: SentencePattern
    """Is found in a sentence that states any other fact: a decision, a date, a place."""
    no_fact: SentencePattern
    """Is found in one that only looks so: it asks for something to be done, or supposes it."""
    beyond_ascii: bool = False
    """True where none of them is in a sentence of ASCII alone, which is not looked at then."""

    def compile(self) -> None:
        """Compiles all patterns now."""
        for pattern in msgspec.structs.astuple(self):
            if isinstance(pattern, SentencePattern):
                pattern.compile()
