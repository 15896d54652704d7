"""Messages that stand or fall together, found in a list without the service's help. Pure.

A tool call stands with its results, reasoning with what it produced. What may not stand alone is
left out or made whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .costs import bound
from .types import (
    ROLE_ASSISTANT,
    ROLE_TOOL,
    Item,
    Message,
    Origin,
    Part,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

OURS = "ce:"
"""How ids begin that belong to the service."""
NO_RESULT = "No result was recorded."


@dataclass(slots=True)
class Atom:
    """Entries of a list that stand or fall together."""

    entries: list[tuple[Item, int]] = field(default_factory=list)
    """Items, each with its cost in tokens."""
    open: list[ToolCallPart] = field(default_factory=list)
    """Calls that wait for their results."""

    @property
    def cost(self) -> int:
        return sum(cost for _, cost in self.entries)

    @property
    def messages(self) -> list[Message]:
        return [item.message for item, _ in self.entries]


def atoms_of(entries: Iterable[tuple[Item, int]]) -> list[Atom]:
    """The atoms of a list. Results without a call are left out, calls that were left get a made-up
    result.

    Calls of the last atom stay open: they are pending.
    """
    atoms: list[Atom] = []
    for item, cost in entries:
        current = atoms[-1] if atoms else Atom()
        answered = 0
        if _answers(item.message):
            item, answered = _answering(item, current)
            if not item.message.parts:
                continue
        reasoned = atoms and item.message.role == ROLE_ASSISTANT and _only_reasoning(current)
        if answered or reasoned:
            current.entries.append((item, cost))
            current.open += _calls(item.message)
        else:
            _close(current)
            atoms.append(Atom([(item, cost)], _calls(item.message)))
    return atoms


def _answers(message: Message) -> bool:
    return message.role == ROLE_TOOL or any(part.HasField("tool_result") for part in message.parts)


def _answering(item: Item, atom: Atom) -> tuple[Item, int]:
    """The item without results that answer no open call of the atom; the others close theirs. And
    how many did."""
    kept: list[Part] = []
    answered = 0
    for part in item.message.parts:
        if not part.HasField("tool_result"):
            kept.append(part)
            continue
        call = next((call for call in atom.open if call.call_id == part.tool_result.call_id), None)
        if call is not None:
            atom.open.remove(call)
            kept.append(part)
            answered += 1
    if len(kept) == len(item.message.parts):
        return item, answered
    copy = Item()
    copy.CopyFrom(item)
    copy.message.ClearField("parts")
    copy.message.ClearField("native")
    copy.message.parts.extend(kept)
    return copy, answered


def _only_reasoning(atom: Atom) -> bool:
    last = atom.messages[-1]
    return (
        last.role == ROLE_ASSISTANT
        and len(last.parts) > 0
        and all(part.HasField("reasoning") for part in last.parts)
    )


def _calls(message: Message) -> list[ToolCallPart]:
    if message.role != ROLE_ASSISTANT:
        return []
    return [part.tool_call for part in message.parts if part.HasField("tool_call")]


def _close(atom: Atom) -> None:
    """Gives the calls that are open a result that says there is none."""
    caller = next((message.id for message in reversed(atom.messages) if _calls(message)), "")
    for call in atom.open:
        text = Part(text=TextPart(text=NO_RESULT))
        result = ToolResultPart(call_id=call.call_id, name=call.name, parts=[text], is_error=True)
        made_up = Message(
            id=f"{OURS}no-result:{caller}:{call.call_id}",
            role=ROLE_TOOL,
            parts=[Part(tool_result=result)],
        )
        origin = Origin(synthetic="no result was recorded")
        cost = bound(made_up)
        atom.entries.append(
            (Item(id=made_up.id, message=made_up, origin=origin, tokens=cost), cost)
        )
    atom.open = []
