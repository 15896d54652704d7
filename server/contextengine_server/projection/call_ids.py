"""Ids of tool calls as a provider takes them: the same on both sides of a pair, and in every later
projection of the session."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from .model import Loss
from .text import sha256

_HEX = "0123456789abcdef"


class CallIdFormat(msgspec.Struct, frozen=True, eq=False):
    """Which ids a provider takes, and what stands in the place of one that it does not take.
    Compared by identity: forms that share a format share what is known of a message's ids.

    Raises ValueError where a replacement would not fit the pattern itself.
    """

    pattern: re.Pattern[str]
    """A whole id has to match it."""
    prefix: str = "c_"
    """How a replacement begins."""
    digits: int = 20
    """How many hexadecimal digits of a hash follow the prefix."""

    def __post_init__(self) -> None:
        if self.digits < 8:
            raise ValueError("a replacement of fewer than 8 digits is not unique for long")
        for digit in _HEX:
            if not self.fits(replacement := self.prefix + digit * self.digits):
                raise ValueError(f"the replacement {replacement!r} does not fit the pattern")

    def fits(self, name: str) -> bool:
        """True where the provider takes the id."""
        return self.pattern.fullmatch(name) is not None

    def replacement(self, text: str) -> str:
        """An id that fits; equal for equal texts."""
        return self.prefix + sha256(text)[: self.digits]


PLAIN = CallIdFormat(re.compile(r"[a-zA-Z0-9_-]{1,64}"))
"""What Anthropic takes (rule A7), and OpenAI and Gemini as well (rules R11 and C3 ask for at most
64 characters)."""


class CallIds:
    """The ids of the calls of one list, each used once. Those that do not fit the format, or that
    an earlier message has, are replaced, and `losses` says so."""

    def __init__(self, format: CallIdFormat, losses: list[Loss]) -> None:
        self.format = format
        self._losses = losses
        self._used: set[str] = set()

    def fork(self, losses: list[Loss]) -> CallIds:
        """Another that goes on from here and adds to `losses`."""
        twin = CallIds(self.format, losses)
        twin._used = set(self._used)
        return twin

    def claim(self, ids: Sequence[str]) -> bool:
        """Uses ids that fit and differ; False, and none is used, where an earlier call has one."""
        free = self._used.isdisjoint(ids)
        if free:
            self._used.update(ids)
        return free

    def name(self, original: str, place: str, index: int) -> str:
        """The id of a call that the model named `original`. `place` names the call within the
        session, so that its replacement stays the same; `index` is the item's, for the loss."""
        name = original
        if not self.format.fits(original) or original in self._used:
            name = self.format.replacement(f"{original}|{place}")
            while name in self._used:
                name = self.format.replacement(f"{name}|{place}")
            self._losses.append(Loss(index, f"call id {original!r} is {name} here", "call ids"))
        self._used.add(name)
        return name
