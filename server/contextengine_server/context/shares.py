"""Sharing too little room among messages: small ones stand whole, large ones get equal shares, as
water finds its level; and each is cut, head and tail, to what it gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .message import Slot

LEAST_CHARS = 40
"""Less of a text than this says nothing."""
_TRIES = 8


def level(sizes: Sequence[int], room: int) -> int:
    """The most that each may take so that all of them take no more than the room together; the
    largest size where they do anyway."""
    left, waiting = room, sorted(sizes)
    for at, size in enumerate(waiting):
        share = left // (len(waiting) - at)
        if size > share:
            return max(0, share)
        left -= size
    return waiting[-1] if waiting else 0


def cut_to(show: Callable[[int], Slot | None], chars: int, tokens: int) -> tuple[Slot | None, int]:
    """A message in no more than so many tokens, and the characters of it that this leaves; None
    where so few cannot be had. `show` shows so many characters of it, None where it has no more;
    `chars` is where the search begins."""
    for _ in range(_TRIES):
        if chars < LEAST_CHARS:
            break
        shown = show(chars)
        if shown is None:  # its texts have no more: it is large by something else
            chars //= 2
            continue
        if shown.tokens <= tokens:
            return shown, chars
        chars = min(chars - 1, chars * tokens // shown.tokens)
    return None, 0
