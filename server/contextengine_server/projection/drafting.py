"""A list on its way into a provider's form: written message by message, so that one that begins as
another did goes on from there.

What is appended to a context changes nothing of what stands before it, once every call there has
its result. So a projection of a warm context costs in proportion to what was appended, as an
assembly does, and one copy of the whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from .model import Item, Loss, Role
from .naming import CallIds
from .pairing import Lost, Said, pair
from .rendering import ProviderTask

LEADING = (Role.SYSTEM, Role.DEVELOPER)
"""Who speaks the instructions at the beginning of a session."""
STRIDE = 8
"""Messages that are written again before a later point is kept to go on from."""
_ENTRY_BYTES = 60
"""What a message takes in a draft that is kept, about: references alone, its JSON is kept beside
it."""


class Draft(ABC):
    """What is written of a list. Subclasses add their own parts, and copy these in `fork`."""

    def __init__(self) -> None:
        self.losses: list[Loss] = []
        self.ids = CallIds(self.losses)

    def fork(self) -> Self:
        """Another that goes on from here, while this one stays as it is."""
        twin = copy(self)
        twin.losses = [*self.losses]
        twin.ids = self.ids.fork(twin.losses)
        return twin

    def add(self, index: int, said: Said) -> None:
        """Goes on with a message."""
        if said.lost:
            self.lose(index, said.lost)
        self.write(index, said, self.ids.of(index, said) if said.ids else ())

    @abstractmethod
    def write(self, index: int, said: Said, names: Sequence[str]) -> None:
        """Writes a message; `names` are the ids of its calls."""

    def lose(self, index: int, lost: Sequence[Lost]) -> None:
        """Notes what the form cannot say of a message."""
        self.losses += [Loss(index, *one) for one in lost]


D = TypeVar("D", bound=Draft)


@dataclass(frozen=True, slots=True)
class _Begun:
    """A draft of these items, to go on from."""

    items: list[Item]
    draft: Any


def drafted(task: ProviderTask, key: Hashable, begin: Callable[[], D]) -> D:
    """The whole context, this turn's prompt at its end. `key` names the form, and what besides the
    items decides about it."""
    prompt = [Item(Role.USER, tuple(task.prompt))] if task.prompt else []
    items = [*task.items, *prompt]
    shelf = items[0].shelf if items else None
    known: _Begun | None = shelf.kept.get((_Begun, key)) if shelf is not None else None
    start = len(known.items) if known is not None else 0
    goes_on = known is not None and items[:start] == known.items
    start = start if goes_on else 0
    draft: D = known.draft.fork() if known is not None and goes_on else begin()
    paired = pair(items, start)
    # The newest message may still change: the point to go on from is before it.
    end = max((index for index, _ in paired.said[-3:] if index < len(task.items)), default=0)
    for index, said in paired.said:
        if index == end and shelf is not None and end - start > STRIDE and paired.settled >= end:
            shelf.keep((_Begun, key), _Begun(items[:end], draft.fork()))
            shelf.grew(_ENTRY_BYTES * (end - (len(known.items) if known is not None else 0)))
        draft.add(index, said)
    draft.losses += paired.late
    return draft
