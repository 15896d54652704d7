"""What a language brings along."""

from __future__ import annotations

import re

import msgspec


class Language(msgspec.Struct, frozen=True):
    """Patterns over one sentence, in small letters and without the mark that ends it."""

    filler: re.Pattern[str]
    """Matches a phrase that says nothing, as a whole."""
    question: re.Pattern[str]
    """Is found in a sentence that asks, whether or not a question mark ends it."""
    instruction: re.Pattern[str]
    """Is found in a sentence by which a user lays down what holds from then on."""
    no_instruction: re.Pattern[str]
    """Is found in one that only looks so: somebody tells of himself, or consoles."""
    own: re.Pattern[str]
    """Is found in a sentence that states a fact of who says it: a preference, who and where he
    is. An assistant that speaks of itself states none."""
    fact: re.Pattern[str]
    """Is found in a sentence that states any other fact: a decision, a date, a place."""
    no_fact: re.Pattern[str]
    """Is found in one that only looks so: it asks for something to be done, or supposes it."""
    beyond_ascii: bool = False
    """True where none of them is in a sentence of ASCII alone, which is not looked at then."""
