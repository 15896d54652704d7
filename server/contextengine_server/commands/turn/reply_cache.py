"""Questions asked again: a harness whose model call failed asks for the same context once more,
samples of one turn ask at once.

While the session and its engine are what they were, the same request has the same bytes for an
answer (law 9), and those are at hand. What is asked once is not kept: a reply is worth its memory
from the second time on.
"""

from __future__ import annotations

import msgspec
from cachetools import LRUCache

from contextengine_server.context.scope import Scope
from contextengine_server.engines.contract import Engine
from contextengine_server.session.assembly.assembly import Assembly
from contextengine_server.session.selection import Selection
from contextengine_server.store.protocols import Store

MAX_QUESTIONS = 4_096
MAX_QUESTION_BYTES = 4_096
"""What names its session and budget is far shorter; what brings messages along is not asked
twice."""
CACHE_SHARE = 8
"""Answers take at most this part of the memory for warm sessions."""

Question = tuple[str, bytes]
"""The tenant, and the request as it came."""

State = tuple[str, int, bytes]
"""What names a state of a session: its incarnation, the revision, the name of the commit."""


class KeptReply(msgspec.Struct, frozen=True):
    """What a question was answered with, and what it stands on."""

    scope: Scope
    stands_on: State
    engine: Engine
    outcome: int
    tokens: int
    reused: int
    """How many of the tokens the caller held."""
    reply: bytes = b""
    """Empty until the question has come twice."""


class ReplyCache:
    """The newest questions, and the replies to those that came twice."""

    def __init__(self, store: Store, selection: Selection, cache_bytes: int) -> None:
        self._store, self._selection = store, selection
        room = cache_bytes // CACHE_SHARE
        self._share = max(1, room // MAX_QUESTIONS)
        """What every question takes at least, so that their number is bounded as well."""
        self._known: LRUCache[Question, KeptReply] = LRUCache(room, self._size)

    def _size(self, kept: KeptReply) -> int:
        return max(len(kept.reply), self._share)

    async def again(self, question: Question) -> KeptReply | None:
        """The reply, where this was asked before and nothing has changed since."""
        known = self._known.get(question)
        if known is None or not known.reply:
            return None
        head = await self._store.head(known.scope)
        if head is None or (head.incarnation, head.revision, head.commit_id) != known.stands_on:
            return None
        # Another engine or other options are no revision of the session.
        if (await self._selection.engine_for(known.scope)).engine is not known.engine:
            return None
        return known

    def keep(
        self,
        question: Question,
        assembly: Assembly,
        stands_on: State,
        reply: bytes,
        reused: int,
    ) -> None:
        """Remembers that this was asked, and, where it was before, the reply. `stands_on`: the
        session's state when it was assembled; the view may have moved on since."""
        scope, before = assembly.view.scope, self._known.get(question)
        if len(question[1]) > MAX_QUESTION_BYTES:
            return
        again = before is not None and before.stands_on == stands_on
        kept = KeptReply(
            scope,
            stands_on,
            assembly.selected.engine,
            assembly.outcome,
            assembly.tokens,
            reused,
            reply if again else b"",
        )
        if max(len(reply), self._share) <= self._known.maxsize:
            self._known[question] = kept

    def forget(self, scope: Scope) -> None:
        """Lets go of what was answered about a session."""
        for question in [asked for asked, kept in self._known.items() if kept.scope == scope]:
            del self._known[question]
