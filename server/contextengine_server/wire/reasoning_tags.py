"""Tags of reasoning in what a model says: what stands between them goes, what stands in code stays.

After Comis's (packages/agent/src/context-engine/reasoning-tag-stripper.ts), which takes a tag that
is never closed for a mistake: the tag goes, and what follows it stays. `privacy` decides otherwise
for what leaves the model's own context, where a doubt keeps a text in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_THINK = r"think(?:ing)?|thought|antthinking"
_TAG = re.compile(rf"<\s*(/\s*)?({_THINK}|final)(?![\w:.-])[^<>]*>", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})", re.MULTILINE)
_TICKS = re.compile(r"`+")

Span = tuple[int, int]


def has_tags(text: str) -> bool:
    """True where a text has tags outside of code."""
    return "<" in text and _TAG.search(text) is not None and without_tags(text) != text


def without_tags(text: str) -> str:
    """The text without reasoning between tags and without tags around what is final, with no space
    around what is left; as it is where it has none."""
    tags = list(_tags(text))
    if not tags:
        return text
    kept: list[str] = []
    closed = max((at for at, (_, _, closes, alone) in enumerate(tags) if closes > alone), default=0)
    at = behind = 0
    while at < len(tags):
        begin, end, closes, alone = tags[at]
        kept.append(text[behind:begin])
        last = None if closes or alone or at > closed else _closing(tags, at)
        if last is not None:
            at, end = last, tags[last][1]
        behind = end
        at += 1
    kept.append(text[behind:])
    return "".join(kept).strip()


def _closing(tags: Sequence[tuple[int, int, bool, bool]], opened: int) -> int | None:
    """The tag that closes this one: at its depth, else the last; None where there is none."""
    depth, last = 0, None
    for at in range(opened, len(tags)):
        _, _, closes, alone = tags[at]
        if alone:
            continue
        depth += -1 if closes else 1
        if closes:
            last = at
        if not depth:
            return at
    return last


def _tags(text: str) -> Iterator[tuple[int, int, bool, bool]]:
    """The tags outside of code: where each begins and ends, whether it closes, and whether it has
    nothing to do with reasoning: it is around what is final, or holds nothing (`<think/>`)."""
    found = [
        (m.start(), m.end(), bool(m[1]), m[2].casefold() == "final" or m[0][-2] == "/")
        for m in _TAG.finditer(text)
    ]
    if not found or ("`" not in text and "~~~" not in text):
        yield from found
        return
    code = code_spans(text)
    at = 0
    for tag in found:
        while at < len(code) and code[at][1] <= tag[0]:
            at += 1
        if at == len(code) or tag[0] < code[at][0]:
            yield tag


def code_spans(text: str) -> list[Span]:
    """Where code stands in a text, fenced or inline, in order and apart. A fence that is not closed
    holds all of the rest; a run of backticks that has no like is no code."""
    spans: list[Span] = []
    at = 0
    for fence in _FENCE.finditer(text):
        if fence.start() < at:
            continue
        spans += _inline(text, at, fence.start())
        at = _fence_end(text, fence)
        spans.append((fence.start(), at))
    return [*spans, *_inline(text, at, len(text))]


def _fence_end(text: str, fence: re.Match[str]) -> int:
    mark = fence[1]
    closing = re.compile(rf"^[ \t]*{re.escape(mark[0])}{{{len(mark)},}}[ \t]*$", re.MULTILINE)
    closed = closing.search(text, fence.end())
    return closed.end() if closed is not None else len(text)


def _inline(text: str, first: int, last: int) -> list[Span]:
    """Inline code between two places: from a run of backticks to the next of the same length."""
    runs = [(m.start(), m.end()) for m in _TICKS.finditer(text, first, last)]
    following: dict[int, list[int]] = {}
    for number, (begin, end) in enumerate(runs):
        following.setdefault(end - begin, []).append(number)
    spans: list[Span] = []
    at = 0
    used = dict.fromkeys(following, 0)
    while at < len(runs):
        begin, end = runs[at]
        alike, place = following[end - begin], used[end - begin]
        while place < len(alike) and alike[place] <= at:
            place += 1
        used[end - begin] = place
        if place == len(alike):
            at += 1
            continue
        spans.append((begin, runs[alike[place]][1]))
        at = alike[place] + 1
    return spans
