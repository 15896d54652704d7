"""Bringing a session to where its host's own list of messages is, for asyncio. `feed` is the same
for threads, generated from this module."""

from __future__ import annotations

import time
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from . import types as t
from .attempts import Attempts
from .batching import batches
from .cuts import Every, common, strides
from .errors import ContextEngineError, MessageConflict, SessionNotFound
from .times import timed

Rewind = t.RecordHostChangeRequest.Rewind

if TYPE_CHECKING:
    from .aio import AsyncClient

MOST_BACK = 200
"""How many of the host's newest messages are looked at for one that is stored, where the host went
back and nothing is known of before: as many as one prompt's work has, and more."""


class AsyncFeed:
    """What a session holds of its host's list, whose messages have ids that stay. Safe to ask at
    every step: what is there already is not stored again, and what could not be stored comes with
    the next.

    Remembers which ids the session holds, so that a host that goes on costs no question. Whoever
    writes to the session by another way says so with `forget`.
    """

    def __init__(self, client: AsyncClient, ref: t.SessionRef) -> None:
        self._client = client
        self._ref = ref
        self._ids: tuple[str, ...] = ()

    def wrote(self, ids: Sequence[str]) -> None:
        """The session's view ends with these now, the host's whole list."""
        self._ids = tuple(ids)

    def forget(self) -> None:
        """Nothing is known of the session any more."""
        self._ids = ()

    def ends_with(self, ids: Sequence[str]) -> bool:
        """Whether these are what the session was last known to hold."""
        return self._ids == tuple(ids)

    async def held(
        self,
        ids: Sequence[str],
        *,
        left: Container[str] | None = None,
        timeout: float | None = None,
    ) -> int | None:
        """How many of the host's messages, from the first, the session holds: what follows them is
        to be written. Where the host went back (an undo, an edit, a branch), the session is taken
        back first.

        left: the ids of messages that the host has gone back behind, where it knows them: a session
        that ends with another one is only behind, and what it holds is all of another branch where
        none of `ids` is in it. None: a session that ends with none of `ids` was left. The answer is
        then None where the session holds messages and none of these: the list is another's, or its
        beginning was cut off.
        """
        attempts = Attempts(timeout, time.monotonic)
        before = len(self._ids)
        if before and self._ids == tuple(ids[:before]):
            return before
        known = common(self._ids, ids)
        newest = await self._newest(attempts)
        if newest is None:
            return 0
        if not newest and left is None:
            return None
        if newest in ids:
            return len(ids) - list(reversed(ids)).index(newest)
        if left is not None and newest not in left:
            return 0
        first = max(known - 1, 0) if known else max(len(ids) - MOST_BACK, 0)
        last = known if known else len(ids)
        places = range(last - 1, first - 1, -1)
        for at in strides(last) if isinstance(left, Every) and not known else places:
            if await self._rewound(Rewind(after_message_id=ids[at]), attempts):
                return at + 1
        if left is None:
            return None
        await self._rewound(Rewind(after_sequence=0), attempts)
        return 0

    async def bring(
        self,
        messages: Sequence[t.Message],
        *,
        left: Container[str] | None = None,
        grows: bool = False,
        ended: bool = False,
        timeout: float | None = None,
    ) -> int | None:
        """Stores what of the host's whole list the session does not hold, some at a time; how many
        came. What has no time has that of now, but for a list that is seen for the first time.
        None, and nothing is stored: see `held`.

        grows: whether the newest reply may have been less when it was stored, since the host adds
        to it as it comes. What it has become takes its place then.
        ended: whether the turn is over, so that the service may compact.
        """
        attempts = Attempts(timeout, time.monotonic)
        ids = [message.id for message in messages]
        after = await self.held(ids, left=left, timeout=attempts.timeout())
        if after is None:
            return None
        if grows:
            after = await self._without_part(messages, after, attempts)
        stored = after
        try:
            for some in batches(timed(messages[after:], after)):
                stored += len(some)
                if ended and stored == len(messages):
                    await self._client.after_turn(self._ref, some, timeout=attempts.timeout())
                else:
                    await self._client.ingest_batch(self._ref, some, timeout=attempts.timeout())
                self.wrote(ids[:stored])
        except BaseException:
            self.forget()  # whether it is stored is not known, even of a call given up
            raise
        return len(messages) - after

    async def _without_part(
        self, messages: Sequence[t.Message], after: int, attempts: Attempts
    ) -> int:
        """How many of the host's messages the session holds, of which it was said to hold so many:
        where it has a part of the newest reply, it is taken back behind what stands before it."""
        replies = (at for at in reversed(range(after)) if messages[at].role == t.ROLE_ASSISTANT)
        first = next(replies, None)
        if first is None or not messages[first].id:
            return after
        try:
            await self._client.ingest(self._ref, messages[first], timeout=attempts.timeout())
        except MessageConflict:
            before = messages[first - 1].id if first else ""
            if first and not before:
                return after  # nothing says where to go back to
            rewind = Rewind(after_message_id=before) if first else Rewind(after_sequence=0)
            if await self._rewound(rewind, attempts):
                return first
        return after

    async def _newest(self, attempts: Attempts) -> str | None:
        """The id of the newest message in the view that has one. Empty: none has. None: the view
        is empty."""
        try:
            status = await self._client.get_status(self._ref, timeout=attempts.timeout())
        except SessionNotFound:
            return None
        return status.last_message_id if status.message_count else None

    async def _rewound(self, rewind: Rewind, attempts: Attempts) -> bool:
        """Takes the session back. False: to a message that is not there. Each time is another
        change: a host may go back to the same message twice."""
        self.forget()
        try:
            await self._client.record_host_change(
                self._ref, rewind=rewind, timeout=attempts.timeout()
            )
        except ContextEngineError as error:
            if not error.violations:
                raise
            return False
        return True
