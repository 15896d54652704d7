"""A rewind that is worked out from a checkpoint leaves what one leaves that folds all of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, cast
from unittest.mock import patch

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from contextengine_server.commands.lifecycle.record_host_change import Rewound
from contextengine_server.context import folder
from contextengine_server.context.extension import CHECKPOINT_EVERY
from contextengine_server.context.scope import Scope
from contextengine_server.session import lifecycle
from contextengine_server.session.address import Ref
from contextengine_server.session.rewind import checkpoints
from contextengine_server.session.rewind.rewind import Rewind
from contextengine_server.session.session import Session
from contextengine_server.session.state import StoredCheckpoint
from contextengine_server.store.memory import MemoryStore, Tables
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import MessageRow, SummaryRow
from tests.properties.lives import Event, Happening, Said, events, message_of
from tests.properties.test_warm_and_cold import forgotten, played, same
from tests.unit.commands.house import AGENT, TENANT, Rows, Server, incoming, request

EVERY = 2
"""Sequences from one checkpoint to the next, so that short lives have some."""

rewind = st.builds(Happening, st.just("rewind"), st.integers(0, 7), st.just(0))
ask = st.builds(Happening, st.just("ask"), st.integers(0, 7), st.just(7))
lives = st.lists(st.one_of(events, events, events, rewind, ask), min_size=12, max_size=60)

from_checkpoint = checkpoints.rewound_from_checkpoint


@contextmanager
def rewinding(*, allowed: bool, every: int = EVERY) -> Iterator[list[bool]]:
    """Whether each rewind was worked out from a checkpoint."""
    found: list[bool] = []

    async def rewound(store: Store, session: Session, after: int) -> Rewind | None:
        left = await from_checkpoint(store, session, after) if allowed else None
        found.append(left is not None)
        return left

    with ExitStack() as stack:
        for room in (folder, checkpoints):
            stack.enter_context(patch.object(room, "CHECKPOINT_EVERY", every))
        stack.enter_context(patch.object(lifecycle, "rewound_from_checkpoint", rewound))
        yield found


def either_way(life: Sequence[Event], forgets: frozenset[int] = frozenset()) -> list[bool]:
    """Plays a life with checkpoints and without; whether each rewind came from one."""
    with rewinding(allowed=False):
        whole = asyncio.run(played("dag", life))
    with rewinding(allowed=True) as found:
        same(whole, asyncio.run(played("dag", life, forgets)))
    return found


@settings(max_examples=60)
@given(life=lives, forgets=forgotten)
def test_a_rewind_leaves_the_same(life: list[Event], forgets: frozenset[int]) -> None:
    either_way(life, forgets)


USER, REPLY, CALL = Said(1, (("text", 0, 20),)), Said(2, (("text", 0, 20),)), ("call", 0, 20)
LATE = Said(3, (("result", 0, 60),))
LONG_USER, LONG_REPLY = Said(1, (("text", 0, 200),)), Said(2, (("text", 0, 200),))


def rewound(by: int) -> Happening:
    return Happening("rewind", by)


def test_a_checkpoint_is_used() -> None:
    life: list[Event] = [*[USER, REPLY] * 6, rewound(1), Happening("ask", 5, 7)]
    assert either_way(life, frozenset(range(len(life)))) == [True]


def test_what_came_late_for_what_stands_before_it_ends_a_checkpoint() -> None:
    """Its call stands before them: what the rewind takes back moves all that is left."""
    asked: list[Event] = [USER, Said(2, (CALL,)), *[USER, REPLY] * 4]
    assert either_way([*asked, LATE, USER, rewound(2), Happening("ask", 5, 7)]) == [False]
    assert either_way([*asked, LATE, *[USER, REPLY] * 3, rewound(1)]) == [True]


def test_a_rewind_to_where_a_checkpoint_begins_opens_what_stands_before_it() -> None:
    """A call that a user's message abandoned is pending again once that is taken back."""
    life: list[Event] = [*[USER, REPLY] * 4, Said(2, (CALL,)), USER, USER, rewound(2), LATE]
    assert either_way([*life, Happening("ask", 5, 7)]) == [True]


def test_a_note_before_which_a_checkpoint_could_be_stays_one() -> None:
    """By its turn its call is answered: whoever took the fold up again before it knew of none."""
    asked: list[Event] = [LONG_USER, Said(2, (CALL,)), *[LONG_USER, LONG_REPLY] * 6]
    told = Happening("compact", 1, 1)
    for more in range(EVERY):  # it begins where a checkpoint may be, or behind
        life = [*asked, *[USER] * more, told, LATE, USER, REPLY, rewound(2)]
        either_way([*life, Happening("ask", 5, 7)])


def test_a_summary_of_what_came_late_is_taken_back_with_it() -> None:
    """It tells of what nobody said any more. What tells of nothing that is gone stays."""
    first: list[Event] = [*[LONG_USER, LONG_REPLY] * 4, Happening("compact", 1, 1)]
    asked: list[Event] = [LONG_USER, Said(2, (CALL,)), *[LONG_USER, LONG_REPLY] * 4]
    life = [*first, *asked, LATE, LONG_USER, LONG_REPLY, Happening("compact", 1, 1), rewound(3)]
    call = 10
    before, after = live_after(life[:-1]), live_after(life)
    assert any(one.last_sequence < call for one in after)
    assert any(one.first_sequence <= call <= one.last_sequence < 18 for one in before)
    assert not any(one.first_sequence <= call <= one.last_sequence for one in after)
    either_way([*life, Happening("ask", 5, 7)])


def live_after(life: Sequence[Event]) -> list[SummaryRow]:
    """The live summaries that a life leaves."""
    _, _, summaries = cast(Any, asyncio.run(played("dag", life)).rows["s0"])
    return [one for one in summaries if not one.retired_revision]


def test_there_are_few_however_long_the_session() -> None:
    """Of every age there is one that is at most three times as old."""
    assert len(kept(4_000)) <= 13
    newest = 4_000
    for age in (1, 7, 100, 1_500, 3_000):
        oldest = max((one for one in kept(newest) if one <= newest - age), default=0)
        assert newest - oldest <= 3 * age + 1


def kept(count: int) -> list[int]:
    """The numbers of the checkpoints of a session that made so many, one by one."""
    points: tuple[StoredCheckpoint, ...] = ()
    every = CHECKPOINT_EVERY
    for number in range(1, count + 1):
        new = StoredCheckpoint(number * every, 0, 0, msgspec.Raw(b"{}"))
        points = checkpoints._thinned([*points, new], new.sequence)
    return [point.sequence // every for point in points]


class Read(MemoryStore):
    """How many messages are read."""

    rows = 0

    async def messages(self, *asked: Any, **how: Any) -> list[MessageRow]:
        found = await super().messages(*asked, **how)
        self.rows += len(found)
        return found


LONG = 4_000


async def test_a_rewind_reads_its_tail_only() -> None:
    """And so does whoever reads the session next."""
    store = Read(Tables())
    server = Server(Rows(), store=store)
    await server.open()
    try:
        scope = Scope(TENANT, AGENT, "s0")
        for first in range(0, LONG, 500):
            said = [message_of((USER, REPLY)[at % 2], at) for at in range(first, first + 500)]
            await server.context.ingest.run(TENANT, Ref(AGENT, "s0"), incoming(*said), None)
        for by in (10, 300):
            server.core.cache.drop(scope)
            store.rows = 0
            head = await store.head(scope)
            assert head is not None
            await server.context.record_host_change.run(
                TENANT, Ref(AGENT, "s0"), Rewound(head.last_sequence - by), request(f"r{by}")
            )
            await server.context.get_status.run(TENANT, Ref(AGENT, "s0"), 0)
            assert by < store.rows < 3 * (by + CHECKPOINT_EVERY)
    finally:
        await server.close()
