"""Which layer a message belongs to: by its role, what it carries, and its sentences.

The rules are tried in this order, and the first that holds decides:

1. A system or developer message is critical.
2. A message with tool calls, or with a result that says something, is important.
3. One that says nothing is transient, unless it holds something other than text.
4. A long one is important: whatever facts it states, there is more to tell of it.
5. A user's sentence that lays down what holds from then on makes the message critical.
6. A message of fillers alone is transient.
7. One that states facts, asks nothing and requests nothing is contextual.
8. All else is important: a question, a request, an answer. What no rule knows must not get lost.

A step is its messages' most important layer, so a call and its result share one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from threading import Lock

from cachetools import LRUCache, cached

from contextengine_server.memory.extraction.extract import facts_in, words_of
from contextengine_server.memory.extraction.fact import FoundFact

from ..contract import Said
from .layers import Layer
from .words import LANGUAGES

LONG = 600
"""A message of more than so many characters is long; those of Chinese count three times."""
LAID_DOWN = 3_000
"""Instructions are looked for in messages of no more: longer ones are documents."""
SAYS = 2
"""A sentence says no more than its facts where it is at most so many times as long."""
_REMEMBERED = 65_536
"""Messages whose layer is remembered, in 200 bytes each: to find one takes 0.2 to 0.4 ms, and each
compaction of a session asks for those of all that it keeps or tells of."""
_ASCII = tuple(language for language in LANGUAGES if not language.beyond_ascii)
_WIDE = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_WIDTH = 3
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_QUOTE = re.compile(r"^\s*>.*$", re.MULTILINE)
_SENTENCE = re.compile(r"([^\n。！？；!?;.]+(?:[.](?=\S)[^\n。！？；!?;.]*)*)([。！？；!?;.]*)")
_PHRASE = re.compile(r"[,，、:：~～—–()（）…]+|\s-+\s")
_LETTER = re.compile(r"\w")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+")
_ASKS = re.compile(r"[?？]")
_SAYS = re.compile(r"[\w?？]")
_BULLET = re.compile(r"^\s*(?:[-*•·]|\(?\d{1,2}[.)、])\s*")


class SaidSentence:
    """One sentence of a message."""

    __slots__ = ("_languages", "_of_user", "asks", "text")

    def __init__(self, text: str, end: str, *, of_user: bool) -> None:
        self.text = text
        """In small letters, without the mark at its end."""
        self._of_user = of_user
        self._languages = _ASCII if text.isascii() else LANGUAGES
        self.asks = bool(_ASKS.search(end)) or any(
            language.question.search(text) for language in self._languages
        )

    @property
    def fills(self) -> bool:
        """True where it says nothing."""
        phrases = [phrase.strip(" '\"“”") for phrase in _PHRASE.split(self.text)]
        return all(
            self._is_filler(phrase) or all(map(self._is_filler, phrase.split()))
            for phrase in phrases
            if _LETTER.search(phrase)
        )

    @property
    def instructs(self) -> bool:
        """True where it lays something down."""
        return not self.asks and any(
            language.instruction.search(self.text) and not language.no_instruction.search(self.text)
            for language in self._languages
        )

    @property
    def wants(self) -> bool:
        """True where it asks for something to be done, or supposes something."""
        return any(language.no_fact.search(self.text) for language in self._languages)

    @property
    def states(self) -> bool:
        """True where it states a fact of its own."""
        if self.asks:
            return False
        return bool(_EMAIL.search(self.text)) or any(
            (language.fact.search(self.text) or (self._of_user and language.own.search(self.text)))
            and not language.no_fact.search(self.text)
            for language in self._languages
        )

    def _is_filler(self, phrase: str) -> bool:
        return any(language.filler.fullmatch(phrase) for language in self._languages)


def sentences(said: Said) -> list[SaidSentence]:
    """The sentences of a message, without code and quotations."""
    text, of_user = words_of(said.role, said.text), said.role == "user"
    plain = _QUOTE.sub(" ", _CODE.sub(" ", text))
    return [
        SaidSentence(text, end, of_user=of_user)
        for body, end in _SENTENCE.findall(plain)
        if _LETTER.search(text := " ".join(_BULLET.sub("", body).lower().split()))
    ]


def width(text: str) -> int:
    """How long a text is; of one that is too long by its characters alone, those."""
    if len(text) > LAID_DOWN:
        return len(text)
    return len(text) + (_WIDTH - 1) * len(_WIDE.findall(text))


def layer_of(said: Said) -> Layer:
    """The layer of one message."""
    if said.role in ("system", "developer"):
        return Layer.CRITICAL
    if said.calls or said.results > said.silent:
        return Layer.IMPORTANT
    if not said.text.strip():
        return Layer.IMPORTANT if said.other else Layer.TRANSIENT
    return layer_of_text(said)


def layer_of_text(said: Said) -> Layer:
    """The layer of a message that is known by its words alone."""
    length = width(words_of(said.role, said.text))
    if length > LAID_DOWN or (length > LONG and said.role != "user"):
        return Layer.IMPORTANT
    return _layer_of_sentences(said)


def _digest(said: Said) -> bytes:
    """All that a layer goes by, and no words that outlive their session."""
    known = f"{said.role}\0{said.other}\0{said.said_on}\0{said.text}"
    return hashlib.blake2b(known.encode("utf-8", "surrogatepass"), digest_size=16).digest()


@cached(LRUCache[bytes, Layer](_REMEMBERED), key=_digest, lock=Lock())
def _layer_of_sentences(said: Said) -> Layer:
    found, words = sentences(said), words_of(said.role, said.text)
    # What a harness says beside a user is told like the output of a tool.
    other = said.other or words != said.text
    if not found and not other and not _SAYS.search(said.text):
        return Layer.TRANSIENT  # a smiley, dots
    if said.role == "user" and any(one.instructs for one in found):
        return Layer.CRITICAL
    if width(words) > LONG or other or not found:
        return Layer.IMPORTANT
    rest = [one for one in found if not one.fills]
    if not rest:
        return Layer.TRANSIENT
    if any(one.asks for one in rest):
        return Layer.IMPORTANT
    found_here = not any(one.wants for one in rest) and facts_in(
        said.role, said.text, said_on=said.said_on
    )
    if found_here or any(one.states for one in rest):
        return Layer.CONTEXTUAL
    return Layer.IMPORTANT


def states_all(said: Said, facts: Sequence[FoundFact]) -> bool:
    """True where these facts say what the message says: every sentence of it fills, or is a fact
    for its greater part."""
    told = {fact.text: 0 for fact in facts}
    for fact in facts:
        told[fact.text] += len(fact.value)
    covered = [len(text) <= SAYS * chars for text, chars in told.items()]
    return all(covered) and sum(not one.fills for one in sentences(said)) <= len(covered)


def layer_of_step(messages: Iterable[Said]) -> Layer:
    """The layer that the messages of a step share."""
    return min(map(layer_of, messages), default=Layer.TRANSIENT)
