"""What a model is given of a long stretch: chosen by whole messages before any of it is redacted or
written out, which is what takes the time.

Even slices over the stretch, the last one ending with the newest message, grow in turn until there
is no more room; what is left out is said at its place. A long message is shown head and tail.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from contextengine_server.summarize.redaction import redact
from contextengine_server.summarize.request import SourceMessage

INPUT_CHARS = 160_000
"""All that is given, as in Hermes's compressor; about 40,000 tokens."""
TEXT_HEAD, TEXT_TAIL, TEXT_CHARS = 4_000, 1_500, 6_000
"""What is given of a text that is longer than the last."""
CALL_HEAD, CALL_CHARS = 1_200, 1_500
"""The same of a call's arguments."""
SLICES = 8
MARGIN = 4_096
"""Characters behind a cut that are looked at for secrets which it would part: longer than any that
is known by its form."""


def bounded(messages: Sequence[SourceMessage], room: int = INPUT_CHARS) -> list[SourceMessage]:
    """The messages that are given, without secrets, in order. Summaries are always among them."""
    sizes = [_size(message) for message in messages]
    kept = _kept(messages, sizes, room)
    return list(_laid_out(messages, kept))


def _kept(messages: Sequence[SourceMessage], sizes: Sequence[int], room: int) -> list[bool]:
    if sum(sizes) <= room:
        return [True] * len(messages)
    kept = [message.role == "summary" for message in messages]
    left = room - sum(size for size, there in zip(sizes, kept, strict=True) if there)
    count = len(messages)
    # (where it goes on, in which direction): all but the last one grow towards the newest.
    slices = [[count * number // SLICES, 1] for number in range(SLICES - 1)] + [[count - 1, -1]]
    while slices:
        for one in list(slices):
            at, way = one
            if not 0 <= at < count or (kept[at] and messages[at].role != "summary"):
                slices.remove(one)
                continue
            if not kept[at]:
                if sizes[at] > left:
                    slices.remove(one)
                    continue
                kept[at] = True
                left -= sizes[at]
            one[0] = at + way
    return kept


def _laid_out(messages: Sequence[SourceMessage], kept: Sequence[bool]) -> Iterator[SourceMessage]:
    missing: list[SourceMessage] = []
    for message, there in zip(messages, kept, strict=True):
        if not there:
            missing.append(message)
            continue
        if missing:
            yield _gap(missing)
            missing = []
        yield _shown(message)
    if missing:
        yield _gap(missing)


def _gap(missing: Sequence[SourceMessage]) -> SourceMessage:
    first, last = missing[0].sequence, missing[-1].sequence
    text = f"[{len(missing)} messages, #{first} to #{last}, are left out here]"
    return SourceMessage("omitted", text, first)


def _shown(message: SourceMessage) -> SourceMessage:
    """One as it is given, as one text."""
    if message.role == "summary":
        return replace(message, text=redact(message.text))
    called = (
        f"{call.name}\n{excerpt(call.arguments, CALL_HEAD, 0, CALL_CHARS)}"
        for call in message.calls
    )
    answered = (excerpt(r.text, TEXT_HEAD, TEXT_TAIL, TEXT_CHARS) for r in message.results)
    said = excerpt(message.text, TEXT_HEAD, TEXT_TAIL, TEXT_CHARS)
    text = "\n".join(filter(None, (said, *called, *answered)))
    return replace(message, text=text, name=redact(message.name), calls=(), results=())


def excerpt(text: str, head: int, tail: int, most: int) -> str:
    """A text without secrets, head and tail of it where it is longer than `most`."""
    if len(text) <= most:
        return redact(text)
    first = redact(text[: head + MARGIN])
    last = redact(text[-(tail + MARGIN) :]) if tail else ""
    if len(first) < head + MARGIN // 2 or (tail and len(last) < tail + MARGIN // 2):
        # So much was taken out that a cut may stand within what is shown.
        whole = redact(text)
        first, last = whole[: head + 1], whole[-(tail + 1) :]
    left_out = len(text) - head - tail
    shown = f"{first[:head]}\n[{left_out:,} characters are left out here]"
    return f"{shown}\n{last[-tail:]}" if tail else shown


def _size(message: SourceMessage) -> int:
    """The most characters that a message takes."""
    if message.role == "summary":
        return len(message.text)
    called = sum(min(len(call.arguments), CALL_CHARS) + len(call.name) for call in message.calls)
    answered = sum(min(len(result.text), TEXT_CHARS) for result in message.results)
    return min(len(message.text), TEXT_CHARS) + called + answered
