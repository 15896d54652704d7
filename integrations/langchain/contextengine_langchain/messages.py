"""Messages of LangChain as the service keeps them, and back. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    SystemMessage,
    ToolMessage,
    messages_from_dict,
    messages_to_dict,
)

from contextengine import Message, name_by_content
from contextengine.conversation import shown_verbatim
from contextengine.formats import from_langchain, to_langchain
from contextengine.types import Item


def kept(messages: Sequence[AnyMessage]) -> list[Message]:
    """As the service keeps them, named by what they say: what is changed under the id that it had
    is another message then, and a caller that hands over its whole list without ids, to which
    LangGraph gives others each time, still has one conversation. Raises FormatError."""
    written: Any = messages_to_dict(list(messages))
    made = from_langchain(map(_plain, written))
    name_by_content(made)
    return made


def shown(
    items: Iterable[Item],
    own: Sequence[AnyMessage],
    kept: Sequence[Message],
    asked: Sequence[Any] | None = None,
) -> list[AnyMessage]:
    """What the service answered, in the agent's own messages where they are shown verbatim.

    asked: the messages of this call, where others made of `own` what they want the model to see: a
    message in place of another, one beside them, one left out. It sees that. None: they did not.
    """
    at = {row.id: index for index, row in enumerate(kept)}
    call = _Call(own, own if asked is None else asked)
    for item in items:
        index = at.get(item.id)
        if index is not None:
            call.come_to(index)
        if index is not None and shown_verbatim(item, at):
            call.show_own(index)
        elif index is None or index in call.given:
            written: Any = messages_from_dict(to_langchain([item.message]))
            for one in written:
                one.id = (item.id if index is None else own[index].id) or None
                call.show_made(one)
    call.come_to(len(own))
    return call.made


class _Call:
    """The list of one call of the model, as it is put together."""

    def __init__(self, own: Sequence[AnyMessage], asked: Sequence[Any]) -> None:
        index = {_name(message): at for at, message in enumerate(own)}
        self.given: dict[int, Any] = {}
        """What the call has of the agent's own messages, by where those stand."""
        self._beside: list[tuple[int, Any]] = []
        """What it has besides, and behind which of the agent's own."""
        self.made: list[Any] = []
        self._calls: set[str | None] = set()
        """The calls that are shown."""
        last = -1
        for message in asked:
            found = index.get(_name(message))
            if found is None:
                self._beside.append((last, message))
            else:
                self.given[found] = message
                last = found
        results = (one for _, one in self._beside if isinstance(one, ToolMessage))
        self._answered = {one.tool_call_id for one in results}

    def come_to(self, index: int) -> None:
        """Shows what stands beside the agent's own messages before this one. A result goes with
        its call."""
        while self._beside and self._beside[0][0] < index:
            _, message = self._beside.pop(0)
            if not isinstance(message, ToolMessage) or message.tool_call_id in self._calls:
                self.made.append(message)

    def show_own(self, index: int) -> None:
        """Shows one of the agent's own messages, as the call has it."""
        if index in self.given:
            self._show(self.given[index])

    def show_made(self, message: AnyMessage) -> None:
        """Shows a message that the service made, but for a result that the call has itself, or
        whose call was left out."""
        if isinstance(message, ToolMessage) and (
            message.tool_call_id in self._answered or message.tool_call_id not in self._calls
        ):
            return
        self._show(message)

    def _show(self, message: Any) -> None:
        self.made.append(message)
        if isinstance(message, AIMessage):
            calls = (*message.tool_calls, *message.invalid_tool_calls)
            self._calls.update(one.get("id") for one in calls)


def _name(message: Any) -> Any:
    """What tells a message from others of its list."""
    return getattr(message, "id", None) or id(message)


def with_addition(system: SystemMessage | None, addition: str) -> SystemMessage | None:
    """The system message with what the service says beside the messages, behind it, so that the
    beginning stays what the provider has cached."""
    if not addition:
        return system
    if system is None:
        return SystemMessage(content=addition)
    content: Any = system.content
    if isinstance(content, str):
        return SystemMessage(content=f"{content}\n\n{addition}")
    return SystemMessage(content=[*content, {"type": "text", "text": addition}])


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Without what is no JSON."""
    found: dict[str, Any] = json.loads(json.dumps(row, default=str, skipkeys=True))
    return found
