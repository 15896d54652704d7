"""Hosts that send their own list before each model call, many of them: with ids or without, the
whole list, the newest part of it, or what they were shown last and what came since.

Whatever they send, and whatever is compacted, rewound and forgotten in between, the session holds
what they said, once and in order; the same list again stores nothing and is shown alike from disk.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from contextengine import assistant, user
from contextengine import types as t
from tests.integration.assemble.asking import (
    ask,
    assign,
    calls,
    hashes,
    live,
    quiet,
    reply_with,
    result,
    say,
    session,
    shared,
    without_ids,
)
from tests.integration.assemble.judging import FITS
from tests.integration.compact.test_any_order import ENGINES, broken
from tests.integration.harness import House, budget

__all__ = ["session", "shared"]

pytestmark = pytest.mark.asyncio(loop_scope="module")
HABITS = ("whole", "newest", "shown")
EVICTING = {**ENGINES, "pipeline": {}}
JUDGED = ENGINES
"""What pipeline brings back behind its summaries is nothing that the judge knows."""
FEWEST = 6
"""Messages of the newest part: one of them is known, whatever came last."""


class Host:
    """A host at random: what it said, and the list that it goes on with."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.habit = self.random.choice(HABITS)
        self.ids = self.random.random() < 0.5
        self.repeats = self.habit != "newest" and self.random.random() < 0.5
        """It says the same again and again."""
        self.serial = 0
        self.said: list[t.Message] = []
        self.list: list[t.Message] = []

    def name(self) -> str:
        self.serial += 1
        return f"m{self.serial}"

    def add(self, message: t.Message) -> None:
        if not self.ids:
            message.ClearField("id")
        self.said.append(message)
        self.list.append(message)

    def ask(self) -> None:
        again = self.repeats and self.random.random() < 0.5
        words = self.random.choice((3, 60, 300))
        message = user("continue", id=self.name()) if again else say(self.name(), words)
        if self.random.random() < 0.1:
            data = self.random.randbytes(3_000)
            picture = t.ImagePart(data=data, mime_type="image/png")
            message.parts.append(t.Part(image=picture))
        self.add(message)

    def answer(self) -> None:
        again = self.repeats and self.random.random() < 0.5
        words = self.random.choice((3, 60, 200))
        self.add(assistant("Done.", id=self.name()) if again else reply_with(self.name(), words))

    def work(self) -> None:
        """Calls, and their results in any order: each in a message, or all in one."""
        ids = [f"c{self.serial}-{n}" for n in range(self.random.randint(1, 3))]
        self.add(calls(self.name(), *ids))
        self.random.shuffle(ids)
        results = [result(self.name(), each, self.random.choice((5, 200))) for each in ids]
        if self.random.random() < 0.3:
            for other in results[1:]:
                results[0].parts.extend(other.parts)
            results = results[:1]
        for each in results:
            self.add(each)

    def turning(self) -> int:
        """Where it goes back to: calls and results go together."""
        at = len(self.said) - self.random.randint(1, 3)
        while at > 1 and self.said[at].role == t.Role.ROLE_TOOL:
            at -= 1
        return at

    def back(self) -> bool:
        """Takes its newest messages back; False: it does not."""
        at = self.turning()
        if at < 2 or self.habit == "shown":
            return False
        del self.said[at:], self.list[at:]
        return True

    def takes_back(self) -> bool:
        """The same where it says so with its list alone, which must hold what it goes back to."""
        at = self.turning()
        count = len(self.said) - at
        ends = (self.said[at - 1 :], self.list[-count - 1 :])
        if at < 2 or any(one is not other for one, other in zip(*ends, strict=False)):
            return False
        del self.said[at:], self.list[-count:]
        return True

    def goes_on(self, items: Sequence[t.Item]) -> None:
        """With the list that a compaction answered."""
        shown = [item.message for item in items]
        self.list = shown if self.ids else without_ids(shown)
        for back in range(1, min(len(self.list), len(self.said)) + 1):
            if self.list[-back].parts != self.said[-back].parts:
                break
            self.list[-back] = self.said[-back]

    def sends(self) -> list[t.Message]:
        """What it sends now."""
        if self.habit != "newest" or len(self.list) <= FEWEST:
            return self.list
        first = self.random.randint(0, len(self.list) - FEWEST)
        while first and self.list[first].role == t.Role.ROLE_TOOL:
            first -= 1
        return self.list[first:]

    def shown(self, reply: t.AssembleResponse) -> None:
        """It goes on with what it was shown."""
        if self.habit == "shown" and reply.outcome == FITS and self.random.random() < 0.5:
            items = [item.message for item in reply.items]
            self.list = items if self.ids else without_ids(items)


@pytest.mark.parametrize("seed", range(60))
async def test_what_hosts_said_is_there_once(
    shared: House, session: t.SessionRef, seed: int
) -> None:
    engine = sorted(EVICTING)[seed % len(EVICTING)]
    await assign(shared, session, engine, **EVICTING[engine])
    host, client = Host(seed), shared.client
    host.ask()
    await ask(shared, session, live=live(host.list, store_new=True))
    await quiet(shared, session)
    happened: list[str] = []
    for _ in range(40):
        names = ("ask", "ask", "work", "work", "answer", "answer", "back", "compact", "again")
        happened.append(host.random.choice(names))
        match happened[-1]:
            case "back":
                if not host.back():
                    continue
                kept = (await shared.rows(session))[len(host.said) - 1].sequence
                rewind = t.RecordHostChangeRequest.Rewind(after_sequence=kept)
                await client.record_host_change(session, rewind=rewind)
                host.ask()
            case "compact":
                size = budget(host.random.choice((600, 2_000, 6_000)))
                await client.compact(session, force=True, budget=size)
            case "again":
                pass
            case name:
                getattr(host, name)()
        sent, size = host.sends(), budget(host.random.choice((600, 2_500, 7_000, 50_000)))
        told = (host.habit, host.ids, happened)
        reply = await ask(shared, session, live=live(sent, store_new=True), budget=size)
        rows = [row.message for row in await shared.rows(session)]
        assert [list(row.parts) for row in rows] == [list(one.parts) for one in host.said], told
        if engine in JUDGED:
            assert await broken(shared, session, reply) == [], told
        shared.forget()
        again = await ask(shared, session, live=live(sent, store_new=True), budget=size)
        assert (hashes(again), len(again.stored)) == (hashes(reply), 0), told
        host.shown(again)


@pytest.mark.parametrize("seed", range(60))
async def test_what_hosts_said_is_there_once_where_they_compact_their_lists(
    shared: House, session: t.SessionRef, seed: int
) -> None:
    """As Hermes does: the list comes with ShouldCompact and Compact, and goes on as it is answered,
    at times only where a proposal is taken."""
    engines = {**EVICTING, "legacy": {}}
    engine = sorted(engines)[seed % len(engines)]
    await assign(shared, session, engine, **engines[engine])
    host, client = Host(seed), shared.client
    host.ask()
    await client.should_compact(session, live=listed(host), budget=budget(50_000))
    await quiet(shared, session)
    happened: list[str] = []
    for _ in range(40):
        names = ("ask", "work", "work", "answer", "answer", "back", "compact", "compact", "propose")
        happened.append(host.random.choice(names))
        size = budget(host.random.choice((600, 2_500, 7_000, 50_000)))
        match happened[-1]:
            case "compact" | "propose" as name:
                done = await client.compact(
                    session,
                    live=listed(host),
                    return_list=True,
                    force=True,
                    propose_only=name == "propose",
                    budget=size,
                )
                taken = done.changed
                if done.proposal_id:
                    taken = host.random.random() < 0.6
                    await client.commit_compaction(session, done.proposal_id, taken)
                if taken:
                    host.goes_on(done.items)
            case "back":
                if host.takes_back():
                    sent = listed(host, takes_back=True)
                    await client.should_compact(session, live=sent, budget=size)
            case name:
                getattr(host, name)()
                await client.should_compact(session, live=listed(host), budget=size)
        rows = [row.message for row in await shared.rows(session)]
        told = (host.ids, happened)
        assert [list(row.parts) for row in rows] == [list(one.parts) for one in host.said], told


def listed(host: Host, *, takes_back: bool = False) -> t.LiveCompaction:
    return t.LiveCompaction(messages=host.list, store_new=True, takes_back=takes_back)
