"""Seeing that a host cut messages out of its list. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .naming import said
from .types import Message

LEAST = 2
"""How many messages must follow that stood further on for what was between to be cut out: one is
said again by a user who went back, too."""


class Cuts:
    """What a host's list said last. Ids of `name_by_content` say where two lists part, and not
    whether the host went back to there or cut out what followed: a list that keeps its
    instructions or first request, and its end."""

    def __init__(self) -> None:
        self._ids: tuple[str, ...] = ()
        self._said: tuple[str, ...] = ()

    def follow(self, messages: Sequence[Message]) -> bool:
        """Whether the host cut messages out of its list before it handed over this one."""
        ids = tuple(message.id for message in messages)
        grew = self._ids == ids[: len(self._ids)]
        same = len(self._ids) if grew else common(self._ids, ids)
        before = self._said
        now = before[:same] + tuple(said(message) for message in messages[same:])
        stayed = not grew and not set(self._ids).isdisjoint(ids[same:])
        self._ids, self._said = ids, now
        # A host's own ids stay with what they name, wherever it stands.
        return not stayed and any(
            before[at : at + LEAST] == now[same : same + LEAST]
            for at in range(same + 1, len(before) - LEAST + 1)
        )


class Every:
    """All ids that there are: those of a conversation whose host's list is all of it. They are
    named by all that stands before them (`name_by_content`), so that behind one that is not stored
    none is."""

    def __contains__(self, id: object) -> bool:
        return True


def strides(last: int) -> Iterator[int]:
    """Places before `last`, from the newest to the first: each of some, and then ever fewer."""
    back = 1
    while back < last:
        yield last - back
        back += 1 if back < EACH else back
    if last:
        yield 0


EACH = 8
"""So many of the newest places are looked at one by one: hosts seldom go back by more."""


def common(one: Sequence[str], other: Sequence[str]) -> int:
    """How long both begin alike."""
    same = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        same += 1
    return same
