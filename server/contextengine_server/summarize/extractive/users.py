"""What users said, word for word, within room of its own.

Where users say little beside all the rest, as in the work of an agent, their words are what a
reader misses first, and cost next to nothing: they go first, each whole as far as the room lets
them, a long one head and tail around a mark. Where they say much, as in a talk between people,
their words compete with all others for the same room. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from contextengine_server.summarize.extractive.passages import SourcePassage

MAX_USER_TOKENS = 300
"""Of a user's message at most so many tokens are kept word for word; of a longer one, a paste as a
rule, the head and the tail."""
LINE_TOKENS = 6
"""What a user's message costs besides its text: its number, who speaks."""
_ROOM = 0.6
"""The share of a summary that users' words may take."""
_RARE, _RARE_ROOM = 0.1, 0.75
"""Where users say less than a tenth of all, they may take more: all the rest can be found in
files and logs again."""
_ASIDE_ROOM = 0.9
"""In a talk without tools, where users say little beside an assistant, they may take nearly all:
what an assistant said can be asked for again."""
MOST_SAID, _ASIDE_MOST = 0.8, 0.95
"""The share that they take at most, with what frames them; and in such a talk."""
_MUCH = 0.35
"""From this share of all on, users' words that do not fit whole compete with all others."""
_COUNTED = 4_000
"""Characters of a message that are counted: of a paste, all are not needed to see that it is
long."""
_CUT = 120
"""In a talk without tools a message that has to be shorter than this is told in its best sentences:
what is asked and told there lies anywhere in it."""
_LEAST = 24
"""A message is not cut to fewer tokens: the mark alone takes a third of them."""


class UserWords(msgspec.Struct, frozen=True):
    """What is shown of users' words."""

    shown: dict[int, str]
    """By the index of the passage."""
    talk: bool
    """True where users say so much that everybody who speaks weighs the same."""
    first: bool = False
    """True where users' sentences come before all others, though not all of them fit."""
    most: float = MOST_SAID
    """The share of the summary that they may take, with what frames them."""


def user_words(
    passages: Sequence[SourcePassage],
    everything: int,
    target: int,
    count: Callable[[str], int],
    *,
    focused: bool,
    worked: bool,
) -> UserWords:
    """What of users' words is shown in a summary of `target` tokens whatever else is, where the
    source has `everything` characters. Where they do not fit and it is `focused`, the focus
    decides which of them are told; where nobody `worked` with a tool, their best sentences are."""
    sizes: dict[int, float] = {}
    said = spoken = 0
    seen: set[str] = set()
    for index, passage in enumerate(passages):
        if passage.kind == "said":
            spoken += len(passage.text)
        if passage.role == "user" and (folded := passage.text.strip().casefold()) not in seen:
            seen.add(folded)
            said += len(passage.text)
            sizes[index] = _tokens(passage.text, count)
    talk = said >= 0.3 * spoken > 0
    aside = not talk and not worked
    rare = _RARE_ROOM if said < _RARE * everything else _ROOM
    room = target * (_ASIDE_ROOM if aside else rare)
    cap = _cap(list(sizes.values()), room)
    if cap < MAX_USER_TOKENS and said >= _MUCH * everything:
        return UserWords({}, talk)
    if cap < min(_CUT, max(sizes.values(), default=0)) and not worked and not focused:
        return UserWords({}, talk, True)
    while cap < min(_LEAST, max(sizes.values(), default=0)):
        # The first request says what it is all about, and the newest what is wanted now.
        oldest = list(sizes)[1 : 1 + max(1, len(sizes) // 8)]
        if focused or not oldest:
            return UserWords({}, talk)
        for index in oldest:
            del sizes[index]
        cap = _cap(list(sizes.values()), room)
    shown = {
        index: _within(passages[index].text.strip(), size, cap) for index, size in sizes.items()
    }
    return UserWords(shown, talk, most=_ASIDE_MOST if aside else MOST_SAID)


def _tokens(text: str, count: Callable[[str], int]) -> float:
    """The tokens of a text; of a long one about."""
    if len(text) <= _COUNTED:
        return count(text)
    return count(text[:_COUNTED]) * len(text) / _COUNTED


def _cap(sizes: Sequence[float], room: float) -> float:
    """The most tokens of a message, such that all of them fit: water-filling, so that the short
    ones stay whole."""
    bounded = sorted(min(size, MAX_USER_TOKENS) for size in sizes)
    left = room - LINE_TOKENS * len(bounded)
    for place, size in enumerate(bounded):
        share = left / (len(bounded) - place)
        if size > share:
            return share
        left -= size
    return float(MAX_USER_TOKENS)


def _within(text: str, size: float, cap: float) -> str:
    """The text without empty lines; of a longer one than the cap its head and its tail around a
    mark."""
    text = "\n".join(row.rstrip() for row in text.splitlines() if row.strip())
    if size <= cap:
        return text
    chars = int(len(text) * cap / size)
    head = _word_end(text, chars * 2 // 3)
    tail = len(text) - _word_end(text[::-1], chars // 3)
    return f"{text[:head].rstrip()} [… {tail - head:,} characters …] {text[tail:].lstrip()}"


def _word_end(text: str, near: int) -> int:
    """Where a word ends, at `near` or a little before it."""
    for at in range(near, max(0, near - 30), -1):
        if text[at - 1].isspace() or (at < len(text) and text[at].isspace()):
            return at
    return near
