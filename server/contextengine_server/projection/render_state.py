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

from .call_ids import CallIds
from .model import ChatRole, Item, Loss
from .provider import ProviderTask
from .tool_pairs import Lost, PairedMessage, pair

LEADING = (ChatRole.SYSTEM, ChatRole.DEVELOPER)
"""Who speaks the instructions at the beginning of a session."""
STRIDE = 8
"""Messages that are written again before a later point is kept to go on from."""
_ENTRY_BYTES = 60
"""What a message takes in a draft that is kept, about: references alone, its JSON is kept beside
it."""


class RenderState(ABC):
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

    def add(self, index: int, said: PairedMessage) -> None:
        """Goes on with a message."""
        if said.lost:
            self.lose(index, said.lost)
        self.write(index, said, self.ids.of(index, said) if said.ids else ())

    @abstractmethod
    def write(self, index: int, said: PairedMessage, names: Sequence[str]) -> None:
        """Writes a message; `names` are the ids of its calls."""

    def lose(self, index: int, lost: Sequence[Lost]) -> None:
        """Notes what the form cannot say of a message."""
        self.losses += [Loss(index, *one) for one in lost]


D = TypeVar("D", bound=RenderState)


@dataclass(frozen=True, slots=True)
class _Begun:
    """A draft of these items, to go on from."""

    items: list[Item]
    state: Any


def write_items(task: ProviderTask, key: Hashable, begin: Callable[[], D]) -> D:
    """The whole context, this turn's prompt at its end. `key` names the form, and what besides the
    items decides about it."""
    prompt = [Item(ChatRole.USER, tuple(task.prompt))] if task.prompt else []
    items = [*task.items, *prompt]
    cache = items[0].cache if items else None
    known: _Begun | None = cache.kept.get((_Begun, key)) if cache is not None else None
    start = len(known.items) if known is not None else 0
    goes_on = known is not None and items[:start] == known.items
    start = start if goes_on else 0
    state: D = known.state.fork() if known is not None and goes_on else begin()
    paired = pair(items, start)
    # The newest message may still change: the point to go on from is before it.
    end = max((index for index, _ in paired.said[-3:] if index < len(task.items)), default=0)
    for index, said in paired.said:
        if index == end and cache is not None and end - start > STRIDE and paired.settled >= end:
            cache.keep((_Begun, key), _Begun(items[:end], state.fork()))
            cache.grew(_ENTRY_BYTES * (end - (len(known.items) if known is not None else 0)))
        state.add(index, said)
    state.losses += paired.late
    return state
