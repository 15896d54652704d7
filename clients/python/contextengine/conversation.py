# Generated from aio_conversation.py by `make sync`. Change that module instead.
"""A conversation whose whole list its host has at hand at every call, blocking.
`aio_conversation` is the same for asyncio."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any

from . import types as t
from .attempts import Attempts
from .deltas import Assembly
from .errors import ContextEngineError
from .feed import AT_ONCE, Feed
from .later import Later
from .times import timed

if TYPE_CHECKING:
    from .client import Client


MOST_WARM = 1_000
"""Conversations of which it is remembered what their sessions hold."""
LATER_PATIENCE = 1.0
"""Seconds that another attempt at storing the end of a turn may take: a call waits for it."""


class Conversation:
    """A host's conversation. The host's list is the truth, and is handed over at every call: what
    is new in it is stored, what it went back behind leaves the session's view, and what fits is
    answered. What could not be stored comes with the next call, and the end of a turn is stored as
    soon as the service is there, whether or not there is one.

    Messages need ids that stay: the host's own, or those of `name_by_content`. An outage is raised
    (ContextEngineError): the host has its own list to go on with.
    """

    def __init__(self, client: Client, ref: t.SessionRef) -> None:
        self._feed = Feed(client, ref)
        self.session = client.session(agent_id=ref.agent_id, session_id=ref.session_id)
        """The session's other calls. Whoever writes by them lets `forget` be called."""
        self._later = Later(self._end_turn)
        self._cut = False
        """Whether the list's beginning was cut off: what follows has no known place by its ids."""

    def forget(self) -> None:
        """Nothing is known of the session any more: others wrote to it."""
        self._feed.forget()
        self._cut = False

    def assemble(
        self, messages: Sequence[t.Message], *, timeout: float | None = None, **asked: Any
    ) -> Assembly:
        """Stores what is new and answers what fits, in one call where little is new.

        messages: the host's whole list. A list whose beginning was cut off is found in the session
        by what it says. asked: what else an Assemble takes (`budget`, `model` …).
        """
        with self._later.lock:
            assembly = self._assemble(messages, timeout, asked)
            self._later.settle()
            return assembly

    def _assemble(
        self, messages: Sequence[t.Message], timeout: float | None, asked: dict[str, Any]
    ) -> Assembly:
        attempts = Attempts(timeout, time.monotonic)
        ids = [message.id for message in messages]
        try:
            held = None if self._cut else self._feed.held(ids, timeout=attempts.timeout())
            new = messages[held or 0 :]
            stored: dict[str, Any] = {"ingest": timed(new, held or 0)}
            if held is None:
                live = [_anonymous(one) for one in messages]
                stored = {"live": t.LiveList(messages=live, store_new=True, takes_back=True)}
            elif len(new) > AT_ONCE:
                self._feed.bring(messages, timeout=attempts.timeout())
                stored = {}
            assembly = self.session.assemble(
                fallback=False, timeout=attempts.timeout(), **stored, **asked
            )
        except ContextEngineError:
            self.forget()
            raise
        self._cut = held is None
        if held is not None:
            self._feed.wrote(ids)
        return assembly

    def assemble_again(
        self,
        messages: Sequence[t.Message],
        refused: Assembly,
        text: str,
        *,
        timeout: float | None = None,
        **asked: Any,
    ) -> Assembly:
        """What fits half of what a provider refused for its length; the session is compacted
        first. text: what the provider said. The rest as it was for the refused one."""
        asked["budget"] = self.session.overflowed(refused, text, budget=asked.get("budget"))
        return self.assemble(messages, timeout=timeout, **asked)

    def end_turn(self, messages: Sequence[t.Message], *, timeout: float | None = None) -> None:
        """Says that a turn is over, and stores what it added last. messages: the host's whole
        list. What is raised is made good once the service is there."""
        with self._later.lock:
            self._later.settle()
            try:
                self._end_turn(messages, timeout)
            except ContextEngineError:
                self._later.owe(messages)
                raise

    def _end_turn(
        self, messages: Sequence[t.Message], timeout: float | None = LATER_PATIENCE
    ) -> None:
        attempts = Attempts(timeout, time.monotonic)
        if not self._cut:
            brought = self._feed.bring(messages, ended=True, timeout=attempts.timeout())
            self._cut = brought is None
        if self._cut:
            self._assemble(messages, attempts.timeout(), {})
            self.session.after_turn(fallback=False, timeout=attempts.timeout())


class Conversations:
    """An agent's conversations by session. Of those that were not spoken of for the longest it is
    forgotten what their sessions hold, which is asked for again."""

    def __init__(self, client: Client, agent_id: str) -> None:
        self._client = client
        self._agent_id = agent_id
        self._warm: OrderedDict[str, Conversation] = OrderedDict()

    def of(self, session_id: str) -> Conversation:
        """The conversation of this session."""
        found = self._warm.pop(session_id, None)
        if found is None:
            ref = t.SessionRef(agent_id=self._agent_id, session_id=session_id)
            found = Conversation(self._client, ref)
        self._warm[session_id] = found
        if len(self._warm) > MOST_WARM:
            self._warm.popitem(last=False)
        return found


def shown_verbatim(item: t.Item, own: Container[str]) -> bool:
    """Whether the item is one of the host's own messages, named by their ids, as it was."""
    return item.form == t.FORM_UNSPECIFIED and bool(item.id) and item.id in own


def _anonymous(message: t.Message) -> t.Message:
    copy = t.Message()
    copy.CopyFrom(message)
    copy.id = ""
    return copy
