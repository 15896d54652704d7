"""Calls with their results, as every target wants them: each call answered once, right behind the message that made it.

An assembly is lawful already; a list that is projected as it is may be cut anywhere. So a result far behind its call comes up to
it, a call without one is answered with an error that says so, and a result without a call becomes a note of the user's role.
Calls are the model's: one in a message of another role is shown as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .describing import NO_RESULT
from .model import Call, Item, Loss, Part, Result, Role, Text, text_of


@dataclass(frozen=True, slots=True)
class Answered:
    """A call, and what answers it. `key` names the call by its place, the same in every projection of the session."""

    call: Call
    result: Result
    key: str


@dataclass(frozen=True, slots=True)
class Said:
    """An item's own parts, results taken out, and the answers to its calls in the calls' order."""

    index: int
    item: Item
    parts: tuple[Part, ...]
    answers: tuple[Answered, ...] = ()


def pair(items: Sequence[Item], losses: list[Loss]) -> list[Said]:
    """The items in order, results moved to their calls. What had to be changed is added to `losses`."""
    found = _matches(items)
    said: list[Said] = []
    for index, item in enumerate(items):
        if item.role is not Role.TOOL and not any(isinstance(part, Call | Result) for part in item.parts):
            said.append(Said(index, item, item.parts))
            continue
        own: list[Part] = []
        answers: list[Answered] = []
        for place, part in enumerate(item.parts):
            if isinstance(part, Call) and item.role is not Role.ASSISTANT:
                losses.append(Loss(index, "a call that no model made: shown as text", "pairs"))
                own.append(Text(f"[Tool call {part.id!r} of {part.name}]\n{part.arguments}"))
            elif isinstance(part, Call):
                own.append(part)
                answers.append(_answered(items, index, place, part, found, losses))
            elif isinstance(part, Result):
                if (index, place) not in found.taken:
                    losses.append(Loss(index, "a result without a call: shown as the user's text", "pairs"))
                    own.extend(_note(part))
            else:
                own.append(part)
        if own or not item.parts:
            spoken = replace(item, role=Role.USER) if item.role is Role.TOOL else item
            said.append(Said(index, spoken, tuple(own), tuple(answers)))
    return said


@dataclass(slots=True)
class _Matches:
    by_call: dict[tuple[int, int], tuple[int, int]]
    taken: set[tuple[int, int]]


def _matches(items: Sequence[Item]) -> _Matches:
    """Each call with the next result of its id that no earlier call took, up to the next call of that id."""
    by_call: dict[tuple[int, int], tuple[int, int]] = {}
    open_calls: dict[str, list[tuple[int, int]]] = {}
    for index, item in enumerate(items):
        for place, part in enumerate(item.parts):
            if isinstance(part, Call) and item.role is Role.ASSISTANT:
                waiting = open_calls.setdefault(part.id, [])
                # An id used again ends the wait of the earlier message; calls of one message wait side by side.
                waiting[:] = [at for at in waiting if at[0] == index]
                waiting.append((index, place))
            elif isinstance(part, Result) and open_calls.get(part.id):
                by_call[open_calls[part.id].pop(0)] = (index, place)
    return _Matches(by_call, set(by_call.values()))


def _answered(
    items: Sequence[Item], index: int, place: int, call: Call, found: _Matches, losses: list[Loss]
) -> Answered:
    item = items[index]
    key = f"{item.sequence or -index - 1}:{place}"
    where = found.by_call.get((index, place))
    if where is None:
        losses.append(Loss(index, "a call without a result: an error stands in its place", "pairs"))
        return Answered(call, Result(call.id, call.name, (Text(NO_RESULT),), is_error=True), key)
    if any(_speaks(items[between]) for between in range(index + 1, where[0])):
        losses.append(Loss(where[0], "a late result: moved up to its call", "pairs"))
    result = items[where[0]].parts[where[1]]
    assert isinstance(result, Result)
    return Answered(call, result, key)


def _speaks(item: Item) -> bool:
    return not all(isinstance(part, Result) for part in item.parts)


def _note(result: Result) -> list[Part]:
    label = f"[Result of the tool call {result.id!r}{f' of {result.name}' if result.name else ''}, which is not shown]"
    others = [part for part in result.parts if not isinstance(part, Text)]
    return [Text(f"{label}\n{text_of(result.parts)}"), *others]
