"""Hosts that end their turns with their whole list, many of them, as OpenClaw does: without ids,
with other call ids each time, with older messages trimmed; some turns end twice, some hosts die
within one and come back with their history."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from contextengine import types as t
from tests.integration.assemble.asking import (
    ask,
    assign,
    calls,
    hashes,
    live,
    quiet,
    result,
    session,
    shared,
)
from tests.integration.compact.test_any_order import broken
from tests.integration.harness import House, budget
from tests.soak.test_host_lists import EVICTING, JUDGED, Host

__all__ = ["session", "shared"]

CLEARED = "[Old tool result content cleared]"
pytestmark = pytest.mark.asyncio(loop_scope="module")


class Embedded(Host):
    """It sends its list without ids, its calls renamed, and parts of it at times."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.habit, self.ids = "whole", False
        self.renames = self.random.random() < 0.5
        self.trims = self.random.random() < 0.3
        self.prunes = self.random.random() < 0.4
        """It clears what old results said."""
        self.open: list[str] = []

    def turn(self, *, late: bool) -> None:
        if late and self.random.random() < 0.3:
            self.late()
        self.ask()
        for _ in range(self.random.randint(0, 3)):
            self.work()
        if self.random.random() < 0.3:
            self.interrupted()
        elif self.random.random() < 0.8:
            self.answer()

    def interrupted(self) -> None:
        """Calls of which not all are answered, or only later."""
        ids = [f"i{self.serial}-{n}" for n in range(self.random.randint(1, 3))]
        self.add(calls(self.name(), *ids))
        for each in ids[1:]:
            self.add(result(self.name(), each, 5))
        self.open.append(ids[0])

    def late(self) -> None:
        if self.open:
            each = self.open.pop(self.random.randrange(len(self.open)))
            self.add(result(self.name(), each, 30))

    def as_sent(self, said: Sequence[t.Message]) -> list[t.Message]:
        salt, sent = self.random.randrange(1_000) if self.renames else 0, []
        for back, message in zip(range(len(said), 0, -1), said, strict=True):
            copy = t.Message()
            copy.CopyFrom(message)
            for part in copy.parts:
                if self.prunes and back > 6 and part.HasField("tool_result"):
                    del part.tool_result.parts[:]
                    part.tool_result.parts.append(t.Part(text=t.TextPart(text=CLEARED)))
                if part.HasField("tool_call"):
                    part.tool_call.call_id += f"-{salt}"
                elif part.HasField("tool_result"):
                    part.tool_result.call_id += f"-{salt}"
            sent.append(copy)
        return sent

    def trimmed(self) -> list[t.Message]:
        """Its list without the oldest turns."""
        if not self.trims or len(self.said) < 20:
            return self.said
        first = self.random.randint(0, len(self.said) - 12)
        while first and self.said[first].role != t.Role.ROLE_USER:
            first -= 1
        return self.said[first:]


@pytest.mark.parametrize("seed", range(60))
async def test_what_turns_added_is_there_once(
    shared: House, session: t.SessionRef, seed: int
) -> None:
    engines = {**EVICTING, "legacy": {}}
    engine = sorted(engines)[seed % len(engines)]
    await assign(shared, session, engine, **engines[engine])
    host, client = Embedded(seed), shared.client
    await client.bootstrap(session)
    await quiet(shared, session)
    happened: list[str] = []
    for number in range(25):
        names = ("turn", "turn", "turn", "died", "compact", "restart")
        happened.append(host.random.choice(names))
        told = (host.renames, host.trims, host.prunes, happened)
        size = budget(host.random.choice((600, 2_500, 7_000, 50_000)))
        match happened[-1]:
            case "turn" | "died" as name:
                listed = host.as_sent(host.trimmed())
                if listed:
                    reply = await ask(shared, session, live=live(listed), budget=size)
                    assert not reply.stored, told
                    if engine in JUDGED:
                        assert await broken(shared, session, reply) == [], told
                    shared.forget()
                    again = await ask(shared, session, live=live(listed), budget=size)
                    assert hashes(again) == hashes(reply), told
                before = len(host.said)
                host.turn(late=name == "died" or not host.renames)
                if name == "died":
                    history = host.as_sent(host.said)
                    await client.bootstrap(session, history=history)
                else:
                    whole = host.as_sent(host.said)
                    twice = 1 + (host.random.random() < 0.3)
                    for _ in range(twice):
                        await client.after_turn(
                            session,
                            whole,
                            pre_prompt_message_count=before,
                            advancement_key=f"turn {number}",
                            budget=size,
                        )
            case "compact":
                await client.compact(session, force=True, budget=size)
            case "restart":
                if host.said:
                    await client.bootstrap(session, history=host.as_sent(host.trimmed()))
        rows = [row.message for row in await shared.rows(session)]
        assert len(rows) == len(host.said), told
        for row, one in zip(rows, host.said, strict=True):
            assert row.role == one.role, told
            assert [part.WhichOneof("kind") for part in row.parts] == [
                part.WhichOneof("kind") for part in one.parts
            ], told
