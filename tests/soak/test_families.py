"""Families of sessions, many of them: forks of forks and sessions that go on with another's view,
each of which talks, is compacted, rewound, undone, reset and erased while the others live.

Whatever one of them does, every other shows what it showed, each holds what it inherited and what
was said to it, once and in order, its assemblies are lawful, and memory shows in nothing.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine_server.testing.oracle.pairs import CoveredRange
from tests.integration.assemble.asking import ask, hashes, quiet, session, shared
from tests.integration.compact.test_any_order import Player, broken, stretches
from tests.integration.harness import House, budget, ref

__all__ = ["session", "shared"]

pytestmark = pytest.mark.asyncio(loop_scope="module")
FORK = t.CONTEXT_MODE_FORK
MEMBERS = 5
"""A family has no more sessions at a time."""


class Member(Player):
    """A session of a family, and what its view must hold: the messages by their sequences."""

    def __init__(self, house: House, session: t.SessionRef, name: str, seed: random.Random) -> None:
        super().__init__(house, session, 0)
        self.random, self.label = seed, name
        self.view: dict[int, t.Message] = {}
        self.then: dict[int, dict[int, t.Message]] = {}
        """What the view held, by revision."""
        self.past: list[CoveredRange] = []
        """What summaries of those it stands on covered when it began, taken back or not."""
        self.inherited = 0
        """The last sequence that is another's."""
        self.token = ""

    def name(self) -> str:
        self.serial += 1
        return f"{self.label}.{self.serial}"

    async def write(self, *messages: t.Message) -> None:
        """As hosts write: alone, together, or at a turn's end; at times twice, or behind what is
        there already."""
        known = self.random.choice([0, 0, 1, 3]) if self.view else 0
        again = [self.view[at] for at in sorted(self.view)[-known:]] if known else []
        sent = [*again, *messages]
        client = self.house.client
        match self.random.choice(("batch", "turn", "whole", "ingest")):
            case "batch":
                told = (await client.ingest_batch(self.session, sent)).stored
            case "turn":
                told = (await client.after_turn(self.session, sent)).stored
            case "whole":
                before = [self.view[at] for at in sorted(self.view)]
                turn = await client.after_turn(
                    self.session,
                    [*before, *messages],
                    pre_prompt_message_count=len(before),
                )
                told, again = turn.stored, []
            case _:
                told = (await ask(self.house, self.session, ingest=sent)).stored
        stored = told[len(again) :]
        assert {one.disposition for one in stored} == {t.StoredMessage.DISPOSITION_STORED}
        for one, message in zip(stored, messages, strict=True):
            self.view[one.sequence] = message
        self.rows = max(self.view)

    async def rewind(self) -> None:
        own = [at for at in sorted(self.view) if at >= self.inherited]
        if len(own) > 8:
            after = own[-self.random.randint(2, 8)]
            await self.house.client.record_host_change(
                self.session, rewind=t.RecordHostChangeRequest.Rewind(after_sequence=after)
            )
            self.view = {at: one for at, one in self.view.items() if at <= after}

    async def host(self) -> None:
        if len(self.view) == self.rows:
            await super().host()


class Family:
    """Its members, and what may happen to each."""

    def __init__(self, house: House, name: str, seed: int) -> None:
        self.house, self.named = house, name
        self.random = random.Random(seed)
        self.born = 0
        self.members: list[Member] = []
        self.standing: dict[str, list[str]] = {}
        """Who stands on whom, by label."""

    def child(self) -> Member:
        self.born += 1
        label = f"s{self.born}"
        return Member(self.house, ref(f"{self.named}-{label}"), label, self.random)

    async def begin(self) -> None:
        first = self.child()
        self.members.append(first)
        await first.talk()

    async def fork(self, parent: Member) -> None:
        if len(self.members) == MEMBERS:
            return
        child, until = self.child(), max(parent.view, default=0)
        more: dict[str, Any] = {}
        if parent.view and self.random.random() < 0.4:
            until = self.random.choice(sorted(parent.view)[-8:])
            more = {"fork_after_sequence": until}
        try:
            reply = await self.house.client.prepare_subagent_spawn(
                parent.session, child.session, context_mode=FORK, **more
            )
        except ContextEngineError as error:
            if error.reason == "SPAWN_LIMIT":
                return
            raise
        assert reply.context_mode == FORK, reply.note
        child.token = reply.spawn_token
        await self.stands(child, parent, until)

    async def go_on(self, parent: Member) -> None:
        if len(self.members) == MEMBERS:
            return
        child = self.child()
        await self.house.client.bootstrap(child.session, continues=parent.session)
        await self.stands(child, parent, max(parent.view, default=0))

    async def stands(self, child: Member, parent: Member, until: int) -> None:
        child.view = {at: one for at, one in parent.view.items() if at <= until}
        child.rows = child.inherited = max(child.view, default=0)
        child.open = list(parent.open)
        child.past = [*parent.past, *await stretches(self.house, parent.session)]
        self.members.append(child)
        self.standing.setdefault(parent.label, []).append(child.label)

    async def end(self, member: Member) -> None:
        if member.token and self.random.random() < 0.5:
            await self.house.client.end_subagent(member.session, spawn_token=member.token)
        else:
            await self.house.client.end_session(member.session)

    async def erase(self, member: Member) -> None:
        """One on which nobody stands goes, and nobody notices."""
        there = [one.label for one in self.members]
        if len(there) > 1 and not set(self.standing.get(member.label, ())) & set(there):
            await self.house.client.sessions.delete(member.session)
            self.members.remove(member)

    async def reset(self, member: Member) -> None:
        if self.random.random() < 0.3:
            await self.house.client.reset_session(member.session)
            member.view.clear()
            member.open.clear()

    async def step(self) -> str:
        member = self.random.choice(self.members)
        rarely = ("fork", "fork", "go_on", "end", "erase", "reset")
        name = self.random.choice((*rarely, *["live"] * 14))
        if name == "live":
            return f"{member.label}: {await member.step()}"
        await getattr(self, name)(member)
        return f"{member.label}: {name}"


@pytest.mark.parametrize("seed", range(60))
async def test_nobody_disturbs_another(shared: House, session: t.SessionRef, seed: int) -> None:
    family = Family(shared, session.session_id, seed)
    await family.begin()
    happened: list[str] = []
    for _ in range(60):
        happened.append(await family.step())
        for member in family.members:
            await quiet(shared, member.session)
        for member in family.random.sample(family.members, min(2, len(family.members))):
            told = (member.label, happened)
            rows = await shared.rows(member.session)
            assert {row.sequence: row.message.parts for row in rows} == {
                at: one.parts for at, one in member.view.items()
            }, told
            await as_it_was(shared, member)
            size = budget(family.random.choice((300, 900, 2_500, 7_000, 50_000)))
            warm = await ask(shared, member.session, budget=size)
            assert await broken(shared, member.session, warm, member.past) == [], told
            shared.forget()
            cold = await ask(shared, member.session, budget=size)
            assert hashes(cold) == hashes(warm), told
            member.then[warm.revision] = dict(member.view)


async def as_it_was(house: House, member: Member) -> None:
    """Exports as of an earlier revision are what the view was then."""
    if member.then:
        then = member.random.choice(sorted(member.then))
        rows = await house.rows(member.session, as_of_revision=then)
        assert {row.sequence: row.message.parts for row in rows} == {
            at: one.parts for at, one in member.then[then].items()
        }
