"""What goes upstream: the client's own bytes, wherever it is shown what it said."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from contextengine import Assembly
from contextengine.types import Item, Message

from .calls import as_given, named_in
from .dialects.dialect import Entry, verbatim
from .document import Document
from .reading import Request

_FINDER = re.compile(r" Find them with (\w+)\.")
"""Where the service names a tool of recall, which a client need not have."""


class Writer:
    """Writes the requests of one conversation, each time only what was not shown the time before:
    the service shows most of its list again, as the same items, of the same messages."""

    def __init__(self) -> None:
        self._items: tuple[Item, ...] = ()
        self._messages: list[Message] = []
        self._shown = Shown()

    def written(self, request: Request, assembly: Assembly) -> bytes:
        """The request's body with what the service shows in place of the conversation. Messages
        that are shown as they were are the client's own, byte for byte; so is the whole body where
        all of them are."""
        dialect, document, items = request.dialect, request.document, assembly.items
        addition = said(assembly.response.system_prompt_addition, document)
        own = {name: at for at, name in enumerate(request.ids)}
        same = _begins(items, self._items) and _begins(request.messages, self._messages)
        if not (same and self._shown.others.isdisjoint(own)):
            self._items, self._shown = (), Shown()
        for at in range(len(self._items), len(items)):
            self._shown.add(items[at], at, request, own)
        self._items, self._messages = items, request.messages
        if self._shown.as_it_was and len(items) == len(request.ids) and not addition:
            return document.body
        leading = document.originals[: request.leading]
        others = dialect.instructed(document, addition, leading) if addition else {}
        messages = [*leading, *dialect.arranged(self._shown.entries), *document.order]
        return document.changed(messages, others)


@dataclass(slots=True)
class Shown:
    """Items as they are sent."""

    entries: list[Entry] = field(default_factory=list)
    others: set[str] = field(default_factory=set)
    """The ids of those that are none of the client's messages."""
    as_it_was: bool = True
    """Whether they are the client's list as far as they go, each message as the client wrote it."""
    _given: dict[str, str] = field(default_factory=dict)
    """What the newest calls are called in what is sent, by our names."""

    def add(self, item: Item, at: int, request: Request, own: Mapping[str, int]) -> None:
        """The next item. own: where each of the client's messages stands in its list, by id."""
        message = item.message
        place = own.get(message.id)
        self.as_it_was = self.as_it_was and place == at and verbatim(item)
        if place is None:
            self.others.add(message.id)
            self._write(message, request)
            return
        client = request.messages[place]
        ours = (one.call_id for one in named_in(client))
        self._given.update(zip(ours, request.calls[place], strict=True))
        if verbatim(item):
            elements = request.elements(place)
            self.entries += [Entry(one, False, client, place == 0) for one in elements]
        else:
            self._write(message, request)

    def _write(self, message: Message, request: Request) -> None:
        """A message that is none of the client's, or one of it in another form."""
        ours = [one.call_id for one in named_in(message)]
        message = as_given(message, self._given)
        written = [json.dumps(one) for one in request.dialect.write(message)]
        self.entries += [Entry(one, True, message) for one in written]
        if ours:
            # It may come with what the client called it once: so do the results behind it.
            sent = [one.call_id for read in request.dialect.read(written) for one in named_in(read)]
            self._given.update(zip(ours, sent, strict=False))


def _begins(whole: Sequence[object], part: Sequence[object]) -> bool:
    """Whether it begins with a part. Told fast, as most are the very same objects."""
    return whole[: len(part)] == part


def said(addition: str, document: Document) -> str:
    """What the service adds to the instructions, without a tool that the client does not offer."""
    tools = document.raw("tools")
    return _FINDER.sub(lambda found: found[0] if found[1] in tools else "", addition)
