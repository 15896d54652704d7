"""What the kit puts beside the conversation for one request: an instruction where another is
static, what it remembers, what its caller gives the model to read. Each request has its own, at
another place. Stored, each would stay as something that the user said. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from google.adk.events import Event
from google.genai import types

from .contents import results

RETOLD = "For context:"
"""How the kit begins what another agent said or did."""


@dataclass(frozen=True, slots=True)
class Aside:
    """A content of one request alone."""

    content: types.Content
    behind: int
    """How many contents of the conversation stand behind it."""


def apart(
    contents: Sequence[types.Content],
    events: Sequence[Event],
    given: Sequence[types.Content],
    task: bool,
) -> tuple[list[types.Content], list[Aside]]:
    """The conversation, and what stands beside it. given: what the caller gives to be read. task:
    whether the first content is what another agent asked for, which is no event."""
    asides: list[Aside] = []
    conversation: list[types.Content] = []
    newest, read = _newest(contents), _last(contents, given)
    for at in reversed(range(len(contents))):
        content = contents[at]
        beside = at in read or (
            at in newest and not (task and at == 0) and not _said(content, events)
        )
        if beside:
            asides.append(Aside(content, len(conversation)))
        else:
            conversation.append(content)
    return conversation[::-1], asides[::-1]


def together(conversation: Iterable[types.Content], asides: Iterable[Aside]) -> list[types.Content]:
    """What is shown of the conversation, with what stands beside it."""
    made = [*conversation]
    for aside in asides:
        made.insert(max(0, len(made) - aside.behind), aside.content)
    return made


def _last(contents: Sequence[types.Content], given: Sequence[types.Content]) -> range:
    """Where all of these stand side by side, the last time."""
    many, wanted = len(given), list(given)
    places = reversed(range(len(contents) - many + 1))
    first = next((at for at in places if list(contents[at : at + many]) == wanted), 0)
    return range(first, first + many)


def _newest(contents: Sequence[types.Content]) -> range:
    """Where the kit puts something beside the conversation: before the newest words of the user, or
    behind the newest results. Who changes what users say, as plugins do, changes those words too:
    the last behind what a model said are always the user's."""
    first = len(contents)
    while first and contents[first - 1].role == "user" and not results(contents[first - 1]):
        first -= 1
    answered = bool(first) and results(contents[first - 1])
    return range(first, len(contents) if answered else len(contents) - 1)


def _said(content: types.Content, events: Sequence[Event]) -> bool:
    """Whether somebody said it."""
    if content.parts and (content.parts[0].text or "").startswith(RETOLD):
        return True
    return any(
        event.content is not None and event.content.parts == content.parts
        for event in reversed(events)
    )
