"""Hosts that hand their whole list over, many of them, by `AsyncConversation`: they go back, begin
anew, fold what is old, lose their memory and their service. At last each session is its list.

Nothing is compacted: what a summary covers stays where a list found by what it says leaves it out.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from pathlib import Path

import pytest

from contextengine import AsyncClient, ContextEngineError, Message, name_by_content, user
from contextengine import types as t
from contextengine.aio_conversation import AsyncConversation
from tests.hosts.gate import Way, gate
from tests.integration.harness import budget, house, ref
from tests.soak.test_host_lists import Host
from tests.soak.test_proxied import FOLDED, said

STEPS = 40


class Talker(Host):
    """A host whose messages are named by what they say."""

    def __init__(self, client: AsyncClient, label: str, chance: random.Random) -> None:
        super().__init__(0)
        self.random, self.client = chance, client
        self.repeats, self.ids = chance.random() < 0.5, False
        self.ref = ref(label, agent="hosts")
        self.folded = False
        self.other: list[t.Message] = []
        """Another branch of its list."""
        self.open()

    def open(self) -> None:
        """As a new process."""
        self.conversation = AsyncConversation(self.client, self.ref)

    def named(self) -> list[Message]:
        copies = [Message() for _ in self.list]
        for copy, one in zip(copies, self.list, strict=True):
            copy.CopyFrom(one)
        name_by_content(copies)
        return copies

    async def turn(self) -> None:
        self.ask()
        for _ in range(self.random.randint(0, 2)):
            await self.model()
            self.work()
        await self.model()
        self.answer()
        if self.random.random() < 0.8:
            with suppress(ContextEngineError):
                await self.conversation.end_turn(self.named(), timeout=1)

    async def model(self) -> None:
        with suppress(ContextEngineError):
            await self.conversation.assemble(self.named(), budget=budget(50_000), timeout=1)

    def starts(self) -> list[int]:
        """Where its turns begin."""
        return [at for at, one in enumerate(self.list) if one.role == t.Role.ROLE_USER]

    async def edit(self) -> None:
        """Goes back some turns and says another thing."""
        if starts := self.starts():
            del self.list[self.random.choice(starts[-4:]) :]
        await self.turn()

    async def anew(self) -> None:
        self.list.clear()
        await self.turn()

    async def fold(self) -> None:
        """Older turns become words of its own."""
        if len(starts := self.starts()) > 5:
            kept = self.random.choice(starts[3:-1])
            self.list[:kept] = [user(f"{FOLDED} {self.serial}")]
            self.folded = True
        await self.turn()

    async def branch(self) -> None:
        """Goes on with what it had once, and may come back to what it has."""
        self.other, self.list = list(self.list), self.other or list(self.list)
        await self.turn()

    async def restart(self) -> None:
        self.conversation._later.settle()  # what a process owes ends with it
        self.open()


@pytest.mark.parametrize("seed", range(24))
async def test_at_last_each_session_is_its_list(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    happened: list[str] = []
    names = [
        *["turn"] * 5,
        *["edit", "fold", "branch", "restart", "away"] * 2,
        *["back"] * 4,
        "anew",
    ]
    async with (
        house(tmp_path) as home,
        gate(home.app.address) as door,
        AsyncClient(door.address) as client,
    ):
        hosts = [Talker(client, f"talk{number}", chance) for number in range(2)]
        for _ in range(STEPS):
            host, what = chance.choice(hosts), chance.choice(names)
            happened.append(f"{host.ref.session_id} {what}")
            if what in ("away", "back"):
                door.turn(Way.CLOSED if what == "away" else Way.OPEN)
            else:
                await getattr(host, what)()
        door.turn(Way.OPEN)
        for host in hosts:
            await host.turn()
            for tries in range(20):
                try:
                    await host.conversation.end_turn(host.named(), timeout=10)
                    break
                except ContextEngineError:
                    assert tries < 19, happened
                    await asyncio.sleep(0.3)
            rows = await home.rows(host.ref)
            stored, wanted = said([row.message for row in rows]), said(host.list)
            assert stored[-len(wanted) :] == wanted, happened
            # One that begins with what was said in the middle may be that, cut off.
            assert host.folded or host.repeats or len(rows) == len(host.list), happened
