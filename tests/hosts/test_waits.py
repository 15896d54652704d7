"""What a service that is away costs Codex and Claude Code, and an agent of the AI SDK: counted on
the wire, by how long each call of their hooks and tools would wait, and not timed. Hosts within
this process: test_table.py; OpenClaw and Hermes: where they are driven."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from contextengine.breaker import PROBE_SECONDS
from contextengine_mcp.away import PROBE_S
from tests.hosts.frameworks.brain import BRIEFLY, calling, searching
from tests.hosts.gate import Way
from tests.hosts.table import Stage, played, questions_in
from tests.hosts.waits import FIRST_S, LATER_S
from tests.hosts.wire import Heard, Wire, wire

RECORDED = pytest.mark.parametrize("name", ["codex", "claude-code"])
AWAY = pytest.mark.parametrize("dead", [False, True], ids=["hung", "dead"])
HOOKS = 2
"""Of a turn: one before it and one behind it."""
TOOLS = 1
"""Calls of a turn in which the model searches."""
pytestmark = pytest.mark.timeout(900)


def waited_for(heard: Heard) -> list[float]:
    """The seconds of each call that somebody waits for: the question whether the service is back,
    which goes on beside, is the only one that takes longer than the first may."""
    beside = [bound for _, bound in heard.calls if FIRST_S < bound <= PROBE_S]
    assert len(beside) + heard.asked <= 2 * (1 + heard.seconds / PROBE_S), heard
    return [bound for _, bound in heard.calls if bound not in beside]


def away(stage: Stage, way: Wire, dead: bool) -> None:
    """The service dies, or hangs."""
    if dead:
        stage.kill()
        stage.way.turn(Way.OPEN)
    else:
        way.hangs = True


def back(stage: Stage, way: Wire, dead: bool) -> None:
    """The service is there again."""
    if dead:
        stage.serve()
    way.hangs = False


@AWAY
@RECORDED
async def test_a_service_that_is_away_is_called_once_by_each_hook_and_tool(
    name: str, dead: bool, tmp_path: Path
) -> None:
    async with wire("127.0.0.1:1") as way, played(name, tmp_path, way) as (stage, host):
        await host.say(f"Question 0? ALPHA {BRIEFLY}")
        # A hook behind the turn may still run when the host has said its answer.
        await stage.agrees(host)
        assert way.taken().calls, "calls are counted"
        away(stage, way, dead)
        took = []
        for at in range(1, 4):
            began = time.monotonic()
            await host.say(f"Question {at}? {BRIEFLY} {searching('ALPHA')}")
            took.append(time.monotonic() - began)
            heard = way.taken()
            if dead:
                # Refused at once: nobody waits, and nobody tries again.
                assert len(heard.calls) <= HOOKS + TOOLS, heard
                continue
            bounds = waited_for(heard)
            if at == 1:
                assert bounds.pop(0) <= FIRST_S
            assert len(bounds) <= HOOKS + TOOLS, bounds
            assert all(bound <= LATER_S for bound in bounds), bounds
        back(stage, way, dead)
        print(f"{name}: turns took {', '.join(f'{one:.2f}' for one in took)} s")
        stage.way.turn(Way.OPEN)
        await host.say(f"Question 4? {BRIEFLY}")
        await host.say(f"Question 5? {BRIEFLY}")
        await stage.agrees(host)
    assert questions_in(stage.brain.seen[-1]) == [f"Question {at}" for at in range(6)]


@AWAY
async def test_a_service_that_is_away_costs_an_agent_on_node_one_call(
    dead: bool, tmp_path: Path
) -> None:
    async with wire("127.0.0.1:1") as way, played("ai-sdk", tmp_path, way) as (stage, host):
        await host.say(f"Question 0? ALPHA {BRIEFLY}")
        assert way.taken().calls, "calls are counted"
        away(stage, way, dead)
        for at in range(1, 5):
            await host.say(f"Question {at}? {BRIEFLY} {calling('x')}")
            heard = way.taken()
            if at == 1:
                # Of one call: another attempt at it has what is left of its time.
                bounds = [bound for _, bound in heard.calls]
                assert {rpc for rpc, _ in heard.calls} == {"Assemble"}
                assert max(bounds) <= FIRST_S
                assert bounds == sorted(bounds, reverse=True)
            else:
                assert not heard.calls, "what is known to be away is not called"
            # Who hangs is asked once, until it is time; who refuses, once for each call.
            assert dead or heard.asked <= 1 + heard.seconds / PROBE_SECONDS, heard
        back(stage, way, dead)
        # A question that hangs is given up, and asked again.
        await asyncio.sleep(PROBE_SECONDS)
        await host.say(f"Question 5? {BRIEFLY}")
        await host.say(f"Question 6? {BRIEFLY}")
        await stage.agrees(host)
    assert questions_in(stage.brain.seen[-1]) == [f"Question {at}" for at in range(7)]


@RECORDED
async def test_a_service_that_is_dead_is_called_once_by_each_hook(
    name: str, tmp_path: Path
) -> None:
    async with played(name, tmp_path) as (stage, host):
        await host.say(f"Question 0? ALPHA {BRIEFLY}")
        stage.kill()
        for at in range(1, 4):
            met = stage.way.met
            await host.say(f"Question {at}? {BRIEFLY}")
            assert stage.way.met - met <= HOOKS, "nobody tries again"
        stage.serve()
        await host.say(f"Question 4? {BRIEFLY}")
        await stage.agrees(host)
