"""Calls under names of ours: what a client calls them is its own affair, and changes.

A reply is stored as the provider gave it, before the client has it in its list. Gemini's calls may
come without an id, and its clients make one up (gemini-cli), or shorten one that they do not like.
A result would then answer a call that nobody knows, so both are stored under a name that is worked
out from what the reply says and where it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from contextengine.formats.gemini import INVENTED
from contextengine.naming import digest
from contextengine.types import Message, ToolCallPart, ToolResultPart

REACH = 200
"""How many messages back a result's call is looked for: as many as one prompt's work has, and
more."""


def name_calls(new: Sequence[Message], before: Sequence[Message], given: dict[str, str]) -> None:
    """Renames, in place, the calls of messages that have their ids, and what answers them.

    before: the messages before them, renamed. given: what the client calls each call, by our name;
    added to.
    """
    known = [*before[-REACH:], *new]
    for at in range(len(known) - len(new), len(known)):
        message = known[at]
        for number, call in enumerate(_calls(message)):
            name = digest(message.id, str(number))
            given[name], call.call_id = call.call_id, name
        for result in _results(message):
            result.call_id = _answered(result, known[: at + 1], given) or result.call_id


def as_given(message: Message, given: dict[str, str]) -> Message:
    """The message with its calls as the client calls them."""
    copy = Message()
    copy.CopyFrom(message)
    for call in _calls(copy):
        call.call_id = given.get(call.call_id, call.call_id)
    for result in _results(copy):
        result.call_id = given.get(result.call_id, result.call_id)
    return copy


def _answered(
    result: ToolResultPart, known: Sequence[Message], given: dict[str, str]
) -> str | None:
    """Our name of the newest call that the client calls so and that nothing has answered."""
    answered: set[str] = set()
    for message in reversed(known):
        answered.update(one.call_id for one in _results(message))
        for call in _calls(message):
            same = given.get(call.call_id) == result.call_id
            if (same or _nameless(result, call)) and call.call_id not in answered:
                return call.call_id
    return None


def _nameless(result: ToolResultPart, call: ToolCallPart) -> bool:
    """Whether a result says of its call the tool alone, and this is one of it."""
    return result.call_id.startswith(INVENTED) and result.name == call.name


def _calls(message: Message) -> Iterator[ToolCallPart]:
    return (part.tool_call for part in message.parts if part.HasField("tool_call"))


def _results(message: Message) -> Iterator[ToolResultPart]:
    return (part.tool_result for part in message.parts if part.HasField("tool_result"))
