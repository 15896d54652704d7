"""What holds for each command that writes, whatever it writes: it waits for its turn, it reads no
more of the history than it needs, and a session that is not there yet is served as its key says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from contextengine_server.commands.lifecycle.record_host_change import Rewound
from contextengine_server.commands.subagents.prepare_subagent_spawn import SpawnRequest
from contextengine_server.commands.turn.after_turn import Turn
from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.commands.turn.update_model import Model
from contextengine_server.context.scope import Scope
from contextengine_server.engines.patterns import SessionPattern
from contextengine_server.session.address import Ref
from contextengine_server.session.assembly.budget import BudgetSpec
from contextengine_server.session.model import Report
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import AGENT, S1, TENANT, Server, request, scope, spoken

BILLED = Report(input_tokens=10, output_tokens=5, billed=True)
Act = Callable[[Server], Awaitable[object]]

WRITES: dict[str, Act] = {
    "Ingest": lambda on: on.ingest("more"),
    "Assemble": lambda on: on.assemble(3_000, ingest=spoken("more")),
    "AfterTurn": lambda on: on.context.after_turn.run(TENANT, S1, Turn(spoken("more"))),
    "Bootstrap": lambda on: on.context.bootstrap.run(TENANT, S1, Introduction(model="gpt-5")),
    "ReportUsage": lambda on: on.context.report_usage.run(TENANT, S1, BILLED, None),
    "UpdateModel": lambda on: on.context.update_model.run(TENANT, S1, Model("gpt-5"), None),
    "EndSession": lambda on: on.context.end_session.run(TENANT, S1, None, None),
}
WHOLE: dict[str, Act] = {
    "ResetSession": lambda on: on.context.reset_session.run(TENANT, S1, None, None),
    "RecordHostChange": lambda on: on.context.record_host_change.run(
        TENANT, S1, Rewound(1), request()
    ),
    "undo": lambda on: on.compact(undo_to_generation=0),
    "Import": lambda on: on.sessions.import_.run(
        TENANT, S1, Introduction(model="gpt-5"), spoken("a", "b", "c")
    ),
}
"""Of what they leave, all must be known."""


async def settle() -> None:
    """Whoever can go on does."""
    for _ in range(300):
        await asyncio.sleep(0)


@pytest.mark.parametrize("act", [*WRITES.values(), *WHOLE.values()], ids=[*WRITES, *WHOLE])
async def test_who_writes_waits_for_who_is_writing(server: Server, act: Act) -> None:
    if act is WHOLE["undo"]:
        await server.talk(1, 6)
        await server.compact(4_000)
    else:
        await server.ingest("a", "b")
    revision = (await server.head()).revision
    async with server.core.sessions.open(scope(), lock=True):
        task = asyncio.ensure_future(act(server))
        await settle()
        assert not task.done()
        assert (await server.head()).revision == revision
    await task
    assert (await server.head()).revision > revision


@pytest.mark.parametrize("act", WRITES.values(), ids=WRITES)
async def test_a_long_history_is_not_read_for_a_small_change(serve: Serve, act: Act) -> None:
    """Of a session that this process has not in memory."""
    writer, server = await serve(), await serve()
    await writer.talk(1, 60)
    await act(server)
    async with server.core.sessions.open(scope()) as session:
        assert session.view.base > 0


async def test_a_child_is_prepared_without_reading_all_that_it_inherits(serve: Serve) -> None:
    writer, server = await serve(), await serve()
    await writer.talk(1, 60)
    wanted = SpawnRequest(S1, Ref(AGENT, "child"), fork=True, request=request())
    await server.context.prepare_subagent_spawn.run(TENANT, wanted)
    async with server.core.sessions.open(scope()) as session:
        assert session.view.base > 0


async def test_a_status_is_told_without_reading_the_history(serve: Serve) -> None:
    writer, server = await serve(), await serve()
    await writer.talk(1, 60)
    await server.context.get_status.run(TENANT, S1, 0)
    async with server.core.sessions.open(scope()) as session:
        assert session.view.base > 0


@pytest.mark.parametrize("served", ["keyed", "plain"])
async def test_a_session_that_is_not_there_yet_is_served_as_its_key_says(
    server: Server, served: str
) -> None:
    whole, cron = Scope(TENANT, "", ""), SessionPattern(key="cron:*")
    await server.engines.assign.run(whole, "legacy", {}, clear=False, pattern=cron)
    expected = "legacy" if served == "keyed" else "dag"

    def ref(name: str) -> Ref:
        return Ref(AGENT, name, f"cron:{name}" if served == "keyed" else "")

    done = await server.context.bootstrap.run(TENANT, ref("s2"), Introduction())
    assert done.engine.id == expected
    made = await server.assemble(ref=ref("s3"), ingest=spoken("a"))
    assert made.engine.id == expected
    stored = await server.context.ingest.run(TENANT, ref("s4"), spoken("a"), None)
    assert stored.noticed is (expected == "dag")
    await server.engines.assign.run(
        whole, "dag", {"deferCompaction": False}, clear=False, pattern=cron
    )
    turn = Turn(spoken(*(f"m{at} " + "word " * 400 for at in range(9))), budget=SMALL_BUDGET)
    ended = await server.context.after_turn.run(TENANT, ref("s5"), turn)
    assert ended.queued is (served == "plain")


SMALL_BUDGET = BudgetSpec(message_tokens=3_000)


async def test_what_stands_before_the_messages_is_counted_for_the_end_of_a_turn(
    server: Server,
) -> None:
    """A system prompt that is sent as it is takes its room like one that was counted."""
    text = "be kind to whoever asks " * 40
    window = BudgetSpec(window=9_000, output_reserve=1_000, system_texts=(text,))
    await server.context.after_turn.run(TENANT, S1, Turn(spoken("a"), budget=window))
    made = await server.assemble(budget=window)
    long = Turn(
        spoken(*(f"m{at} " + "word " * 400 for at in range(20))), budget=window, cause="told"
    )
    assert (await server.context.after_turn.run(TENANT, S1, long)).queued
    (debt,) = await server.store.debts(scope())
    assert b'"available":%d' % made.available in debt.payload.replace(b" ", b"")
