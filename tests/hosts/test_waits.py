"""What a service that is away costs Codex and Claude Code: counted on the wire, by how long each
call of their hooks and tools would wait, and not timed. Hosts within this process: test_table.py;
OpenClaw and Hermes: where they are driven."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from contextengine_mcp.away import PROBE_S
from tests.hosts.frameworks.brain import BRIEFLY, searching
from tests.hosts.gate import Way
from tests.hosts.table import played, questions_in
from tests.hosts.waits import FIRST_S, LATER_S
from tests.hosts.wire import Heard, wire

RECORDED = pytest.mark.parametrize("name", ["codex", "claude-code"])
HOOKS = 2
"""Of a turn: one before it and one behind it."""
pytestmark = pytest.mark.timeout(900)


def waited_for(heard: Heard) -> list[float]:
    """The seconds of each call that somebody waits for: the question whether the service is back,
    which goes on beside, is the only one that takes longer than the first may."""
    beside = [bound for _, bound in heard.calls if FIRST_S < bound <= PROBE_S]
    assert len(beside) + heard.asked <= 2 * (1 + heard.seconds / PROBE_S), heard
    return [bound for _, bound in heard.calls if bound not in beside]


@RECORDED
async def test_a_service_that_hangs_costs_hooks_and_tools_two_seconds_once(
    name: str, tmp_path: Path
) -> None:
    async with wire("127.0.0.1:1") as way, played(name, tmp_path, way) as (stage, host):
        await host.say(f"Question 0? ALPHA {BRIEFLY}")
        assert way.taken().calls, "calls are counted"
        way.hangs = True
        took = []
        for at in range(1, 4):
            began = time.monotonic()
            await host.say(f"Question {at}? {BRIEFLY} {searching('ALPHA')}")
            took.append(time.monotonic() - began)
            bounds = waited_for(way.taken())
            if at == 1:
                assert bounds.pop(0) <= FIRST_S
            # The two hooks and the tool.
            assert len(bounds) <= 3
            assert all(bound <= LATER_S for bound in bounds)
        way.hangs = False
        print(f"{name}: turns took {', '.join(f'{one:.2f}' for one in took)} s")
        stage.way.turn(Way.OPEN)
        await host.say(f"Question 4? {BRIEFLY}")
        await host.say(f"Question 5? {BRIEFLY}")
        await stage.agrees(host)
    assert questions_in(stage.brain.seen[-1]) == [f"Question {at}" for at in range(6)]


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
