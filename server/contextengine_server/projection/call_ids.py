"""Ids of calls that a target takes, the same on both sides and in every projection of the
session."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .model import Loss
from .text import sha256

if TYPE_CHECKING:
    from .tool_pairs import PairedMessage

PLAIN = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What every provider takes: Anthropic's pattern (rule A7), and the 64 characters of the others
(R11, C3)."""


class CallIds:
    """Names calls. Those that are empty, too long, used before or of other letters become `c_` and
    20 hex digits."""

    def __init__(self, losses: list[Loss]) -> None:
        self._used: set[str] = set()
        self._losses = losses

    def fork(self, losses: list[Loss]) -> CallIds:
        """Another that goes on from here, and tells `losses`."""
        twin = CallIds(losses)
        twin._used = set(self._used)
        return twin

    def of(self, index: int, said: PairedMessage) -> tuple[str, ...]:
        """The ids of the calls of the message at `index`, which their results have to carry as
        well."""
        ids = said.ids
        if said.ids_fit and self._used.isdisjoint(ids):
            self._used.update(ids)
            return ids
        place = said.item.sequence or -index - 1
        return tuple(
            [self.name(one.call.id, f"{place}:{one.place}", index) for one in said.answers]
        )

    def name(self, original: str, key: str, index: int) -> str:
        """The id of the call at `key`, which its result has to carry as well."""
        fits = PLAIN.fullmatch(original) is not None and original not in self._used
        name = original if fits else "c_" + sha256(f"{original}|{key}")[:20]
        if not fits:
            self._losses.append(Loss(index, f"call id {original!r} is {name} here", "call ids"))
        self._used.add(name)
        return name
