"""Calls under names of ours: what a client calls them is its own affair, and changes.

A reply is stored as the provider gave it, before the client has it in its list. Gemini's calls may
come without an id, and its clients make one up (gemini-cli), or shorten one that they do not like.
A result would then answer a call that nobody knows, so both are stored under a name that is worked
out from what is called: the same wherever a list begins. Calls of several replies may share one, as
ids of providers do; which one a result answers is told by where it stands.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from contextengine.formats.gemini import INVENTED
from contextengine.naming import digest, plain_arguments
from contextengine.types import Message, ToolCallPart, ToolResultPart

REACH = 200
"""How many messages back a result's call is looked for: as many as one prompt's work has, and
more."""

Named = ToolCallPart | ToolResultPart
"""What says which call it is."""


def name_calls(
    new: Sequence[Message], before: Sequence[Message], given: Sequence[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    """Renames, in place, the calls of messages and what answers them; how the client calls them,
    message by message, in the order of `named_in`.

    before: the messages before them, renamed. given: what the client calls theirs.
    """
    opened = _Open()
    for message, ids in zip(before[-REACH:], given[-REACH:], strict=True):
        opened.take(message, ids)
    return [opened.rename(message) for message in new]


def named_in(message: Message) -> Iterator[Named]:
    """The calls and the results of a message, in order."""
    for part in message.parts:
        if part.HasField("tool_call"):
            yield part.tool_call
        elif part.HasField("tool_result"):
            yield part.tool_result


def as_given(message: Message, given: Mapping[str, str]) -> Message:
    """The message with its calls under other names, by ours."""
    copy = Message()
    copy.CopyFrom(message)
    for one in named_in(copy):
        one.call_id = given.get(one.call_id, one.call_id)
    return copy


@dataclass(slots=True)
class _Call:
    """A call, by our name, and the tool that it calls."""

    name: str
    tool: str
    answered: bool = False


class _Open:
    """The calls of a list that nothing has answered yet."""

    def __init__(self) -> None:
        self._by_id: defaultdict[str, list[deque[_Call]]] = defaultdict(list)
        """By the client's id: of each reply that has it, the newest last, its calls in order."""
        self._by_tool: defaultdict[str, deque[_Call]] = defaultdict(deque)
        """Those of the newest reply, by their tools."""

    def take(self, message: Message, ids: Sequence[str]) -> None:
        """The next message, renamed before."""
        self._begin(message)
        fresh = set[str]()
        for one, client in zip(named_in(message), ids, strict=True):
            if isinstance(one, ToolCallPart):
                self._open(_Call(one.call_id, one.name), client, fresh)
            else:
                self._answered(client, one.name)

    def rename(self, message: Message) -> tuple[str, ...]:
        """The next message, which is renamed; what the client calls its calls and results."""
        self._begin(message)
        ids = tuple(one.call_id for one in named_in(message))
        fresh = set[str]()
        number = 0
        for one in named_in(message):
            client = one.call_id
            if isinstance(one, ToolCallPart):
                said = plain_arguments(one.arguments_json)
                one.call_id = digest("call", str(number), one.name, said)
                number += 1
                self._open(_Call(one.call_id, one.name), client, fresh)
            elif (call := self._answered(client, one.name)) is not None:
                one.call_id = call.name
        return ids

    def _begin(self, message: Message) -> None:
        if any(part.HasField("tool_call") for part in message.parts):
            self._by_tool.clear()

    def _open(self, call: _Call, client: str, fresh: set[str]) -> None:
        if client not in fresh:
            fresh.add(client)
            self._by_id[client].append(deque())
        self._by_id[client][-1].append(call)
        self._by_tool[call.tool].append(call)

    def _answered(self, client: str, tool: str) -> _Call | None:
        """The call that a result answers: the first of the newest reply with its id; where it says
        the tool alone, as Gemini's may, the first of that tool."""
        replies = self._by_id.get(client, [])
        invented = client.startswith(INVENTED)
        while replies and (not replies[-1] or replies[-1][0].answered):
            if replies[-1]:
                replies[-1].popleft()
            else:
                replies.pop()
        found = replies[-1][0] if replies else None
        if invented and (found is None or found.tool != tool):
            same = self._by_tool[tool]
            while same and same[0].answered:
                same.popleft()
            found = same[0] if same else None
        if found is not None:
            found.answered = True
        return found
