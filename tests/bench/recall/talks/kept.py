"""How much of what answers is kept: words of evidence in the context that a server assembles, and
turns of evidence among the first hits of its Search.

A talk is told step by step, as hosts do: each turn is stored, and before each answer of the other's
an assembly is asked for, with the background's work done before the next.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise

from contextengine import types as t
from contextengine.messages import parts_of
from contextengine_server.recall.terms import FUNCTION_WORDS
from contextengine_server.tokens import TokenCounter
from tests.integration.assemble.asking import ask, settled
from tests.integration.harness import House, budget, ref, texts

from .made import Talk, Turn

SHARES = (10, 25, 50)
"""The budgets, in percent of the talk's tokens."""
FIRST = (5, 10)
"""How many hits of a search count."""
KEPT = 0.6
"""The share of a sentence's words that have to stand in one piece, or two neighbours."""
FEW = 3
"""Of so few words all have to."""
_BODY = re.compile(r"<<<untrusted (\w+)\n(.*)\n\1 untrusted>>>", re.DOTALL)
_PIECE = re.compile(r"(?<=[.!?])[\"')\]]*\s+|\n| … ")
_WORD = re.compile(r"\w+")


@dataclass(slots=True)
class Kept:
    """What came of a talk, or of several."""

    evidence: int = 0
    """Turns that answer something."""
    kept: dict[int, float] = field(default_factory=dict)
    """The share of their words that is kept, summed over them, by the budget's share."""
    asked: int = 0
    answers: dict[int, int] = field(default_factory=dict)
    """Answers that stand in what shows or covers the evidence, by the budget's share."""
    room: dict[int, float] = field(default_factory=dict)
    """The share of the budget that is used at the end, by its share; summed over the talks."""
    found: dict[int, int] = field(default_factory=dict)
    """Turns of evidence among the first hits, by how many count."""
    talks: int = 0

    def add(self, other: Kept) -> None:
        """Counts another's in."""
        for name in ("evidence", "asked", "talks"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("kept", "answers", "room", "found"):
            mine = getattr(self, name)
            for key, number in getattr(other, name).items():
                mine[key] = mine.get(key, 0) + number


async def kept_of(house: House, talk: Talk) -> Kept:
    """Measures one talk."""
    count = TokenCounter().count_text
    tokens = sum(count(turn.text) for turn in talk.turns)
    evidence = {one.turn for one in talk.asked}
    result = Kept(evidence=len(evidence), talks=1)
    result.asked = len(talk.asked)
    for share in SHARES:
        size = tokens * share // 100
        session = ref(f"{talk.name}-{share}")
        reply = await _told(house, session, talk, size)
        pieces = _pieces(reply)
        result.room[share] = sum(item.tokens for item in reply.items) / size
        result.kept[share] = sum(
            share_kept(talk.turns[at].text, pieces.get(at + 1, [])) for at in evidence
        )
        result.answers[share] = sum(
            one.question.answered_by_words([" ".join(pieces.get(one.turn + 1, []))])
            for one in talk.asked
        )
    revision = (await house.client.get_status(session)).revision
    for one in talk.asked:
        page = await house.client.recall.search(
            session,
            query=one.question.text,
            limit=max(FIRST),
            scope=t.SEARCH_SCOPE_MESSAGES,
            at_least_revision=revision,
        )
        places = [hit.origin.sequence - 1 for hit in page.hits]
        # What is asked in the same words at two times is answered by either.
        same = {other.turn for other in talk.asked if other.question.text == one.question.text}
        for first in FIRST:
            hit = not same.isdisjoint(places[:first])
            result.found[first] = result.found.get(first, 0) + hit
    return result


async def _told(house: House, session: t.SessionRef, talk: Talk, size: int) -> t.AssembleResponse:
    """Tells a talk; the last assembly."""
    new: list[t.Message] = []
    for number, turn in enumerate(talk.turns, 1):
        new.append(_message(turn, number))
        if turn.role == "user":
            await ask(house, session, ingest=new, budget=budget(size))
            await settled(house, session)
            new = []
    await ask(house, session, ingest=new, budget=budget(size))
    await settled(house, session)
    return await ask(house, session, budget=budget(size))


def _message(turn: Turn, number: int) -> t.Message:
    time = None if turn.time_ms is None else datetime.fromtimestamp(turn.time_ms / 1000, UTC)
    return t.Message(
        id=f"m{number}",
        role=t.ROLE_USER if turn.role == "user" else t.ROLE_ASSISTANT,
        name=turn.name,
        parts=parts_of(turn.text),
        timestamp=time,
    )


def _pieces(reply: t.AssembleResponse) -> dict[int, list[str]]:
    """By sequence, what stands for a message: itself, or the pieces of the summary over it."""
    found: dict[int, list[str]] = {}
    for item, text in zip(reply.items, texts(reply.items), strict=True):
        if item.HasField("summary"):
            body = _BODY.search(text)
            pieces = [piece for piece in _PIECE.split(body[2] if body else text) if piece]
            for at in range(item.summary.first_sequence, item.summary.last_sequence + 1):
                found[at] = pieces
        elif item.origin.sequence:
            found[item.origin.sequence] = [text]
    return found


def share_kept(text: str, pieces: list[str]) -> float:
    """The share of a turn's words that is kept: those of its sentences that are."""
    stand = [frozenset(_words(piece)) for piece in pieces]
    stand = [*stand, *(one | other for one, other in pairwise(stand))]
    kept = total = 0
    for sentence in filter(None, _PIECE.split(text)):
        words = _words(sentence)
        total += len(words)
        best = max((sum(word in piece for word in words) for piece in stand), default=0)
        if best >= (len(words) if len(words) <= FEW else KEPT * len(words)):
            kept += best
    return kept / total if total else 1.0


def _words(text: str) -> list[str]:
    """Its words without those that stand in every text."""
    return [word for word in _WORD.findall(text.casefold()) if word not in FUNCTION_WORDS]
