# Generated from aio_mirror.py by `make sync`. Change that module instead.
"""A session that is kept where its host's list of messages is, blocking. `aio_mirror` is the
same for asyncio."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import types as t
from .attempts import Attempts
from .batching import batches
from .cuts import Cuts, Every
from .deltas import Assembly
from .feed import Feed
from .times import timed

if TYPE_CHECKING:
    from .client import Client


class Mirror:
    """A session as the mirror of its host's whole list: by the ids of its messages where the
    session knows one of them, else by what they say (a list whose beginning was cut off, or what
    followed its beginning, or a session whose messages came without ids). Either way the session
    ends where the list does.

    Messages need ids that stay: the host's own, or those of `name_by_content`. One call at a time:
    whoever shares it holds a lock. An outage is raised (ContextEngineError), and the same list may
    be handed over again: what is stored already is not stored twice.
    """

    def __init__(self, client: Client, ref: t.SessionRef, *, whole: bool = False) -> None:
        """whole: whether the list is all of the conversation, so that what it leaves out was taken
        out of it, wherever it stood; its ids are those of `name_by_content` then. Else hosts cut
        lists to make room, and what they cut stays.
        """
        self._feed = Feed(client, ref)
        self.session = client.session(agent_id=ref.agent_id, session_id=ref.session_id)
        """The session's other calls. Whoever writes by them lets `forget` be called."""
        self.by_ids = True
        """Whether the list was found by its ids, as far as it was looked for."""
        self._cuts = None if whole else Cuts()
        self._left = Every() if whole else None

    def forget(self) -> None:
        """Nothing is known of the session any more: others wrote to it."""
        self._feed.forget()
        self.by_ids = True

    def ends_with(self, ids: Sequence[str]) -> bool:
        """Whether these are what the session was last known to hold, by their ids."""
        return self._feed.ends_with(ids)

    def assemble(
        self, messages: Sequence[t.Message], *, timeout: float | None = None, **asked: Any
    ) -> Assembly:
        """Stores what is new of the host's whole list and answers what fits, in one call where
        little is new. asked: what else an Assemble takes (`budget`, `model` …)."""
        attempts = Attempts(timeout, time.monotonic)
        ids = [message.id for message in messages]
        self._follow(messages)
        try:
            held = None
            if self.by_ids:
                held = self._feed.held(ids, left=self._left, timeout=attempts.timeout())
            new = [*batches(timed(messages[held or 0 :], held or 0))]
            stored: dict[str, Any] = {"ingest": new[0] if new else ()}
            if held is None:
                live = [_anonymous(one) for one in messages]
                stored = {"live": t.LiveList(messages=live, store_new=True, takes_back=True)}
            elif len(new) > 1:
                self._feed.bring(messages, left=self._left, timeout=attempts.timeout())
                stored = {}
            assembly = self.session.assemble(
                fallback=False, timeout=attempts.timeout(), **stored, **asked
            )
        except BaseException:
            self._feed.forget()  # whether it is stored is not known, even of a call given up
            raise
        self.by_ids = held is not None
        if held is not None:
            self._feed.wrote(ids)
        return assembly

    def bring(
        self, messages: Sequence[t.Message], *, ended: bool, timeout: float | None = None
    ) -> None:
        """Stores what is new of the host's whole list. ended: whether the turn is over, so that
        the service may compact."""
        attempts = Attempts(timeout, time.monotonic)
        self._follow(messages)
        if self.by_ids:
            brought = self._feed.bring(
                messages, left=self._left, ended=ended, timeout=attempts.timeout()
            )
            self.by_ids = brought is not None
        if not self.by_ids:
            self.assemble(messages, timeout=attempts.timeout())
            if ended:
                self.session.after_turn(fallback=False, timeout=attempts.timeout())

    def _follow(self, messages: Sequence[t.Message]) -> None:
        """A list that something was cut out of is looked for by what it says: by its ids it would
        be one that went back to where the cut begins."""
        if self._cuts is not None and self._cuts.follow(messages):
            self.by_ids = False


def _anonymous(message: t.Message) -> t.Message:
    copy = t.Message()
    copy.CopyFrom(message)
    copy.id = ""
    return copy
