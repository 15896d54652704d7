# Generated from aio_conversation.py by `make sync`. Change that module instead.
"""A conversation whose whole list its host has at hand at every call, blocking.
`aio_conversation` is the same for asyncio."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any

from . import types as t
from .deltas import Assembly
from .errors import ContextEngineError
from .later import Later
from .mirror import Mirror

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

    def __init__(self, client: Client, ref: t.SessionRef, *, whole: bool = False) -> None:
        """whole: whether the host takes messages out of its list only for them to be gone, and not
        to make room. The session then holds what the list does, and else what was cut out of it,
        too. Messages are named by `name_by_content` then.
        """
        self._mirror = Mirror(client, ref, whole=whole)
        self.session = self._mirror.session
        """The session's other calls. Whoever writes by them lets `forget` be called."""
        self._later = Later(self._end_turn)

    def forget(self) -> None:
        """Nothing is known of the session any more: others wrote to it."""
        self._mirror.forget()

    def assemble(
        self, messages: Sequence[t.Message], *, timeout: float | None = None, **asked: Any
    ) -> Assembly:
        """Stores what is new and answers what fits, in one call where little is new.

        messages: the host's whole list. A list whose beginning was cut off is found in the session
        by what it says. asked: what else an Assemble takes (`budget`, `model` …).
        """
        with self._later.lock:
            assembly = self._mirror.assemble(messages, timeout=timeout, **asked)
            self._later.settle()
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
        self._mirror.bring(messages, ended=True, timeout=timeout)


class Conversations:
    """An agent's conversations by session. Of those that were not spoken of for the longest it is
    forgotten what their sessions hold, which is asked for again."""

    def __init__(self, client: Client, agent_id: str, *, whole: bool = False) -> None:
        """whole: see Conversation."""
        self._client = client
        self._whole = whole
        self._agent_id = agent_id
        self._warm: OrderedDict[str, Conversation] = OrderedDict()

    def of(self, session_id: str) -> Conversation:
        """The conversation of this session."""
        found = self._warm.pop(session_id, None)
        if found is None:
            ref = t.SessionRef(agent_id=self._agent_id, session_id=session_id)
            found = Conversation(self._client, ref, whole=self._whole)
        self._warm[session_id] = found
        if len(self._warm) > MOST_WARM:
            self._warm.popitem(last=False)
        return found


def shown_verbatim(item: t.Item, own: Container[str]) -> bool:
    """Whether the item is one of the host's own messages, named by their ids, as it was."""
    return item.form == t.FORM_UNSPECIFIED and bool(item.id) and item.id in own
