"""A session that comes in parts is the one that it would be had it come at once."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import example, given, settings
from hypothesis import strategies as st

from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.context import folder
from contextengine_server.context.scope import Scope
from contextengine_server.errors import DomainError
from contextengine_server.session.address import Ref
from contextengine_server.session.rewind import checkpoints
from contextengine_server.session.state import SessionState
from contextengine_server.store.protocols import Store
from contextengine_server.store.sqlite import SqliteStore
from contextengine_server.wire.message import Incoming
from tests.databases import place
from tests.properties.lives import Said, events, message_of
from tests.unit.commands.house import AGENT, TENANT, Rows, Server, incoming

SCOPE = Scope(TENANT, AGENT, "s1")
REF = Ref(AGENT, "s1")
SAID = Introduction(model="gpt-5")

LARGEST = 200
"""Tokens of a part: that a paste is long is nothing to an import, and takes long to count."""


def small(event: object) -> bool:
    return isinstance(event, Said) and all(tokens <= LARGEST for _, _, tokens in event.parts)


TEXT = (("text", 0, 6),)
LATE_RESULT = [
    *[Said(1, TEXT)] * 7,
    Said(2, (*TEXT, ("call", 0, 6))),
    Said(1, TEXT),
    Said(3, (("result", 0, 6),)),
]
"""The last answers a call from before the newest checkpoint, and so takes that away."""

said = st.lists(events.filter(small), min_size=2, max_size=24)


async def sent(server: Server, messages: Sequence[Incoming], size: int) -> tuple[Any, ...]:
    """Sends messages in parts of this size; 0: at once. What is answered."""
    arrival = await server.sessions.import_.begin(TENANT, REF, SAID)
    try:
        rest = list(messages)
        while size and len(rest) > size:
            part, rest = rest[:size], rest[size:]
            await arrival.add(part)
        done = await arrival.finish(rest)
    except DomainError as error:
        await arrival.give_up()
        return type(error), error.text
    return done.stored, done.duplicates, done.head.revision


async def left(server: Server) -> object:
    """What is stored, but for what says when and in which life."""
    store, head = server.store, await server.store.head(SCOPE)
    assert await store.staged(2**60, 9) == []
    if head is None:
        assert await store.messages(SCOPE, retired=True) == []
        return None
    return (
        (head.last_sequence, head.message_count, head.message_tokens, head.model),
        SessionState.decode(head.state),
        await store.messages(SCOPE, retired=True),
    )


async def arrived(messages: Sequence[Incoming], size: int, store: Store | None = None) -> object:
    server = Server(Rows(), store=store)
    await server.open()
    try:
        answer = await sent(server, messages, size)
        return answer, await left(server)
    finally:
        await server.close()


def read(life: Sequence[object]) -> list[Incoming]:
    return incoming(*(message_of(one, at) for at, one in enumerate(life) if isinstance(one, Said)))


@settings(max_examples=12)
@given(life=said, size=st.integers(1, 7))
@example(life=LATE_RESULT, size=1)
def test_parts_make_the_same_session(life: list[object], size: int) -> None:
    async def play() -> None:
        whole = await arrived(read(life), 0)
        assert await arrived(read(life), size) == whole
        with tempfile.TemporaryDirectory() as directory:
            store = SqliteStore(place(Path(directory) / "x.db"))
            assert await arrived(read(life), size, store) == whole

    with (
        patch.object(folder, "CHECKPOINT_EVERY", 3),
        patch.object(checkpoints, "CHECKPOINT_EVERY", 3),
    ):
        asyncio.run(play())
