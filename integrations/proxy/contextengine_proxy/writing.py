"""What goes upstream: the client's own bytes, wherever it is shown what it said. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from contextengine import Assembly
from contextengine.types import Item, Message

from .dialects.dialect import Dialect, Entry, verbatim
from .document import Document
from .reading import Request

_FINDER = re.compile(r" Find them with (\w+)\.")
"""Where the service names a tool of recall, which a client need not have."""


def written(request: Request, assembly: Assembly) -> bytes:
    """The request's body with what the service shows in place of the conversation. Messages that
    are shown as they were are the client's own, byte for byte; so is the whole body where all of
    them are."""
    dialect, document = request.dialect, request.document
    own = dict(zip(request.ids, request.messages, strict=True))
    addition = said(assembly.response.system_prompt_addition, document)
    shown = [item.message.id for item in assembly.items if verbatim(item)]
    if shown == request.ids and len(shown) == len(assembly.items) and not addition:
        return document.body
    entries = [entry for item in assembly.items for entry in _entries(dialect, item, own)]
    leading = document.originals[: request.leading]
    others = dialect.instructed(document, addition, leading) if addition else {}
    return document.changed([*leading, *dialect.arranged(entries)], others)


def said(addition: str, document: Document) -> str:
    """What the service adds to the instructions, without a tool that the client does not offer."""
    tools = document.raw("tools")
    return _FINDER.sub(lambda found: found[0] if found[1] in tools else "", addition)


def _entries(dialect: Dialect, item: Item, own: Mapping[str, Message]) -> Iterable[Entry]:
    client = own.get(item.message.id)
    if client is not None and verbatim(item):
        native = client.native.json.decode()
        if native.startswith("["):
            return [Entry(json.dumps(one), False, client) for one in json.loads(native)]
        return [Entry(native, False, client)]
    message = _called_alike(item.message, client) if client is not None else item.message
    return [Entry(json.dumps(one), True, message) for one in dialect.write(message)]


def _called_alike(shown: Message, client: Message) -> Message:
    """The message in its other form, its calls named as the client names them now."""
    alike = Message()
    alike.CopyFrom(shown)
    for kind in ("tool_call", "tool_result"):
        theirs = [getattr(part, kind) for part in client.parts if part.HasField(kind)]
        ours = [getattr(part, kind) for part in alike.parts if part.HasField(kind)]
        if len(theirs) == len(ours):
            for one, other in zip(ours, theirs, strict=True):
                one.call_id = other.call_id
    return alike
