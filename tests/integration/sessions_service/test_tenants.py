"""Two tenants that share the ids of their agents and sessions never see anything of each other,
through any rpc."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from google.protobuf.message import Message

from contextengine import AsyncClient, ContextEngineError
from contextengine import types as t
from contextengine.messages import assistant, user
from contextengine_server.api.pipeline import contract
from tests.integration.harness import ALICE, BOB, House, budget, problem, ref, texts

STEPS = 90
AGENTS, SESSIONS, KEYS = ("agent", "another"), ("s1", "s2"), ("", "main")


class Tenant:
    """One tenant's calls, at random, and what must come of them. Every text of it carries its
    name."""

    def __init__(self, house: House, name: str, token: str, others: list[str], seed: int) -> None:
        self.client: AsyncClient = house.client_of(token)
        self.house = house
        self.name = name
        self.others = [other.encode() for other in others]
        self.chance = random.Random(seed)
        self.held: dict[tuple[str, str], list[tuple[int, str]]] = {}
        """What each session shows: sequences and texts."""
        self.last: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.called: set[str] = set()
        self.number = 0

    def see(self, rpc: str, reply: Message) -> None:
        """Nothing of another tenant is in a reply."""
        self.called.add(rpc)
        raw = reply.SerializeToString()
        for other in self.others:
            assert other not in raw, f"{rpc} shows {self.name} something of {other.decode()}"

    async def step(self) -> None:
        """One call, on a session that the other tenant has as well."""
        agent, session = self.chance.choice(AGENTS), self.chance.choice(SESSIONS)
        where = (agent, session)
        name = ref(session, agent=agent)
        if where not in self.held and self.chance.random() < 0.9:
            await self.write(where, name)
            return
        call = self.chance.choices(
            [
                self.write,
                self.read,
                self.look,
                self.rewind,
                self.reset,
                self.delete,
                self.touch,
                self.absent,
            ],
            [8, 6, 4, 2, 1, 1, 5, 1],
        )[0]
        if where in self.held or call is self.absent:
            await call(where, name)

    async def write(self, where: tuple[str, str], name: t.SessionRef) -> None:
        self.number += 1
        # The ids are those that the other tenant uses; only the content tells the two apart.
        message = user(
            f"{self.name} says {self.number} {where}",
            id=f"m{self.number}",
            labels={"of": self.name},
        )
        way = self.chance.randrange(4)
        if way == 0:
            reply: Any = await self.client.ingest(name, message, request_id=f"r{self.number}")
            stored = reply.stored
        elif way == 1:
            reply = await self.client.assemble(name, ingest=[message])
            stored = reply.stored[0]
        elif way == 2:
            key = f"k{self.number}"
            reply = await self.client.after_turn(name, [message], advancement_key=key)
            assert reply.status == t.AfterTurnResponse.STATUS_COMMITTED
            stored = reply.stored[0]
        else:
            key = self.chance.choice(KEYS)
            keyed = ref(
                name.session_id, agent=name.agent_id, key=key and f"{key}-{name.session_id}"
            )
            reply = await self.client.bootstrap(
                keyed,
                host=t.HostInfo(host_id=self.name),
                model=f"model-of-{self.name}",
                history=[message],
            )
            stored = reply.stored[0]
        self.see("write", reply)
        assert stored.disposition == t.StoredMessage.DISPOSITION_STORED
        self.last[where] += 1
        assert stored.sequence == self.last[where]
        self.held.setdefault(where, []).append((stored.sequence, texts([message])[0]))

    async def read(self, where: tuple[str, str], name: t.SessionRef) -> None:
        reply = await self.client.assemble(
            name, budget=budget(100_000), explain=self.chance.random() < 0.5
        )
        self.see("Assemble", reply)
        assert texts(reply.items) == [text for _, text in self.held[where]]

    async def look(self, where: tuple[str, str], name: t.SessionRef) -> None:
        every = self.chance.random() < 0.5
        exported = await self.house.export(name, self.client, include_retired=every)
        for row in exported.messages:
            self.see("Export", row)
        live = [
            (row.sequence, texts([row])[0]) for row in exported.messages if not row.retired_revision
        ]
        assert live == self.held[where]
        status = await self.client.get_status(name)
        self.see("GetStatus", status)
        assert status.message_count == len(self.held[where])
        self.see("Get", await self.client.sessions.get(name))
        listed = await self.client.sessions.list()
        self.see("List", listed)
        assert {(info.agent_id, info.session_id) for info in listed.sessions} == set(self.held)

    async def rewind(self, where: tuple[str, str], name: t.SessionRef) -> None:
        held = self.held[where]
        after = self.chance.choice([0, *(sequence for sequence, _ in held)])
        change = t.RecordHostChangeRequest.Rewind(after_sequence=after)
        reply = await self.client.record_host_change(name, rewind=change)
        self.see("RecordHostChange", reply)
        self.held[where] = [pair for pair in held if pair[0] <= after]
        assert reply.retired_count == len(held) - len(self.held[where])

    async def reset(self, where: tuple[str, str], name: t.SessionRef) -> None:
        reply = await self.client.reset_session(name)
        self.see("ResetSession", reply)
        assert reply.retired_count == len(self.held[where])
        self.held[where] = []

    async def delete(self, where: tuple[str, str], name: t.SessionRef) -> None:
        reply = await self.client.sessions.delete(name)
        self.see("Delete", reply)
        assert reply.message_count == self.last[where]
        del self.held[where], self.last[where]

    async def touch(self, where: tuple[str, str], name: t.SessionRef) -> None:
        calls: list[tuple[str, Callable[[], Awaitable[Message]]]] = [
            ("UpdateModel", lambda: self.client.update_model(name, model=f"model-of-{self.name}")),
            ("ReportUsage", lambda: self.client.report_usage(name, usage=t.Usage(input_tokens=5))),
            ("EndSession", lambda: self.client.end_session(name, reason=self.name)),
            ("Maintain", lambda: self.client.maintain(name)),
            ("Compact", lambda: self.client.compact(name, focus=self.name)),
            ("DisposeSession", lambda: self.client.dispose_session(name)),
            ("Engines.List", self.client.engines.list),
            ("Engines.Get", lambda: self.client.engines.get(session=name)),
            ("Doctor", lambda: self.client.engines.doctor(session=name)),
            (
                "Assign",
                lambda: self.client.engines.assign(
                    scope=name, options_json=b'{"freshTailTurns": 4}'
                ),
            ),
        ]
        rpc, call = self.chance.choice(calls)
        self.see(rpc, await call())

    async def absent(self, where: tuple[str, str], name: t.SessionRef) -> None:
        """What the other tenant has and this one has not is not there."""
        if where in self.held:
            return
        for call in (
            self.client.get_status(name),
            self.client.reset_session(name),
            self.client.sessions.get(name),
        ):
            with pytest.raises(ContextEngineError) as caught:
                await call
            assert problem(caught.value)[:2] == ("NOT_FOUND", "SESSION_NOT_FOUND")
        reply = await self.client.assemble(name)
        self.see("Assemble", reply)
        assert (list(reply.items), reply.revision) == ([], 0)
        assert not (await self.client.sessions.delete(name)).deleted


@pytest.mark.parametrize("seed", range(4))
async def test_two_tenants_live_side_by_side(guarded: House, seed: int) -> None:
    """Each finds exactly its own, whatever the other does; at once, and with evictions and a
    restart in between."""
    alice = Tenant(guarded, "alice-of-the-north", ALICE, ["bob-of-the-south"], seed)
    bob = Tenant(guarded, "bob-of-the-south", BOB, ["alice-of-the-north"], seed + 100)
    for step in range(STEPS):
        if seed % 2:
            await asyncio.gather(alice.step(), bob.step())
        else:
            await random.Random(seed * 1_000 + step).choice([alice, bob]).step()
        if step % 17 == 16:
            guarded.forget()
        if step == STEPS // 2:
            await guarded.restart()
            alice.client, bob.client = guarded.client_of(ALICE), guarded.client_of(BOB)
    for tenant in (alice, bob):
        for agent, session in tenant.held:
            await tenant.read((agent, session), ref(session, agent=agent))
            await tenant.look((agent, session), ref(session, agent=agent))


async def test_one_tenants_deletion_leaves_the_others_session(guarded: House) -> None:
    bob = guarded.client_of(BOB)
    for client, text in ((guarded.client, "of alice"), (bob, "of bob")):
        await client.ingest_batch(ref("s1", key="main"), [user(text), assistant(text)])
    await guarded.client.sessions.delete(ref("s1"), cascade=True)
    assert texts((await bob.assemble(ref("", key="main"))).items) == ["of bob"] * 2


async def test_a_parent_of_another_tenant_cannot_be_continued(guarded: House) -> None:
    bob = guarded.client_of(BOB)
    await guarded.client.ingest(ref("parent"), user("of alice"))
    with pytest.raises(ContextEngineError) as caught:
        await bob.bootstrap(ref("child"), continues=ref("parent"))
    assert problem(caught.value)[:2] == ("NOT_FOUND", "SESSION_NOT_FOUND")
    assert (await bob.sessions.list()).sessions == []


@pytest.mark.parametrize("token", ["", "unknown", "Bearer", " "])
async def test_without_a_known_token_every_rpc_is_closed(guarded: House, token: str) -> None:
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    for rpc in contract.rpcs():
        answer = await guarded.raw(rpc, b"", metadata=metadata)
        assert answer.code == "UNAUTHENTICATED", rpc.method
