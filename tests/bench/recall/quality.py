"""How many answers are in the context that a server assembles, and in the messages that its Search
finds first.

Each session is stored whole, compacted in the background by the extractive summarizer until nothing
is owed, and assembled. Only what messages and summaries say counts: no header, no footer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from contextengine import types as t
from contextengine.messages import user
from contextengine_server.tokens import TokenCounter
from tests.integration.assemble.asking import ask, assign, settled
from tests.integration.harness import House, budget, ref, texts

from .baselines import BM25, newest
from .memories import Memory

SHARES = (10, 25, 50)
"""The budgets, in percent of the session's tokens."""
FIRST = 5
"""How many hits of a search count."""
FITTED: dict[str, object] = {
    "freshTailTurns": 1,
    "contextThreshold": 0.95,
    "leafTargetTokens": 5_000,
}
"""Options of the dag for sessions much longer than their budget: a tail of one step, and leaves as
large as the room beside it. The defaults are made for windows of 100,000 tokens and more."""
_BODY = re.compile(r"<<<untrusted (\w+)\n(.*)\n\1 untrusted>>>", re.DOTALL)


@dataclass(slots=True)
class Answered:
    """How many of the questions were answered, of one session or of all."""

    questions: int = 0
    verbatim: int = 0
    """Those whose answer stands in the session at all."""
    context: dict[int, int] = field(default_factory=dict)
    """In the context, by the budget's share."""
    context_by_words: dict[int, int] = field(default_factory=dict)
    """The same where a number within a number does not count."""
    newest: dict[int, int] = field(default_factory=dict)
    """In the newest messages that fit."""
    found: int = 0
    """In the first hits of Search."""
    found_plainly: int = 0
    """In the first hits of a plain BM25."""
    reachable: int = 0
    """In the hits of the first hundred."""

    def add(self, other: Answered) -> None:
        """Counts another session's in."""
        for name in ("questions", "verbatim", "found", "found_plainly", "reachable"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("context", "context_by_words", "newest"):
            mine = getattr(self, name)
            for share, number in getattr(other, name).items():
                mine[share] = mine.get(share, 0) + number


async def measure(
    house: House, memory: Memory, options: dict[str, object] | None = FITTED
) -> Answered:
    """Measures one session. `options`: what an operator chose; None: the defaults."""
    count = TokenCounter().count_text
    tokens = sum(map(count, memory.said))
    plain = BM25(memory.said)
    result = Answered(
        len(memory.questions), sum(question.answered(memory.said) for question in memory.questions)
    )
    whole = ref(memory.name)
    await _store(house, whole, memory)
    revision = (await house.client.get_status(whole)).revision
    for question in memory.questions:
        hits = await house.client.recall.search(
            whole,
            query=question.text,
            limit=100,
            scope=t.SEARCH_SCOPE_MESSAGES,
            at_least_revision=revision,
        )
        said = [memory.said[hit.origin.sequence - 1] for hit in hits.hits]
        result.found += question.answered(said[:FIRST])
        result.reachable += question.answered(said)
        result.found_plainly += question.answered(plain.best(question.text, FIRST))
    for share in SHARES:
        size = tokens * share // 100
        session = ref(f"{memory.name}-{share}-{'default' if options is None else 'fitted'}")
        if options is not None:
            await assign(house, session, "dag", **options)
        await _store(house, session, memory)
        await ask(house, session, budget=budget(size))
        await settled(house, session)
        reply = await ask(house, session, budget=budget(size))
        shown = said_by(reply)
        kept = newest(memory.said, size, count)
        asked = memory.questions
        result.context[share] = sum(question.answered(shown) for question in asked)
        result.context_by_words[share] = sum(
            question.answered_by_words(shown) for question in asked
        )
        result.newest[share] = sum(question.answered(kept) for question in asked)
    return result


def said_by(reply: t.AssembleResponse) -> list[str]:
    """What the items say: messages whole, of summaries the body."""
    said = []
    for item, text in zip(reply.items, texts(reply.items), strict=True):
        body = _BODY.search(text) if item.HasField("summary") else None
        said.append(text if body is None else body[2])
    return said


async def _store(house: House, session: t.SessionRef, memory: Memory) -> None:
    messages: Sequence[t.Message] = [
        user(text, id=f"m{number}") for number, text in enumerate(memory.said, 1)
    ]
    await house.client.ingest_batch(session, messages)
