"""Questions asked again: a harness whose model call failed asks for the same context once more,
samples of one turn ask at once.

While the session and its engine are what they were, the same request has the same bytes for an
answer (law 9), and those are at hand. What is asked once is not kept: a reply is worth its memory
from the second time on.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from contextengine_server.context.scope import Scope
from contextengine_server.engines.contract import Engine
from contextengine_server.session.assembly import Assembly
from contextengine_server.session.core import SessionCore

MAX_QUESTIONS = 4_096
MAX_QUESTION_BYTES = 4_096
"""What names its session and budget is far shorter; what brings messages along is not asked
twice."""
CACHE_SHARE = 8
"""Answers take at most this part of the memory for warm sessions."""

Question = tuple[str, bytes]
"""The tenant, and the request as it came."""


@dataclass(slots=True)
class Answer:
    """What a question was answered with, and what it stands on."""

    scope: Scope
    incarnation: str
    revision: int
    engine: Engine
    outcome: int
    tokens: int
    reused: int
    """How many of the tokens the caller held."""
    reply: bytes = b""
    """Empty until the question has come twice."""


class Answers:
    """The newest questions, and the replies to those that came twice."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._known: OrderedDict[Question, Answer] = OrderedDict()
        self._room = core.limits.cache_bytes // CACHE_SHARE
        self._bytes = 0

    async def again(self, question: Question) -> Answer | None:
        """The answer, where this was asked before and nothing has changed since."""
        known = self._known.get(question)
        if known is None or not known.reply:
            return None
        head = await self._core.store.head(known.scope)
        if head is None or (head.revision, head.incarnation) != (known.revision, known.incarnation):
            return None
        # Another engine or other options are no revision of the session.
        if (await self._core.select(known.scope)).engine is not known.engine:
            return None
        return known

    def keep(
        self,
        question: Question,
        assembly: Assembly,
        stands_on: tuple[str, int],
        reply: bytes,
        reused: int,
    ) -> None:
        """Remembers that this was asked, and, where it was before, the reply. `stands_on`: the
        session's incarnation and revision when it was assembled; the view may have moved on
        since."""
        scope, before = assembly.view.scope, self._known.pop(question, None)
        if len(question[1]) > MAX_QUESTION_BYTES or not scope.complete:
            return
        incarnation, revision = stands_on
        answer = Answer(
            scope,
            incarnation,
            revision,
            assembly.selected.engine,
            assembly.outcome,
            assembly.tokens,
            reused,
        )
        if before is not None:
            self._bytes -= len(before.reply)
            if (before.incarnation, before.revision) == stands_on:
                answer.reply = reply
                self._bytes += len(reply)
        self._known[question] = answer
        while len(self._known) > MAX_QUESTIONS or self._bytes > self._room:
            self._bytes -= len(self._known.popitem(last=False)[1].reply)

    def forget(self, scope: Scope) -> None:
        """Lets go of what was answered about a session."""
        for question in [
            question for question, known in self._known.items() if known.scope == scope
        ]:
            self._bytes -= len(self._known.pop(question).reply)
