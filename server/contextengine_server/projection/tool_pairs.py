"""Calls with their results, as every target wants them: each call answered once, right behind the
message that made it.

An assembly is lawful already; a list that is projected as it is may be cut anywhere. So a result
far behind its call comes up to it, a call without one is answered with an error that says so, and a
result without a call becomes a note of the user's role. Calls are the model's: one in a message of
another role is shown as text. A harness's own roles speak in the user's voice: no format has a
place for them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from contextengine_server.context.message import NO_RESULT

from .call_ids import CallIdFormat
from .model import (
    ChatRole,
    Item,
    ItemCache,
    Loss,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    text_of,
)

Lost = tuple[str, str]
"""What a form cannot say of a message, and the rule."""


class Sized(Protocol):
    """Something that knows how many bytes it takes, about."""

    @property
    def size(self) -> int: ...


S = TypeVar("S", bound=Sized)


class Answered(msgspec.Struct, frozen=True):
    """A call, its place among the parts of its message, and what answers it."""

    place: int
    call: ToolCall
    result: ToolResult


class PairedMessage:
    """An item's own parts, results taken out, and the answers to its calls in the calls' order. It
    does not know where it stands: what a form makes of it is made once, and joined wherever it
    comes again."""

    __slots__ = (
        "_fits",
        "_fragments",
        "answers",
        "cache",
        "ids",
        "item",
        "lost",
        "parts",
        "sealed",
    )

    def __init__(
        self,
        item: Item,
        parts: tuple[Part, ...],
        answers: tuple[Answered, ...] = (),
        lost: tuple[Lost, ...] = (),
        cache: ItemCache | None = None,
    ) -> None:
        self.item, self.parts, self.answers, self.cache = item, parts, answers, cache
        self.lost = lost
        """What had to be changed."""
        self.ids = tuple([answered.call.id for answered in answers])
        """The ids of the calls, as the model gave them."""
        self.sealed = any(part.seal or isinstance(part, Reasoning) for part in parts)
        """True where it holds reasoning or signatures, which only the model that made them gets
        back."""
        self._fragments: dict[Hashable, Any] = {}
        self._fits: dict[CallIdFormat, bool] = {}

    def ids_fit(self, format: CallIdFormat) -> bool:
        """True where the provider takes the ids, as long as no other message has them."""
        known = self._fits.get(format)
        if known is None:
            known = len(set(self.ids)) == len(self.ids) and all(map(format.fits, self.ids))
            self._fits[format] = known
        return known

    def made(self, key: Hashable, make: Callable[..., S], *args: Any) -> S:
        """What `make` makes of this and `args`, which `key` has to name. Never changed once it is
        made."""
        fragment: S | None = self._fragments.get(key)
        if fragment is None:
            fragment = self._fragments[key] = make(self, *args)
            if self.cache is not None:
                self.cache.grew(fragment.size)
        return fragment


class _Known(msgspec.Struct, frozen=True):
    """What was read of an item that comes again: it holds as long as the same results follow. A
    call gets the next results of its id whatever stands before it, so nothing else needs to be the
    same."""

    message: PairedMessage
    answering: list[Item]
    """The items behind it that hold these results, and nothing else."""


class Paired(msgspec.Struct, frozen=True):
    """Items in order, results moved to their calls."""

    messages: list[tuple[int, PairedMessage]]
    """By their indexes."""
    late: list[Loss]
    settled: int
    """What stands before this index stays as it is, whatever is appended."""


def pair(items: Sequence[Item], start: int = 0) -> Paired:
    """The items from `start` on, excluded ones left out. No call before `start` waits for a
    result."""
    places: list[tuple[int, PairedMessage | None]] = []
    at, end = start, len(items)
    matches = _Matches(end)
    while at < end:
        item = items[at]
        known: _Known | None = item.cache.kept.get(_Known) if item.cache is not None else None
        if known is not None and known.answering == items[at + 1 : at + 1 + len(known.answering)]:
            places.append((at, known.message))
            matches.passed(at, known.message)
            at += len(known.answering)
        elif not item.excluded:
            places.append((at, None))
            matches.take(at, item)
        at += 1
    messages = [
        (at, one)
        for at, known_one in places
        if (one := known_one or _read(items, at, matches)) is not None
    ]
    return Paired(messages, matches.late, matches.loose)


class _Matches:
    """Each call with the next result of its id that no earlier call took, up to the next call of
    that id."""

    def __init__(self, end: int) -> None:
        self.given: dict[int, list[ToolResult | None]] = {}
        """What answers the calls of a message, by its index."""
        self.taken: dict[int, dict[int, int]] = {}
        """The results of a message that answer calls, by its index: their places, and the index of
        the caller."""
        self._waiting: dict[str, list[tuple[int, int]]] = {}
        self.late: list[Loss] = []
        self.loose = end
        """The index of the first message with calls whose results are not all right behind it; else
        of the list's end."""
        self._spoke = -1

    def passed(self, index: int, message: PairedMessage) -> None:
        """Goes on behind a message whose calls are all answered."""
        if message.parts:
            self._spoke = index
        if self._waiting:
            for name in message.ids:
                self._waiting.pop(name, None)

    def take(self, index: int, item: Item) -> None:
        """Goes on with a message."""
        for place, part in enumerate(item.parts):
            if isinstance(part, ToolCall) and item.role is ChatRole.ASSISTANT:
                given = self.given.setdefault(index, [])
                # Where a later message uses an id again, results answer the later call. Calls of
                # one message with the same id are answered in order.
                beside = [at for at in self._waiting.get(part.id, ()) if at[0] == index]
                self._waiting[part.id] = [*beside, (index, len(given))]
                given.append(None)
            elif isinstance(part, ToolResult) and self._waiting.get(part.id):
                caller, at = self._waiting[part.id].pop(0)
                self.given[caller][at] = part
                self.taken.setdefault(index, {})[place] = caller
                if self._spoke > caller:
                    self.late.append(Loss(index, "a late result: moved up to its call", "pairs"))
        if not all(isinstance(part, ToolResult) for part in item.parts):
            self._spoke = index


def _read(items: Sequence[Item], index: int, matches: _Matches) -> PairedMessage | None:
    """The item read for the formats; None where nothing is left of it."""
    item = items[index]
    given = matches.given.get(index, [])
    taken = matches.taken.get(index, {})
    own: list[Part] = []
    answers: list[Answered] = []
    lost: list[Lost] = []
    for place, part in enumerate(item.parts):
        if isinstance(part, ToolCall) and item.role is not ChatRole.ASSISTANT:
            lost.append(("a call that no model made: shown as text", "pairs"))
            own.append(Text(f"[Tool call {part.id!r} of {part.name}]\n{part.arguments}"))
        elif isinstance(part, ToolCall):
            result = given[len(answers)]
            if result is None:
                lost.append(("a call without a result: an error stands in its place", "pairs"))
                result = ToolResult(part.id, part.name, (Text(NO_RESULT),), is_error=True)
            own.append(part)
            answers.append(Answered(place, part, result))
        elif not isinstance(part, ToolResult):
            own.append(part)
        elif place not in taken:
            lost.append(("a result without a call: shown as the user's text", "pairs"))
            own.extend(_note(part))
    if item.parts and not own:
        return None
    if item.role is ChatRole.CUSTOM:
        lost.append((f"the role {item.custom_role!r}: shown as the user's text", "roles"))
        label = Text(f"[{item.custom_role}]\n{text_of(tuple(own))}")
        own = [label, *(part for part in own if not isinstance(part, Text))]
    speaker = (
        replace(item, role=ChatRole.USER) if item.role in (ChatRole.CUSTOM, ChatRole.TOOL) else item
    )
    answering = _answering(items, index, matches)
    if answering is None and index in matches.given:
        matches.loose = min(matches.loose, index)
    cache = item.cache if answering is not None else None
    message = PairedMessage(speaker, tuple(own), tuple(answers), tuple(lost), cache)
    if cache is not None and answering is not None:
        cache.keep(_Known, _Known(message, answering))
    return message


def _answering(items: Sequence[Item], index: int, matches: _Matches) -> list[Item] | None:
    """The items right behind this one that answer all its calls and hold nothing else; None where
    it is not as simple."""
    if any(isinstance(part, ToolResult) for part in items[index].parts):
        return None
    left = len(matches.given.get(index, ()))
    end = index + 1
    while left and end < len(items) and items[end].cache is not None:
        callers = list(matches.taken.get(end, {}).values())
        if not callers or callers != [index] * len(items[end].parts):
            return None
        left -= len(callers)
        end += 1
    return None if left else list(items[index + 1 : end])


def _note(result: ToolResult) -> list[Part]:
    label = (
        f"[Result of the tool call {result.id!r}{f' of {result.name}' if result.name else ''},"
        " which is not shown]"
    )
    others = [part for part in result.parts if not isinstance(part, Text)]
    return [Text(f"{label}\n{text_of(result.parts)}"), *others]
