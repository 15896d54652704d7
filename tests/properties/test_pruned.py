"""What session pruning promises over a whole session, under every engine: nothing is lifted, the
beginning stays between two pauses, and whoever reads the session anew finds the same."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.engines.contract import Engine
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.engines.legacy import LegacyEngine, LegacyOptions
from contextengine_server.engines.pipeline import PipelineEngine, PipelineOptions
from contextengine_server.engines.pruned import PrunedEngine, PruningRules
from contextengine_server.testing.oracle.pairs import ViewRow
from tests.properties.replays import MIXED, Turn, coding, replayed, rows_of_turns
from tests.unit.commands.house import (
    S1,
    SMALL,
    TENANT,
    Rows,
    Server,
    assistant,
    incoming,
    long,
    result,
    same_as_cold,
    user,
)

ENGINES = [
    DagEngine(DagOptions()),
    PipelineEngine(PipelineOptions()),
    LegacyEngine(LegacyOptions()),
]


def paused(rows: Sequence[ViewRow], every: int = 1) -> list[ViewRow]:
    """The session with a pause of an hour before each so manieth message of a user's."""
    out, clock, asked = list[ViewRow](), 1_700_000_000, 0
    for row in rows:
        message = pb.Message.FromString(row.message.SerializeToString())
        if message.role == pb.ROLE_USER:
            asked += 1
            clock += 3_600 if asked % every == 0 else 1
        message.timestamp.seconds = clock
        out.append(ViewRow(row.sequence, message, row.created))
    return out


def pruned(engine: Engine) -> PrunedEngine:
    return PrunedEngine(engine, PruningRules(on=True))


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.id)
@pytest.mark.parametrize("budget", [16_000, 50_000])
def test_the_coding_session(engine: Engine, budget: int) -> None:
    before = replayed(engine, paused(coding()), budget)
    after = replayed(pruned(engine), paused(coding()), budget)
    assert (after.large_back, after.lifted) == (0, 0)
    assert after.sent < before.sent
    assert len(after.masked) > len(before.masked)


@given(MIXED, st.integers(8_000, 40_000), st.integers(0, 3), st.sampled_from(ENGINES))
def test_any_session(turns: list[Turn], budget: int, files: int, engine: Engine) -> None:
    replay = replayed(pruned(engine), paused(rows_of_turns(turns, files)), budget)
    assert (replay.large_back, replay.lifted) == (0, 0)


PRUNING = {
    "context_pruning.mode": "cache-ttl",
    "context_pruning.ttl": "1m",
    "context_pruning.keep_last_assistants": 1,
    "context_pruning.soft_trim_ratio": 0.1,
    "context_pruning.hard_clear_ratio": 0.3,
    "context_pruning.min_prunable_tool_chars": 2_000,
    "context_pruning.soft_trim.max_chars": 400,
    "context_pruning.soft_trim.head_chars": 100,
    "context_pruning.soft_trim.tail_chars": 100,
    "context_pruning.picture_turns": 1,
}
happening = st.tuples(
    st.sampled_from(("user", "user", "call", "call", "call", "late", "compact")),
    st.integers(0, 3),
    st.integers(50, 600),
)


@settings(max_examples=30, deadline=None)
@given(
    happened=st.lists(happening, min_size=8, max_size=40),
    budgets=st.lists(st.integers(600, 6_000), min_size=1, max_size=3),
    engine=st.sampled_from(("dag", "pipeline", "legacy")),
)
def test_a_session_read_anew_shows_the_same(
    happened: list[tuple[str, int, int]], budgets: list[int], engine: str
) -> None:
    asyncio.run(_same(happened, budgets, {**SMALL, **PRUNING, "engine.default": engine}))


async def _same(
    happened: list[tuple[str, int, int]], budgets: list[int], said: dict[str, Any]
) -> None:
    rows = Rows()
    warm = await Server(rows, **said).open()
    await warm.context.ingest.run(TENANT, S1, incoming(user("hello")), None)
    clock, calls = 1_700_000_000, 0
    for number, (kind, choice, words) in enumerate(happened):
        if kind == "compact":
            await warm.compact(3_000)
            continue
        match kind:
            case "user":
                clock += 30 * choice
                messages = [user(long(f"u{number}", words))]
                if choice == 2:
                    messages[0].parts.add().image.uri = "https://example.org/a.png"
            case "call":
                calls += 1
                asked = assistant("", "", f"c{calls}")
                messages = [asked, result(f"c{calls}", long(f"r{number}", words))]
                messages = messages[: 1 if choice == 3 else 2]  # some are never answered
            case _:
                messages = [result(f"c{max(1, calls - choice)}", long(f"l{number}", words))]
        for message in messages:
            message.timestamp.seconds = clock
        await warm.context.ingest.run(TENANT, S1, incoming(*messages), None)
        await warm.assemble(budgets[0])
    for budget in budgets:
        cold = await Server(rows, **said).open()
        for tokens in (budget, *budgets):
            await same_as_cold(warm, cold, tokens)
        await cold.close()
    await warm.close()
