"""Compaction by an engine that takes a list of messages and answers another: what it left out, and
what it wrote in place of that.

Such an engine knows neither steps nor summaries. What it answers is read as changes of the list
that it was given: a stretch that it left out is summarized, by what it wrote there or, where it
wrote nothing, by the summarizers. Whatever else it did is not done: messages stay as they came, and
what a law keeps is kept.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

import msgspec

from contextengine_server.context.scope import Scope

from .contract import Engine
from .hosted.kept import SessionChunks

ChatMessage = dict[str, Any]
"""A message in the form of OpenAI's chat API: `role`, `content`, `tool_calls`, `tool_call_id`."""

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
MIN_QUOTED = 16
"""Characters from which on a message that stands in a longer one counts as quoted there: shorter
ones may be there by chance."""


class Place(msgspec.Struct, frozen=True):
    """Where messages of a list stand in the session."""

    first: int
    """The first step."""
    last: int
    summary: str = ""
    """The id of the summary that a message is; empty: it is of the session itself."""
    fixed: bool = False
    """True where a law keeps it, whatever an engine would do."""


class RewriteRequest(msgspec.Struct, frozen=True, eq=False):
    """A list of messages that is to become smaller. Tokens in the reference encoding."""

    scope: Scope
    messages: Sequence[ChatMessage]
    """The view, in order: summaries as messages of a user or a model, whichever is next."""
    places: Sequence[Place]
    """Where each of them stands."""
    tokens: int
    """What the view comes to, or the whole prompt where the harness measured more."""
    available: int
    """What the budget leaves for messages."""
    force: bool = False
    focus: str = ""
    memory_context: str = ""
    """What a memory of the host's holds of the messages."""
    life: str = ""
    """Names the session's life: another one begins when it is emptied, or erased and begun anew."""
    compactions: int = 0
    """How often the session was compacted so far."""
    model: str = ""
    """The model that reads the list; empty: it is not known."""
    provider: str = ""
    chunks: SessionChunks | None = None
    """See Conversation."""


class Rewriter(Protocol):
    """An engine's `rewriter`: a member beside its contract."""

    async def rewrite(self, request: RewriteRequest) -> Sequence[ChatMessage] | None:
        """The list as it should be; None: as it is. What it is given stays as it is. Raises
        EngineBroken. May take its time: nothing is locked."""

    def try_again(self) -> None:
        """An operator says that what did not come back may be asked again."""


def rewriter_of(engine: Engine) -> Rewriter | None:
    """What answers `CompactionStep.rewrites`; None: the engine has none."""
    return cast("Rewriter | None", getattr(engine, "rewriter", None))


class Change(msgspec.Struct, frozen=True):
    """A stretch that was left out."""

    first: int
    """The first step."""
    last: int
    replaces: tuple[str, ...] = ()
    """The summaries in it."""
    text: str = ""
    """What was written in its place; empty: nothing was."""


def wrong_with(answer: object) -> str:
    """Why an answer is no list of messages; empty: it is one."""
    if not isinstance(answer, list):
        return f"answered a {type(answer).__name__} and no list of messages"
    for index, message in enumerate(answer):
        if not isinstance(message, Mapping):
            return f"answered a list whose item {index} is a {type(message).__name__}"
        role = message.get("role")
        if not isinstance(role, str) or role not in ROLES:
            return f"answered a list whose item {index} has no role of a message"
        if not isinstance(message.get("tool_call_id"), (str, type(None))):
            return f"answered a list whose item {index} has a tool_call_id that is no text"
        if not isinstance(message.get("content"), (str, list, type(None))):
            return f"answered a list whose item {index} has a content that is neither text nor list"
    return ""


def read_changes(
    given: Sequence[ChatMessage], places: Sequence[Place], answer: Sequence[ChatMessage]
) -> list[Change]:
    """What was left out of a list, and what was written there, in order. Nothing where no message
    was left out: as many, by the same speakers, are the same in other words."""
    if [one.get("role") for one in given] == [one.get("role") for one in answer]:
        return []
    kept, written = _aligned(given, places, answer)
    runs = _runs(places, kept)
    texts: list[list[str]] = [[] for _ in runs]
    for gap, text in written:
        if runs:
            texts[_run_at(runs, gap)].append(text)
    changes = []
    for (begin, end), said in zip(runs, texts, strict=True):
        among = places[begin:end]
        text = "\n\n".join(said)
        if text or any(not place.summary for place in among):
            replaced = dict.fromkeys(place.summary for place in among if place.summary)
            changes.append(Change(among[0].first, among[-1].last, tuple(replaced), text))
    return changes


Run = tuple[int, int]
"""The first message of a stretch, and the one behind it."""


def _runs(places: Sequence[Place], kept: set[int]) -> list[Run]:
    """The stretches that were left out. A step of which anything stayed stays whole: a call does
    not part from its results."""
    stays = {(places[index].first, places[index].last) for index in kept}
    runs: list[Run] = []
    for index, place in enumerate(places):
        if place.fixed or (place.first, place.last) in stays:
            continue
        if runs and runs[-1][1] == index:
            runs[-1] = (runs[-1][0], index + 1)
        else:
            runs.append((index, index + 1))
    return runs


def _run_at(runs: Sequence[Run], gap: int) -> int:
    """The stretch in whose place something was written before the message `gap`: the one that lies
    there, else the one before it, else the first."""
    return max(0, bisect_left([begin for begin, _ in runs], gap + 1) - 1)


def _aligned(
    given: Sequence[ChatMessage], places: Sequence[Place], answer: Sequence[ChatMessage]
) -> tuple[set[int], list[tuple[int, str]]]:
    """The messages that stayed, and what was written, each with the message before which it
    stands. What begins and what ends the list is found first, so that a text that is there twice is
    found where it stands."""
    kept: set[int] = set()
    written: list[tuple[int, str]] = []

    def keep(index: int, message: ChatMessage, gap: int) -> None:
        kept.add(index)
        more = _added(given[index], message)
        if more and not places[index].fixed:
            written.append((gap, more))

    begin, shorter = 0, min(len(given), len(answer))
    while begin < shorter and _same(given[begin], answer[begin]):
        keep(begin, answer[begin], begin)
        begin += 1
    back = 0
    while back < shorter - begin and _same(given[-1 - back], answer[-1 - back]):
        back += 1
    end, answer_end = len(given) - back, len(answer) - back
    where: dict[object, list[int]] = {}
    for index in range(begin, end):
        where.setdefault(_key(given[index]), []).append(index)
    at = begin
    for message in answer[begin:answer_end]:
        found = where.get(_key(message), [])
        place = bisect_left(found, at)
        if place < len(found):
            keep(found[place], message, found[place])
            at = found[place] + 1
        elif text := text_of(message):
            written.append((at, text))
    for index in range(end, len(given)):
        keep(index, answer[index - len(given)], end)
    return kept, written


def _key(message: ChatMessage) -> object:
    """What a message is found again by, although its text may be another: a result and calls by
    their ids."""
    if message.get("tool_call_id"):
        return ("tool", message["tool_call_id"])
    calls = call_ids(message)
    return calls or (message.get("role"), text_of(message))


def _same(given: ChatMessage, other: ChatMessage) -> bool:
    if given is other or _key(given) == _key(other):
        return True
    if given.get("role") != other.get("role") or other.get("tool_call_id"):
        return False
    if call_ids(given) or call_ids(other):
        return False
    return bool(_added(given, other))


def _added(given: ChatMessage, other: ChatMessage) -> str:
    """What stands around a message's own text in another that quotes it; a message with calls is
    known by these, and may say nothing itself."""
    said, longer = text_of(given), text_of(other)
    if given.get("tool_call_id") or len(longer) <= len(said) or said not in longer:
        return ""
    if len(said) < MIN_QUOTED and not call_ids(given):
        return ""
    before, _, behind = longer.partition(said) if said else (longer, "", "")
    return "\n".join(filter(None, (before.strip(), behind.strip())))


def call_ids(message: ChatMessage) -> tuple[str, ...]:
    """The ids of a message's tool calls."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return ()
    return tuple(str(call.get("id", "")) for call in calls if isinstance(call, Mapping))


def text_of(message: ChatMessage) -> str:
    """A message's text, its parts joined."""
    content = message.get("content")
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, Mapping))
        content = "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""
