"""Pydantic AI's messages as the service keeps them, and back. Pure.

A request holds what several roles say, and is kept as a message for each. What the service shows
whole and verbatim is the run's own object again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, repair_messages

from contextengine import Message, name_by_content
from contextengine.conversation import shown_verbatim
from contextengine.formats import from_pydantic_ai, to_pydantic_ai
from contextengine.types import Item


@dataclass(frozen=True, slots=True)
class History:
    """A run's history, mended, and the messages that are kept of it."""

    own: Sequence[ModelMessage]
    kept: list[Message]
    at: dict[str, int]
    """Of which of the run's messages each kept one is, by its id."""
    ids: list[list[str]]
    """The ids of what is kept of each of the run's messages."""


def read(messages: Sequence[ModelMessage]) -> History:
    """The history as the service keeps it, named by what is said. Raises FormatError.

    As Pydantic AI mends it, for the model at once and in the history itself with the next run:
    requests that follow each other become one, results without a call go.
    """
    messages = repair_messages(messages, repair_last_response=False)
    written: list[Any] = ModelMessagesTypeAdapter.dump_python(messages, mode="json")
    pieces = [from_pydantic_ai([one]) for one in written]
    kept = [piece for one in pieces for piece in one]
    name_by_content(kept)
    ids = [[piece.id for piece in one] for one in pieces]
    at = {name: index for index, names in enumerate(ids) for name in names}
    return History(messages, kept, at, ids)


def shown(items: Sequence[Item], history: History) -> list[ModelMessage]:
    """What the service answered, as a run's messages."""
    made: list[ModelMessage] = []
    others: list[Message] = []
    own = {message.id: message for message in history.kept}
    at = 0
    while at < len(items):
        whole = _whole(items[at:], history)
        if whole is None:
            item = items[at]
            # What is left of a request of the run's is made of its own pieces.
            others.append(own[item.id] if shown_verbatim(item, own) else item.message)
            at += 1
            continue
        made += _written(others)
        others = []
        made.append(history.own[whole])
        at += len(history.ids[whole])
    return made + _written(others)


def _whole(items: Sequence[Item], history: History) -> int | None:
    """Which of the run's messages these items begin with, all of it and as it was. None: none."""
    index = history.at.get(items[0].id)
    if index is None:
        return None
    wanted = history.ids[index]
    found = [item.id for item in items[: len(wanted)] if shown_verbatim(item, history.at)]
    return index if found == wanted else None


def _written(messages: Iterable[Message]) -> list[ModelMessage]:
    found: list[ModelMessage] = ModelMessagesTypeAdapter.validate_python(to_pydantic_ai(messages))
    return found
