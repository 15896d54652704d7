"""How far the rendering of a list has come: it is written message by message, so that a list that
begins as another did goes on from there.

What is appended to a context changes nothing of what stands before it, once every call there has
its result. So a projection of a warm context costs in proportion to what was appended, as an
assembly does, and one copy of the whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from copy import copy
from typing import Any, Self, TypeVar

import msgspec

from .call_ids import CallIdFormat, CallIds
from .model import ChatRole, Item, Loss
from .provider import ProviderTask
from .tool_pairs import Lost, PairedMessage, pair

LEADING = (ChatRole.SYSTEM, ChatRole.DEVELOPER)
"""Who speaks the instructions at the beginning of a session."""
STRIDE = 8
"""Messages that are written again before a later state is kept to go on from."""
_ENTRY_BYTES = 60
"""What a message takes in a state that is kept, about: references alone, its JSON is kept beside
it."""


class RenderState(ABC):
    """What is written of a list so far. A form's own state adds its parts, and copies them in
    `fork`."""

    def __init__(self, call_ids: CallIdFormat) -> None:
        self.losses: list[Loss] = []
        self.ids = CallIds(call_ids, self.losses)

    def fork(self) -> Self:
        """Another that goes on from here, while this one stays as it is."""
        twin = copy(self)
        twin.losses = [*self.losses]
        twin.ids = self.ids.fork(twin.losses)
        return twin

    def add(self, index: int, message: PairedMessage) -> None:
        """Goes on with a message."""
        if message.lost:
            self.lose(index, message.lost)
        self.write(index, message, self._names(index, message) if message.ids else ())

    @abstractmethod
    def write(self, index: int, message: PairedMessage, names: Sequence[str]) -> None:
        """Writes a message; `names` are the ids of its calls, which their results have to carry as
        well."""

    def lose(self, index: int, lost: Sequence[Lost]) -> None:
        """Notes what the form cannot say of a message."""
        self.losses += [Loss(index, *one) for one in lost]

    def _names(self, index: int, message: PairedMessage) -> tuple[str, ...]:
        ids = message.ids
        if message.ids_fit(self.ids.format) and self.ids.claim(ids):
            return ids
        # The sequence, so that a stored message gets the same ids in every list that shows it; what
        # is not stored is named by its place in this list.
        place = message.item.sequence or -index - 1
        return tuple(
            [
                self.ids.name(answered.call.id, f"{place}:{answered.place}", index)
                for answered in message.answers
            ]
        )


S = TypeVar("S", bound=RenderState)


class _Kept(msgspec.Struct, frozen=True):
    """The state once these items are written, to go on from."""

    items: list[Item]
    state: Any


def write_items(task: ProviderTask, form: Hashable, begin: Callable[[], S]) -> S:
    """The state once the whole context is written, this turn's prompt at its end. `form` names the
    form, and what besides the items and the format of ids decides about it."""
    prompt = [Item(ChatRole.USER, tuple(task.prompt))] if task.prompt else []
    items = [*task.items, *prompt]
    cache = items[0].cache if items else None
    key = _Kept, form, task.call_ids
    known: _Kept | None = cache.kept.get(key) if cache is not None else None
    start = len(known.items) if known is not None else 0
    goes_on = known is not None and items[:start] == known.items
    start = start if goes_on else 0
    state: S = known.state.fork() if known is not None and goes_on else begin()
    paired = pair(items, start)
    # The newest message may still change: the state to go on from is before it.
    end = max((index for index, _ in paired.messages[-3:] if index < len(task.items)), default=0)
    for index, message in paired.messages:
        if index == end and cache is not None and end - start > STRIDE and paired.settled >= end:
            cache.keep(key, _Kept(items[:end], state.fork()))
            cache.grew(_ENTRY_BYTES * (end - (len(known.items) if known is not None else 0)))
        state.add(index, message)
    state.losses += paired.late
    return state
