"""The sentences of a text that somebody says in their own words: without code, quotations, output
of programs, and what a host put in."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

MAX_SENTENCE = 400
"""Characters of a sentence that is looked at; longer ones are lists or output."""

_FENCED = re.compile(r"(?ms)^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)")
_TAG = re.compile(r"<([A-Za-z][\w-]{2,40})(?:\s[^<>]{0,200})?>")
"""What stands between tags was put in by a host: recalled memory, files, metadata."""
_QUOTED_LINE = re.compile(r"^\s*(?:>|\|)")
_OUTPUT_LINE = re.compile(
    r"^(?:\t| {4,}\S|\s*(?:[$%#]\s\S|>>>|\.\.\.|\+{3}|-{3}|@@|[{}\[\]<]|//|/\*|import "
    r"|from \w+ import"
    r"|def |class |return\b|const |let |var |function\b|public |private |SELECT |INSERT |UPDATE )"
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:|\s*(?:INFO|DEBUG|WARN(?:ING)?|ERROR|TRACE)\b|\s*at \S+\()"
)
_CODE_END = re.compile(r"(?:[{};]|=>|\\)\s*$")
_MARKER = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)]|#{1,6})\s+")
_EMPHASIS = re.compile(r"\*\*|__|(?<!\w)\*(?=\w)|(?<=\w)\*(?!\w)")
_INLINE = re.compile(r"`([^`\n]{1,200})`")
_SPEECH = re.compile(
    r"\"[^\"]{1,300}\"|“[^”]{1,300}”|「[^」]{1,300}」|『[^』]{1,300}』|«[^»]{1,300}»"
)
_SHORTENED = "".join(
    rf"(?<!\b{word})"
    for word in (
        *("[A-Z]", "Mr", "Ms", "Dr", "Mrs", "St", "No", "vs", "e\\.g", "i\\.e", "Apt", "Ave"),
        *("Inc", "Ltd", "Co", "Corp"),
    )
)
"""Behind these a full stop ends no sentence."""
_END = re.compile(
    rf"(?=[。！？；!?;.])"
    rf"(?P<mark>[。！？；]+[”」』\"]?|(?:[!?;]|{_SHORTENED}\.)[.!?;]*[\"')]?(?=\s|$))"
)
"""Looks for a mark first: what a full stop may not stand behind was looked for at each character,
in 70 to 130 of the 300 µs that a message took."""
_QUESTION_EN = re.compile(
    r"(?i)^(?:(?:and|but|so|or|ok|okay|hi|hello|hey|well|also|please),?\s+)*"
    r"(?:who|whom|whose|what|when|where|why|which|how|is|are|was|were|am|do|does|did|have|has|had"
    r"|can|could|will|would|shall|should|may|might|don't|doesn't|didn't|isn't|aren't|won't)\s+"
    r"(?:is|are|was|were|do|does|did|can|could|will|would|should|have|has|i|you|we|he|she|it|they"
    r"|the|my|our|your|this|that|there|to|about|much|many|long)\b"
)
_QUESTION_ZH = re.compile(
    r"(?:吗|呢|么)\s*$|什么|怎么|怎样|如何|为何|为什么|是不是|是否|有没有|能不能|可不可以|哪(?:个"
    r"|些|里|儿|天|种)|谁|几(?:号|点|月)|多少"
)
_SUPPOSED = re.compile(
    r"(?i)\b(?:if|unless|whether|suppose|supposing|imagine|pretend|assuming|assume|hypothetically"
    r"|in case"
    r"|for example|e\.g\.|as an example|let's say|what if|wish)\b|如果|假如|假设|要是|倘若|万一"
    r"|比如|例如|假装|的话"
)


class Sentence(msgspec.Struct, frozen=True):
    """A sentence, or what of a line is one."""

    text: str
    asks: bool
    supposes: bool
    """It says what would be, or gives an example."""

    @property
    def states(self) -> bool:
        """It says something of the world as it is."""
        return not self.asks and not self.supposes


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences that a text says in its own words, in order."""
    for line in _untagged(_FENCED.sub("\n", text)).splitlines():
        if _QUOTED_LINE.match(line) or _OUTPUT_LINE.match(line) or _CODE_END.search(line):
            continue
        line = _EMPHASIS.sub("", _MARKER.sub("", line))
        line = _INLINE.sub(r"\1", _SPEECH.sub(_unquoted, line))
        start = 0
        for end in _END.finditer(line):
            yield from _sentence(line[start : end.start()], end["mark"])
            start = end.end()
        yield from _sentence(line[start:], "")


def _sentence(text: str, mark: str) -> Iterator[Sentence]:
    said = " ".join(text.split())
    if not 1 < len(said) <= MAX_SENTENCE:
        return
    asks = (
        "?" in mark or "？" in mark or bool(_QUESTION_EN.match(said) or _QUESTION_ZH.search(said))
    )
    yield Sentence(said, asks, bool(_SUPPOSED.search(said)))


def _untagged(text: str) -> str:
    """A text without what stands between a tag and its end."""
    kept, at = [], 0
    for found in _TAG.finditer(text):
        if found.start() < at:
            continue
        end = text.find(f"</{found[1]}>", found.end())
        if end >= 0:
            kept.append(text[at : found.start()])
            at = end + len(found[1]) + 3
    return "\n".join([*kept, text[at:]])


def _unquoted(quoted: re.Match[str]) -> str:
    """A name in quotes stays; speech of others goes."""
    inner = quoted[0][1:-1]
    return inner if len(inner.split()) <= 2 and len(inner) <= 24 else " … "
