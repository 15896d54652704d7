"""Many writes at once: each stands or falls alone, and none that was acknowledged is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from contextengine_server.context.scope import Scope
from contextengine_server.store.errors import RevisionConflict, StoreError, StoreUnavailable
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Commit, Facts

from .case import Reopen, StoreCase
from .rows import SCOPE, Pen, debt, message


class GroupCases(StoreCase):
    """Many writes at once: each stands or falls alone, and none that was acknowledged is lost."""

    async def test_many_sessions_at_once_each_stand_or_fall_alone(self, store: Store) -> None:
        pens = [Pen(store, Scope("acme", f"agent {n % 3}", f"s{n}")) for n in range(60)]
        await asyncio.gather(*(pen.write(messages=[message(1, host_id="a")]) for pen in pens))

        async def second(n: int, pen: Pen) -> str:
            change: dict[str, Any] = {"messages": [message(2, 2, host_id="b")]}
            if n % 7 == 1:
                change = {"messages": [message(2, 2, host_id="b"), message(3, 2, host_id="a")]}
            elif n % 7 == 2:
                change["expected_revision"] = 9
            elif n % 7 == 3:
                change["facts"] = [Facts(99, 0, 0, None)]
            try:
                await pen.write(**change)
            except StoreError as error:
                return type(error).__name__
            return "stored"

        outcomes = await asyncio.gather(*(second(n, pen) for n, pen in enumerate(pens)))
        expected = {1: "DuplicateHostIds", 2: "RevisionConflict", 3: "StoreError"}
        for n, (pen, outcome) in enumerate(zip(pens, outcomes, strict=True)):
            assert outcome == expected.get(n % 7, "stored")
            assert await pen.sequences() == ([1, 2] if outcome == "stored" else [1])
            found = await store.head(pen.scope)
            assert found is not None
            assert found.revision == (2 if outcome == "stored" else 1)

    async def test_one_of_many_racing_writers_wins(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(count=1)
        racers = [pen.next(messages=[message(2, 2, body=b"%d" % n)]) for n in range(20)]
        outcomes = await asyncio.gather(
            *(store.commit(racer) for racer in racers), return_exceptions=True
        )
        won = [n for n, outcome in enumerate(outcomes) if outcome is None]
        lost = [outcome for outcome in outcomes if outcome is not None]
        assert len(won) == 1
        assert all(
            isinstance(outcome, RevisionConflict) and outcome.actual == 2 for outcome in lost
        )
        assert [row.body for row in await store.messages(SCOPE, 2)] == [b"%d" % won[0]]

    async def test_a_cancelled_caller_breaks_nothing(self, store: Store) -> None:
        pens = [Pen(store, Scope("acme", "main", f"s{n}")) for n in range(20)]
        tasks = [asyncio.create_task(pen.write(count=1)) for pen in pens]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        for outcome in outcomes[::2]:  # it may have been written by then
            assert outcome is None or isinstance(outcome, asyncio.CancelledError | Commit)
        assert not any(isinstance(outcome, BaseException) for outcome in outcomes[1::2])
        await Pen(store, Scope("acme", "main", "last")).write(count=1)
        for pen in pens:
            # What a caller no longer waits for is written all the same, if not at once, and the
            # head says so.
            for _ in range(3_000):
                found = await store.head(pen.scope)
                if found is not None:
                    break
                await asyncio.sleep(0.01)
            assert found is not None
            assert found.revision == 1
            assert await pen.sequences() == [1]

    async def test_closing_writes_what_is_queued_and_then_nothing(
        self, store: Store, reopen: Reopen
    ) -> None:
        pens = [Pen(store, Scope("acme", "main", f"s{n}")) for n in range(30)]
        tasks = [asyncio.create_task(pen.write(count=1)) for pen in pens]
        await asyncio.sleep(0)
        await store.close()
        await asyncio.gather(*tasks)
        await store.close()
        assert (await store.health()).ok is False
        for use in (
            pens[0].write(count=1),
            store.head(SCOPE),
            store.messages(SCOPE),
            store.counts(),
            store.add_debt(debt(SCOPE)),
            store.probe(),
        ):
            with pytest.raises(StoreUnavailable):
                await use
        again = await reopen()
        await again.probe()
        assert (await again.counts())["messages"] == 30
        assert (await again.health()).ok is True

    async def test_a_failure_of_the_database_fails_its_caller_alone(
        self, store: Store, tmp_path: Path
    ) -> None:
        pens = [Pen(store, Scope("acme", "main", f"s{n}")) for n in range(7)]
        for pen in pens:
            await pen.write(count=1)
        crowd = self.crowded(store, tmp_path)
        if crowd is None:
            pytest.skip("this store cannot be made to fail")
        large = [message(2, 2, body=b"x" * 2_000_000)]
        with crowd:
            outcomes = await asyncio.gather(
                *(pen.write(count=1) for pen in pens[:3]),
                pens[3].write(messages=large),
                *(pen.write(count=1) for pen in pens[4:]),
                return_exceptions=True,
            )
            assert [type(outcome) for outcome in outcomes[:3]] == [Commit] * 3
            assert type(outcomes[3]) is StoreUnavailable
            assert [type(outcome) for outcome in outcomes[4:]] == [Commit] * 3
            found = await store.head(pens[3].scope)
            assert found is not None
            assert found.revision == 1
            assert await pens[3].sequences() == [1]
        await pens[3].write(messages=large)
        for pen in pens:
            assert await pen.sequences() == [1, 2]
        assert (await store.health()).ok
