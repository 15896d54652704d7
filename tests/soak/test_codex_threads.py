"""Threads of Codex that live beside a session, many of them: others write to it, it is compacted,
rewound and forgotten, the thread is lost or compacts itself.

Whatever happens, with each turn the thread holds all that the session shows, none of it twice, and
nothing that left the session's view.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

from contextengine import types as t
from contextengine_server.projection.codex import jsonl
from tests.integration.assemble.asking import (
    ask,
    assign,
    calls,
    quiet,
    reply_with,
    result,
    say,
    session,
    shared,
)
from tests.integration.compact.test_any_order import ENGINES
from tests.integration.harness import House, budget
from tests.integration.projection.asking import Action, options, text

__all__ = ["session", "shared"]

pytestmark = pytest.mark.asyncio(loop_scope="module")
ROOM = 100_000


class Thread:
    """A thread at random, and what it was given."""

    def __init__(self, house: House, session: t.SessionRef, seed: int) -> None:
        self.house, self.session, self.random = house, session, random.Random(seed)
        self.injects = self.random.random() < 0.4
        self.sets_sequence = self.random.random() < 0.5
        self.serial = 0
        self.threads = 0
        self.binding = t.ProjectionBinding()
        self.seen: list[str] = []
        self.events: list[t.HostEvent] = []
        self.view: dict[int, str] = {}
        self.gone: set[str] = set()
        self.calls: dict[str, str] = {}

    def name(self) -> str:
        self.serial += 1
        return f"m{self.serial}"

    def call(self, call: str) -> t.Message:
        made = calls(self.name(), call)
        self.calls[call] = made.id
        return made

    def stored(self, stored: list[t.StoredMessage]) -> None:
        for one in stored:
            self.view[one.sequence] = one.id

    async def elsewhere(self) -> None:
        """Another surface writes."""
        some = [say(self.name(), 20), reply_with(self.name(), 20)]
        if self.random.random() < 0.4:
            call = f"c{self.serial}"
            some += [self.call(call), result(self.name(), call, 20)]
        self.stored(list((await self.house.client.ingest_batch(self.session, some)).stored))

    async def compact(self) -> None:
        size = budget(self.random.choice((600, 2_000)))
        await self.house.client.compact(self.session, force=True, budget=size)

    async def undo(self) -> None:
        await self.house.client.compact(self.session, undo_to_generation=0)

    async def rewind(self) -> None:
        if len(self.view) > 8:
            after = sorted(self.view)[-self.random.randint(2, 5)]
            change = t.RecordHostChangeRequest.Rewind(after_sequence=after)
            await self.house.client.record_host_change(self.session, rewind=change)
            self.gone |= {one for at, one in self.view.items() if at > after}
            self.view = {at: one for at, one in self.view.items() if at <= after}

    async def forget(self) -> None:
        self.house.forget()

    async def lost(self) -> None:
        """The thread is gone, and the harness says so."""
        self.events.append(t.HostEvent(kind=t.HostEvent.KIND_THREAD_LOST))
        self.seen = []

    async def compacted(self) -> None:
        """It compacted itself, and the harness says so in one of two ways."""
        self.seen = []
        if self.random.random() < 0.5:
            self.events.append(t.HostEvent(kind=t.HostEvent.KIND_NATIVE_COMPACTED))
        else:
            change = t.RecordHostChangeRequest.NativeCompaction(
                thread_id=self.binding.thread_id if self.random.random() < 0.5 else ""
            )
            await self.house.client.record_host_change(self.session, native_compacted=change)

    def named(self, item: dict[str, Any]) -> str:
        """Which message, or summary, an injected item is."""
        if item["type"] == "function_call":
            return self.calls[item["call_id"]]
        told = item["output"] if "output" in item else item["content"][0]["text"]
        if found := re.match(r"m[0-9]+", told):
            return found[0]
        found = re.search(r'"id":"(s[^"]+)"', told)
        return found[1] if found else item["call_id"]

    async def turn(self) -> str:
        """What came of it."""
        asked = say(self.name(), 10)
        reply = await ask(
            self.house,
            self.session,
            budget=budget(ROOM),
            prompt=text(asked.parts[0].text.text),
            projection=options(
                binding=self.binding,
                host_events=self.events,
                inject_items=self.injects,
                token_budget=ROOM,
            ),
        )
        made, self.events = reply.projection, []
        if made.action in (Action.PROJECTION_ACTION_START, Action.PROJECTION_ACTION_ROTATE):
            self.threads += 1
            self.seen = []
        given = [json.loads(one) for one in made.inject_items_json]
        if made.prompt.startswith(jsonl.HEADING):
            records, now, _ = jsonl.parse(made.prompt)
            self.seen += [record["id"] for record in [*records, *now]]
        self.seen += [self.named(one) for one in given]
        opened = {one["call_id"] for one in given if one["type"] == "function_call"}
        closed = {one["call_id"] for one in given if one["type"] == "function_call_output"}
        assert opened == closed, (made.action_reason, opened ^ closed)
        self.binding.CopyFrom(made.binding)
        self.binding.thread_id = f"t{self.threads}"
        shown = [item.message.id.removeprefix("ce:summary:") for item in reply.items]
        missing = [one for one in shown if one not in self.seen and "no-result" not in one]
        assert not missing, (made.action_reason, missing, self.seen)
        assert len(self.seen) == len(set(self.seen)), (made.action_reason, self.seen)
        assert not self.gone & set(self.seen), made.action_reason
        added = [asked, reply_with(self.name(), 10)]
        if self.random.random() < 0.3:
            call = f"c{self.serial}"
            added[1:] = [self.call(call), result(self.name(), call), reply_with(self.name())]
        for one in added if not self.sets_sequence else ():
            one.labels["codex.thread"] = self.binding.thread_id
        done = await self.house.client.after_turn(self.session, added)
        self.stored(list(done.stored))
        self.seen += [one.id for one in added]
        if self.sets_sequence:
            self.binding.last_sequence = done.stored[-1].sequence
        return made.action_reason


@pytest.mark.parametrize("seed", range(60))
async def test_a_thread_holds_what_its_session_shows(
    shared: House, session: t.SessionRef, seed: int
) -> None:
    engine = sorted(ENGINES)[seed % len(ENGINES)]
    await assign(shared, session, engine, **ENGINES[engine])
    thread = Thread(shared, session, seed)
    await thread.elsewhere()
    await quiet(shared, session)
    happened = []
    for _ in range(40):
        names = ["turn"] * 6 + ["elsewhere", "compact", "undo", "rewind", "forget", "lost"]
        name = thread.random.choice([*names, "compacted"])
        happened.append(name)
        try:
            reason = await getattr(thread, name)()
        except AssertionError as error:
            raise AssertionError(happened) from error
        happened[-1] += f" {reason or ''}"
