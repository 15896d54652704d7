"""One summarizer after the other, until one gives a summary that deserves the name; at the end the
note that counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from contextengine_server.summarize.chain.count_only import NAME as COUNT_ONLY
from contextengine_server.summarize.chain.count_only import count_only
from contextengine_server.summarize.request import (
    Cause,
    Failure,
    NobodyThere,
    Summarizer,
    SummarizerFailed,
    SummaryRequest,
    SummaryResult,
    Unacceptable,
)

EMPTY = "empty"
"""Why an answer without a word is no summary."""

_INSTRUCTION_CHARS = 32
"""A focus of fewer characters is a topic rather than an instruction."""

# Both are matched at the beginning alone: a summary may well speak of an error or of what was
# refused.
_REFUSAL = re.compile(
    r"""\W*(
    (i['’]?m|i\ am|we['’]?re)\ (very\ |so\ |really\ )?(sorry|afraid|unable\ to|not\ able\ to)\b
  | ((sorry|my\ apologies|apologies|unfortunately)\W+(but\ )?)?
    (i|we)\ (can['’]?t|cannot|can\ not|won['’]?t|will\ not|am\ unable\ to)\ (\w+\ ){0,2}
    (help|assist|provide|comply|fulfil|summari|generate|create|process|continue|complete|answer
    |share|do\ (that|this))
  | as\ an?\ (ai|(large\ )?language\ model)\b
  | (很|非常)?(抱歉|对不起) | 我(无法|不能) | 作为(一个|一名)?(ai|人工智能|语言模型)
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_ERROR = re.compile(
    r"""\W*(
    (\w+\.)*\w*(error|exception)\b\s*[:(\d\[]
  | "?error"?\s*[:=]
  | traceback\ \(most\ recent\ call\ last\)
  | (an?\ )?((internal|unknown|unexpected)\ )?(server\ )?error\ (has\ )?occurr?ed
  | (http(/[\d.]+)?\ +)?(status\ (code\ )?)?[45]\d\d\W+
    (bad|un|pay|forb|not\ |too|internal|service|gateway|request\ time)
  | (internal\ server\ error|bad\ gateway|service\ unavailable|gateway\ time-?out
    |too\ many\ requests)\b
  | (rate\ limit|quota|(maximum\ |model['’]?s\ )?context[ _](length|window))
    \W+(\w+\W+){0,4}(exceed|reach|is\ \d)
  | (the\ )?request\ (was\ )?timed?\ ?out | connection\ (reset|refused|error|aborted)
  | <!doctype | <html
    )""",
    re.IGNORECASE | re.VERBOSE,
)


class SummarizerChain:
    """Tries summarizers in order, each of which bounds its own time. Always answers: what none of
    them manages, the note that counts does. `count` counts tokens in the reference encoding.
    """

    name = "chain"

    def __init__(self, summarizers: Sequence[Summarizer], count: Callable[[str], int]) -> None:
        self._summarizers = tuple(summarizers)
        self._count = count

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        """The first summary that is acceptable, with what was refused before it. Only cancellation
        is raised; and SummarizerFailed where the request wants one that is better than another."""
        if request.better_than:
            return await first_acceptable(self._before(request.better_than), request, self._count)
        try:
            return await first_acceptable(self._summarizers, request, self._count)
        except SummarizerFailed as error:
            note = count_only(request, self._count)
            failure = error.kind if "failed" in error.causes else None
            return replace(
                note,
                refused=error.refused,
                spent=error.spent,
                causes=error.causes,
                failure=failure,
            )

    def _before(self, name: str) -> Sequence[Summarizer]:
        """The links before the one of this name; the name of none of them is that of a model, and
        the models are the first link."""
        if name == COUNT_ONLY:
            return self._summarizers
        names = [one.name for one in self._summarizers]
        return self._summarizers[: names.index(name) if name in names else 1]


async def first_acceptable(
    summarizers: Sequence[Summarizer], request: SummaryRequest, count: Callable[[str], int]
) -> SummaryResult:
    """The first acceptable summary. Raises SummarizerFailed, with every reason, where there is
    none."""
    refused: list[tuple[str, str]] = []
    causes: dict[Cause, None] = {}
    spent, asked = 0, False
    failure: Failure | None = None
    for summarizer in summarizers:
        try:
            result = await summarizer.summarize(request)
        except NobodyThere:
            continue
        except SummarizerFailed as error:
            refused += error.refused or [(summarizer.name, str(error))]
            causes |= dict.fromkeys(error.causes)
            spent, asked = spent + error.spent, asked or error.asked
            failure = error.kind if "failed" in error.causes else failure
            continue
        except Exception as error:
            # The type alone: an error's text may quote the messages, and this is logged.
            refused.append((summarizer.name, type(error).__name__))
            causes["failed"] = None
            asked, failure = True, "other"
            continue
        refused += result.refused
        causes |= dict.fromkeys(result.causes)
        spent, asked = spent + result.spent, True
        try:
            text, tokens = accept(
                result.text, request, count, quoted=result.summarizer == "extractive"
            )
        except Unacceptable as error:
            refused.append((summarizer.name, str(error)))
            causes["failed"] = None
            failure = error.kind
            continue
        return replace(
            result,
            text=text,
            tokens=tokens,
            refused=tuple(refused),
            spent=spent,
            causes=tuple(causes),
            failure=failure,
        )
    if not refused:
        raise NobodyThere("there is no summarizer")
    reason = "; ".join(f"{name}: {why}" for name, why in refused)
    raise SummarizerFailed(
        reason,
        asked=asked,
        spent=spent,
        refused=tuple(refused),
        causes=tuple(causes),
        kind=failure or "other",
    )


def accept(
    text: str, request: SummaryRequest, count: Callable[[str], int], *, quoted: bool = False
) -> tuple[str, int]:
    """A summarizer's answer as it may be stored, and its tokens. Raises Unacceptable, saying why it
    may not."""
    text = clean(text)
    tokens = count(text)
    reason = unacceptable(text, tokens, request, quoted=quoted)
    if reason is not None:
        raise Unacceptable(reason, kind="blank" if reason == EMPTY else "other")
    return text, tokens


def clean(text: str) -> str:
    """`text` without white space around it, and without what UTF-8 or a terminal cannot carry."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", "", text).strip()


def unacceptable(
    text: str, tokens: int, request: SummaryRequest, *, quoted: bool = False
) -> str | None:
    """Why `text` must not become a summary; None where it may."""
    if not re.search(r"\w", text):
        return EMPTY
    if not quoted and _REFUSAL.match(text):
        return "refusal"
    if not quoted and _ERROR.match(text):
        return "error text"
    if not quoted and _repeats_focus(text, request):
        return "repeats the focus"
    if tokens >= request.source_tokens:
        return f"not smaller than its source: {tokens} tokens for {request.source_tokens}"
    return None


def _repeats_focus(text: str, request: SummaryRequest) -> bool:
    """True where a summary holds the instructions that were to steer it, other than by what the
    messages say."""
    focus = " ".join(request.focus.casefold().split())
    # A few words are a topic, and a summary may well name its topic.
    if len(focus) < _INSTRUCTION_CHARS or focus not in " ".join(text.casefold().split()):
        return False
    return not any(
        focus in " ".join(message.whole.casefold().split()) for message in request.messages
    )
