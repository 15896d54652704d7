"""The summarizer that needs no key and no network: it quotes what the messages themselves said.

What users said comes first, word for word, within room of its own; then a ledger of what was done,
by rule; then, for the rest of the room, notes: the sentences and lines that bring the most for
their tokens. Said words stand in the order in which they were said. The same request gives the same
summary, on any machine.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Protocol

from msgspec.structs import replace

from contextengine_server.notices import parted
from contextengine_server.summarize.extractive.choice import UnitChoice
from contextengine_server.summarize.extractive.ledger import chosen, ledger_of
from contextengine_server.summarize.extractive.page import SummaryPage
from contextengine_server.summarize.extractive.passages import SourcePassage, passages_of
from contextengine_server.summarize.extractive.tools import (
    Place,
    ToolUse,
    file_names,
    files_named,
    standing,
    uses_of,
)
from contextengine_server.summarize.extractive.units import PIECE_CHARS, Unit, units_of
from contextengine_server.summarize.extractive.users import UserWords, user_words
from contextengine_server.summarize.redaction import redact
from contextengine_server.summarize.request import (
    SourceMessage,
    SummarizerFailed,
    SummaryRequest,
    SummaryResult,
)
from contextengine_server.summarize.workers.pool import WorkerPool

NAME = "extractive"

_TOGETHER = 32
"""Messages that are packed for a worker at a time, between which the loop has its turn."""

_MOST = 0.8
"""The share of its source that a summary takes at most: the law asks that it shrinks."""
_LEDGER = 0.5
"""The share of what users' words leave that the ledger may take."""
_QUOTED = 0.5
"""The share of what it says otherwise that files may take which users named."""
_LEAST_LEDGER = 24
"""Tokens in which a ledger says something."""
_ROOM = 8
"""Tokens left of the target that are worth another look."""
_PIECES = (PIECE_CHARS, PIECE_CHARS // 2, PIECE_CHARS // 4)
"""Of a page that nothing fits on, long texts are cut into shorter pieces."""


class Originals(Protocol):
    """Where the messages come from that summaries stand for."""

    async def __call__(self, request: SummaryRequest) -> Sequence[SourceMessage]:
        """What the request is made of, with messages in place of its summaries, as far as it
        goes."""


class ExtractiveSummarizer:
    """Extracts in a worker process, in a session's reference encoding. `originals`: a summary over
    summaries is made of the messages below them; without, of their texts."""

    name = NAME

    def __init__(self, pool: WorkerPool, encoding: str, originals: Originals | None = None) -> None:
        self._pool = pool
        self._encoding = encoding
        self._originals = originals

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        """The summary, at most the target and at most half of the source. Raises
        SummarizerFailed."""
        anew = any(message.role == "summary" for message in request.messages)
        if anew and self._originals:
            request = replace(request, messages=tuple(await self._originals(request)))
        parts = await _packed(request.messages)
        bare = replace(request, messages=())
        return await self._pool.run(
            request.tenant, _extract_packed, parts, bare, self._encoding, anew
        )


async def _packed(messages: Sequence[SourceMessage]) -> list[bytes]:
    """Messages as they go to a worker, in parts: those below a summary may be thousands, and all of
    them at once took 50 ms."""
    parts: list[bytes] = []
    for first in range(0, len(messages), _TOGETHER):
        part = tuple(messages[first : first + _TOGETHER])
        parts.append(pickle.dumps(part, pickle.HIGHEST_PROTOCOL))
        await asyncio.sleep(0)
    return parts


def _extract_packed(
    parts: Sequence[bytes], request: SummaryRequest, encoding: str, anew: bool
) -> SummaryResult:
    messages = tuple(message for part in parts for message in pickle.loads(part))
    return extract_in_worker(replace(request, messages=messages), encoding, anew)


def extract_in_worker(request: SummaryRequest, encoding: str, anew: bool = False) -> SummaryResult:
    """`extract` with the counter of a worker process; of a handoff no secret is left in it."""
    count = _counter(encoding)
    found = extract(request, count, anew=anew)
    if request.handoff is None:
        return found
    text = redact(found.text)
    return found if text == found.text else replace(found, text=text, tokens=count(text))


@cache
def _counter(encoding: str) -> Callable[[str], int]:
    from contextengine_server.tokens import (
        TokenCounter,
    )  # late: the serving process never counts here

    return TokenCounter(encoding).count_text


def extract(
    request: SummaryRequest, count: Callable[[str], int], *, anew: bool = False
) -> SummaryResult:
    """The extractive summary of a request; `anew`: of the messages below summaries, of which it may
    say more than these did. Pure. Raises SummarizerFailed where nothing fits the target."""
    stands_for = float(request.source_tokens)
    if anew:
        stands_for = max(stands_for, sum(map(_chars, request.messages)) / 4)
    most = min(max(1, int(stands_for * _MOST)), max(1, request.source_tokens - 1))
    target = min(request.target_tokens, most)
    uses = uses_of(request.messages)
    ledger = ledger_of(uses)
    most_quoted = min(request.quoted_tokens, most - target)
    named, quoted = _quoted(request, uses, most_quoted + int(target * _QUOTED), count)
    passages = passages_of(request.messages, uses, ledger.mended, named)
    page = SummaryPage(passages)
    everything = sum(map(_chars, request.messages))
    words = _say(
        page, passages, everything, target, count, focused=bool(request.focus), worked=bool(uses)
    )
    used = count(page.text())
    room = int((target - used) * _LEDGER)
    page.ledger = chosen(ledger.lines, room, count) if room >= _LEAST_LEDGER else ()
    target += min(quoted, most_quoted)
    for chars in _PIECES:
        units = units_of(
            passages, page.said, talk=words.talk, users_first=words.first, piece_chars=chars
        )
        _note(page, units, request, target, count)
        if page.text():
            break
    left = target - count(page.text())
    if page.ledger and left >= _LEAST_LEDGER:
        before = page.ledger
        page.ledger = chosen(ledger.lines, room + left, count)
        if count(page.text()) > target:
            page.ledger = before
    _say_in_full(page, target, count)
    text = page.text()
    if not text:
        raise SummarizerFailed(
            f"nothing fits {target} tokens" if passages else "the messages hold no text"
        )
    return SummaryResult(text, count(text), NAME)


def _say(
    page: SummaryPage,
    passages: Sequence[SourcePassage],
    everything: int,
    target: int,
    count: Callable[[str], int],
    *,
    focused: bool,
    worked: bool,
) -> UserWords:
    """Puts users' words on the page."""
    room = target
    while True:
        words = user_words(passages, everything, room, count, focused=focused, worked=worked)
        page.said = words.shown
        if not words.shown or count(page.text()) <= target * words.most:
            return words
        # Counted together, with what frames them, they came to more than one by one.
        room = room * 4 // 5


def _note(
    page: SummaryPage,
    units: Sequence[Unit],
    request: SummaryRequest,
    target: int,
    count: Callable[[str], int],
) -> None:
    """Fills what is left of the target with notes."""
    choice = UnitChoice(
        units,
        [count(label) if label else 0 for label in page.labels()],
        count,
        focus=request.focus,
        previous=request.previous_summary,
        told=(*page.said.values(), *page.ledger),
    )
    left = target - count(page.text())
    while left >= _ROOM and choice.take(left):
        # The units were counted one by one; together, with what joins them, they come to a little
        # more or less.
        page.notes = choice.chosen
        while (over := count(page.text()) - target) > 0 and choice.drop(over):
            pass
        left = target - count(page.text())


def _say_in_full(page: SummaryPage, target: int, count: Callable[[str], int]) -> None:
    """Spends what is left of the target, once nothing more is to be told, on the words that notes
    were told without: on those of the most valuable ones first."""
    left = target - count(page.text())
    short, full = page.notes, list(page.notes)
    for at, unit in enumerate(short):
        more = count(unit.said) - count(unit.text)
        if more <= left:
            full[at] = replace(unit, text=unit.said)
            left -= more
    page.notes = full
    for at in reversed(range(len(full))):
        if full[at] is short[at]:
            continue
        # As above: together they may come to more than one by one.
        if count(page.text()) <= target:
            return
        full[at] = short[at]


def _quoted(
    request: SummaryRequest,
    uses: Mapping[Place, ToolUse],
    room: int,
    count: Callable[[str], int],
) -> tuple[frozenset[str], int]:
    """The files that users named whose text fits so much room, the smallest first, and its tokens:
    a part of a file does not spare its being read again."""
    said = (parted(message.text)[0] for message in request.messages if message.role == "user")
    named = files_named(uses, {*request.named, *file_names(said)})
    sizes = dict.fromkeys(sorted(named), 0)
    for place, text in standing(uses, named).items() if named else ():
        if uses[place].kind == "read" and uses[place].target in sizes:
            sizes[uses[place].target] += count(text)
    quoted, total = set[str](), 0
    for path, size in sorted(sizes.items(), key=lambda one: one[1]):
        if total + size <= room:
            quoted.add(path)
            total += size
    return frozenset(quoted), total


def _chars(message: SourceMessage) -> int:
    """How much a message says, calls and results included."""
    called = sum(len(call.arguments) for call in message.calls)
    return len(message.text) + called + sum(len(result.text) for result in message.results)
