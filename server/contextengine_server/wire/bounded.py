"""What of a message is shown in short: base64 within its texts as what it is, and texts over a cap
from head and tail. A marker says what is left out and how to get it back.

After Comis's bound for oversized messages
(packages/agent/src/context-engine/lcd-fresh-tail-bound.ts). Nothing but the text changes: calls
keep their arguments, results their ids and flags.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import msgspec

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.budget import level
from contextengine_server.context.message import Entry, Role, Slot, Traits
from contextengine_server.wire.encoded_runs import may_hold_runs, without_runs

MIN_MARKED_BYTES = 512
"""What is encoded in less holds nothing that `mark_runs` would mark."""

RESULTS_SHARE = 4
"""This part (a quarter) is left to a message's results, whatever is said beside them."""
LEAST_SHARE_CHARS = 200
"""Results that would each have less than this are cut as one: their markers would be more than what
they say."""

_KEPT_CAPS = 8
"""Caps whose slots a message keeps: budgets that take turns, and what is tried for a share."""


_MARKER = re.compile(
    r"(?:\[\.\.\. (\d[\d,]{0,14}) of (\d[\d,]{0,14}) characters are left out here; the whole"
    r" message is stored:|: left out here;) expand sequence (\d{1,15}) to read it(?: \.\.\.)?\]"
)
"""What `left_out_marker` and `mark_runs` put into the texts of a stored message."""


class Shortened(msgspec.Struct, frozen=True):
    """What a message in short says of itself."""

    sequence: int
    """Where the whole of it is stored."""
    chars: int | None
    """So many characters are shown of what it says beside results; None: all but base64."""


class HeadAndTail(Protocol):
    """Makes a message's shorter form."""

    def head_and_tail(self, entry: Entry, chars: int, each: bool = False) -> Slot | None: ...


class Bounded:
    """A message's slot under a cap, made once for each cap; None where the cap takes nothing
    away."""

    __slots__ = ("_entry", "_made", "_shaper")

    def __init__(self, shaper: HeadAndTail, entry: Entry) -> None:
        self._shaper, self._entry = shaper, entry
        self._made: dict[tuple[int, bool], Slot | None] = {}

    def __call__(self, chars: int, each: bool = False) -> Slot | None:
        cap = chars, each
        if cap not in self._made:
            if len(self._made) == _KEPT_CAPS:
                self._made.clear()
            self._made[cap] = self._shaper.head_and_tail(self._entry, chars, each)
        return self._made[cap]


def may_be_bounded(traits: Traits) -> bool:
    """True for what a user, the model or a tool said. What a system or a developer says stands as
    it is (law 4), as does sealed reasoning with what it came with (law 3) and whatever is pinned;
    the newest user message is not asked for (law 4)."""
    spoken = traits.role in (Role.USER, Role.ASSISTANT, Role.TOOL) or traits.only_results
    return spoken and not traits.sealed and not traits.pinned


def may_be_marked(entry: Entry) -> bool:
    """True where a message may hold base64 that is shown as what it is."""
    return not entry.plain and may_be_bounded(entry.traits) and may_hold_runs(entry.body)


def marked(entry: Entry, sequence: int) -> pb.Message:
    """A message decoded, with markers in place of its base64. `sequence`: as for `mark_runs`."""
    message = pb.Message.FromString(entry.body)
    if may_be_marked(entry):
        mark_runs(message, sequence)
    return message


def mark_runs(message: pb.Message, sequence: int) -> int:
    """Puts markers in place of the base64 in a message's texts. `sequence`: where it is stored; 0:
    it is not. Answers how many; 0, and no change, where they hold none."""
    back = f"expand sequence {sequence} to read it" if sequence else "the caller has it"
    found = 0
    for text in texts_in(message.parts):
        if (shown := without_runs(text.text, back)) != text.text:
            text.text = shown
            found += shown.count(back)
    if found:
        message.ClearField("native")  # it would say all of it again
    return found


def cut_texts(message: pb.Message, chars: int, sequence: int) -> bool:
    """Cuts a message's texts, taken together, to `chars` characters, markers apart: each from its
    head and its tail. Where there are results, what is said beside them is whole as long as it
    leaves them a quarter; of them small ones are whole, and the large ones have equal shares, as in
    a step whose results are messages of their own. `sequence`: where it is stored; 0: it is not.
    False, and no change, where the texts have no more."""
    said, results = _apart(message)
    spoken, sizes = _length(said), list(map(_length, results))
    if spoken + sum(sizes) <= chars:
        return False
    most = chars if not results else max(chars - sum(sizes), chars - chars // RESULTS_SHARE)
    left = chars - min(spoken, most)
    share = level(sizes, left)
    if share < min(LEAST_SHARE_CHARS, max(sizes, default=0)):
        results, share = [[text for result in results for text in result]], left
    _cut(said, most, sequence)
    for result in results:
        _cut(result, share, sequence)
    message.ClearField("native")  # it would say all of it again
    return True


def cut_each(message: pb.Message, chars: int, sequence: int) -> bool:
    """The same with so many characters for each result, and for what is said beside them."""
    said, results = _apart(message)
    if all(_length(texts) <= chars for texts in (said, *results)):
        return False
    for texts in (said, *results):
        _cut(texts, chars, sequence)
    message.ClearField("native")  # it would say all of it again
    return True


def _apart(message: pb.Message) -> tuple[list[pb.TextPart], list[list[pb.TextPart]]]:
    """What is said beside a message's results, and the results."""
    answers = (part.tool_result for part in message.parts if part.HasField("tool_result"))
    return list(_said_in(message.parts)), [list(texts_in(answer.parts)) for answer in answers]


def _cut(texts: Sequence[pb.TextPart], chars: int, sequence: int) -> None:
    """Cuts texts, taken as one, to so many characters: half from the head, half from the tail, the
    marker apart."""
    total = _length(texts)
    if total <= chars:
        return
    head = chars // 2
    tail = total - (chars - head)
    at, marked = 0, False
    for text in texts:
        said, start, at = text.text, at, at + len(text.text)
        if at <= head or start >= tail:
            continue
        shown = said[: max(0, head - start)]
        if not marked:
            shown += left_out_marker(tail - head, total, sequence)
            marked = True
        text.text = shown + said[max(0, tail - start) :]


def _length(texts: Iterable[pb.TextPart]) -> int:
    return sum(len(text.text) for text in texts)


def shortened_in(texts: Iterable[str]) -> Shortened | None:
    """What the texts of a message in short say of what it is; None where they say nothing. What
    stands in results may be anybody's, and they are known by their calls."""
    sequence, chars = 0, None
    for text in filter(_may_be_marked, texts):
        for left_out, total, stored in _MARKER.findall(text):
            sequence = int(stored)
            if left_out:
                chars = int(total.replace(",", "")) - int(left_out.replace(",", ""))
    return Shortened(sequence, chars) if sequence else None


def _may_be_marked(text: str) -> bool:
    """Texts are long, and few are marked: what is common to all markers is looked for first."""
    return " left out here; " in text


def in_short(entry: Entry, how: Shortened) -> pb.Message:
    """A stored message as it was shown, but for its results."""
    shown = marked(entry, entry.sequence)
    if how.chars is not None:
        _cut(list(_said_in(shown.parts)), how.chars, entry.sequence)
    return shown


def _said_in(parts: Iterable[pb.Part]) -> Iterator[pb.TextPart]:
    """The texts of parts, those of results apart."""
    return (part.text for part in parts if part.HasField("text"))


def texts_in(parts: Iterable[pb.Part]) -> Iterator[pb.TextPart]:
    """The texts of parts, those of results included."""
    for part in parts:
        kind = part.WhichOneof("kind")
        if kind == "text":
            yield part.text
        elif kind == "tool_result":
            yield from texts_in(part.tool_result.parts)


def left_out_marker(left_out: int, total: int, sequence: int) -> str:
    """Says how many characters of a text are left out where it stands, and how to read them."""
    back = (
        f"the whole message is stored: expand sequence {sequence} to read it"
        if sequence
        else "the caller has the whole message"
    )
    return f"\n[... {left_out:,} of {total:,} characters are left out here; {back} ...]\n"
