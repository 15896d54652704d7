"""What a coding agent needs next and what of it its context holds: paths, identifiers, the lines
that it edits; and what is left of what its user said.

The coding session is told step by step. Before each of the model's messages the context is held
against the calls of its next three: what stood in the session before, but last before the newest
messages, has to be in a summary or in history that is still shown.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from contextengine import types as t
from contextengine.formats import read_transcript
from tests.integration.assemble.asking import CODING, ask, settled
from tests.integration.harness import House, budget, ref, texts

AHEAD = 3
"""How many of the model's next messages count."""
NEAR = 16
"""What the newest so many messages hold is not counted: it is shown anyway."""
WORDS_KEPT = 0.9
"""The share of a user's words that have to stand in the context, in their order."""
_IDENTIFIER = re.compile(r"\b(?:[a-z]+(?:[A-Z]\w+)+|[A-Z][a-z0-9]+(?:[A-Z]\w*)+|\w+_\w+)\b")
_PATH = re.compile(r"(?<![\w/.])[\w.@~-]*(?:/[\w.@-]+)+\.\w{1,5}\b")
_LEAST_LINE = 12
"""Characters of a line that says enough to be told from others."""


@dataclass(slots=True)
class Needed:
    """What was needed, and what of it was there."""

    needed: Counter[str] = field(default_factory=Counter)
    """By `path`, `identifier` and `line`."""
    there: Counter[str] = field(default_factory=Counter)
    covered: int = 0
    """User messages that summaries cover at the end."""
    kept: int = 0
    """Those of them that keep their words."""

    def share(self, kind: str) -> float:
        """Of what was needed of a kind, what was there."""
        return self.there[kind] / self.needed[kind] if self.needed[kind] else 1.0


async def work(house: House, size: int, limit: int | None = None) -> Needed:
    """Replays the coding session with a budget of `size` tokens. `limit`: at most so many
    messages."""
    messages = next(iter(read_transcript(CODING))).messages[:limit]
    session, result = ref(f"needing-{size}"), Needed()
    said = [_told(message) for message in messages]
    calls = [at for at, message in enumerate(messages) if message.role == t.ROLE_ASSISTANT]
    new: list[t.Message] = []
    reply = t.AssembleResponse()
    for at, message in enumerate(messages):
        message.id = message.id or f"m{at}"
        if message.role == t.ROLE_ASSISTANT and new:
            reply = await ask(house, session, ingest=new, budget=budget(size))
            await settled(house, session)
            new = []
            shown = "\n".join(_told(item.message) for item in reply.items)
            ahead = [messages[one] for one in calls if one >= at][:AHEAD]
            far, near = (
                "\n".join(said[: max(0, at - NEAR)]),
                "\n".join(said[max(0, at - NEAR) : at]),
            )
            for kind, thing in dict.fromkeys(_things(ahead)):
                if thing in far and thing not in near:
                    result.needed[kind] += 1
                    result.there[kind] += thing in shown
        new.append(message)
    shown_ids = {item.id for item in reply.items if not item.HasField("summary")}
    summaries = [
        text.split()
        for item, text in zip(reply.items, texts(reply.items), strict=True)
        if item.HasField("summary")
    ]
    for message in messages[: -len(new) or None]:
        if message.role == t.ROLE_USER and message.id not in shown_ids:
            words = _told(message).split()
            result.covered += 1
            result.kept += any(_in_order(words, text) >= WORDS_KEPT for text in summaries)
    return result


def _things(messages: Sequence[t.Message]) -> Iterator[tuple[str, str]]:
    """What the calls of messages name, by kind."""
    for message in messages:
        for part in message.parts:
            if part.WhichOneof("kind") != "tool_call":
                continue
            given = json.loads(part.tool_call.arguments_json)
            for row in str(given.get("oldText", "")).splitlines():
                if len(row.strip()) >= _LEAST_LINE:
                    yield "line", row.strip()
            for value in given.values():
                for path in _PATH.findall(str(value)):
                    yield "path", path
                for name in _IDENTIFIER.findall(str(value)):
                    yield "identifier", name


def _told(message: t.Message) -> str:
    """All that a message says, arguments of calls as they were written."""
    found = []
    for part in message.parts:
        match part.WhichOneof("kind"):
            case "text":
                found.append(part.text.text)
            case "tool_call":
                given = json.loads(part.tool_call.arguments_json)
                found += [str(value) for value in given.values()]
            case "tool_result":
                found += [inner.text.text for inner in part.tool_result.parts]
    return "\n".join(found)


def _in_order(words: Sequence[str], text: Sequence[str]) -> float:
    """The share of the words that stand in a text in their order, found from the first on."""
    at = found = 0
    for word in words:
        for place in range(at, len(text)):
            if text[place] == word:
                at, found = place + 1, found + 1
                break
    return found / len(words) if words else 1.0
