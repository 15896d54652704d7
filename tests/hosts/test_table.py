"""One table of scenarios for every agent, judged from outside: by the texts in the requests that
its model gets, by what is stored beside what the host has, and by what of a request is the same as
in the one before. Each host runs where it is installed: `make test-frameworks`."""

from __future__ import annotations

import asyncio
import os
import time
from itertools import pairwise
from pathlib import Path

import pytest

from tests.hosts.frameworks.brain import BRIEFLY, FAILS, LENGTH, NOTHING, calling, searching
from tests.hosts.frameworks.host import Host
from tests.hosts.gate import Way
from tests.hosts.table import WHERE, found, joined, played, question, questions_in
from tests.hosts.waits import FIRST_S, LATER_S, waits

TURNS = int(os.environ.get("CONTEXTENGINE_HOST_TURNS", "12"))
PROBED_S = 2.0
"""By then a client has seen that the service is there again."""
EACH = pytest.mark.parametrize("name", WHERE)
pytestmark = pytest.mark.timeout(180 + 10 * TURNS)


def decided_by_the_host(name: str) -> None:
    """Skips a host whose model sees what the service says: nobody else compacts."""
    host = found(name)
    if host is not None and host.assembles:
        pytest.skip(f"{name} leaves it to the service what its model sees")


async def failed(host: Host, words: str) -> None:
    """A turn in which the model fails, as the host's user meets it."""
    with pytest.raises(Exception):  # noqa: B017 - each framework raises its own
        await host.say(words)


def decided_by_the_service(name: str) -> None:
    """Skips a host that itself says what its model sees."""
    host = found(name)
    if host is not None and not host.assembles:
        pytest.skip(f"{name} decides for itself what its model sees")


def elsewhere(name: str) -> None:
    """Skips a host whose calls to the service cannot be counted in this process."""
    host = found(name)
    if host is not None and not host.here:
        pytest.skip(f"{name} is a process of its own")


@EACH
async def test_long_conversations_are_kept_whole_and_shown_within_the_window(
    name: str, tmp_path: Path
) -> None:
    async with played(name, tmp_path) as (stage, host):
        for turn in range(TURNS):
            await host.say(question(turn))
            if host.assembles:
                await stage.rested(host)
        await stage.agrees(host)
        if host.assembles:
            await stage.summarized(host)
        await host.say("And the last one?")
        await stage.agrees(host)
        told = await host.transcript()
    assert questions_in(told) == [f"Question {turn}" for turn in range(TURNS)]
    last = stage.brain.seen[-1]
    assert last[-1] == "And the last one?"
    if host.assembles:
        assert "Question 0" not in questions_in(last), "the beginning is summarized"
        assert any("trust=untrusted" in text for text in last), "by a summary that says so"
        assert not any("time=unknown" in text for text in last), "and of when it is"
        assert len(joined(last)) < 50_000, "within the window"
    # Within a turn, and mostly beyond it, a request goes on where the one before it ended.
    steps = list(pairwise(stage.brain.seen))
    goes_on = [later[: len(earlier)] == earlier for earlier, later in steps]
    assert sum(goes_on) >= 0.6 * len(steps), f"{sum(goes_on)} of {len(steps)}"


@EACH
async def test_a_service_that_is_killed_and_comes_back_loses_no_turn(
    name: str, tmp_path: Path
) -> None:
    async with played(name, tmp_path) as (stage, host):
        await host.say(f"Question 0? ALPHA {BRIEFLY}")
        stage.kill()
        took = []
        for words in (
            f"Question 1? BRAVO {BRIEFLY}",
            f"Question 2? {BRIEFLY} {calling('x', NOTHING)}",
        ):
            began = time.monotonic()
            await host.say(words)
            took.append(time.monotonic() - began)
            assert words in stage.brain.seen[-1]
        assert f"Question 0? ALPHA {BRIEFLY}" in stage.brain.seen[-1], (
            "the model was shown what was said"
        )
        stage.serve()
        await asyncio.sleep(PROBED_S)
        await host.say(f"Question 3? DELTA {BRIEFLY}")
        assert questions_in(stage.brain.seen[-1]) == [f"Question {at}" for at in range(4)]
        await stage.agrees(host)
    print(f"{name}: turns without the service took {', '.join(f'{one:.2f}' for one in took)} s")
    assert max(took) < 10, "an outage costs seconds at most"


@EACH
async def test_a_service_that_hangs_costs_its_deadline_once(name: str, tmp_path: Path) -> None:
    async with played(name, tmp_path) as (stage, host):
        await host.say(f"Question 0? ALPHA {BRIEFLY}")
        stage.way.turn(Way.HUNG)
        took = []
        for at in (1, 2):
            began = time.monotonic()
            await host.say(f"Question {at}? BRAVO {BRIEFLY}")
            took.append(time.monotonic() - began)
        stage.way.turn(Way.CLOSED)
        stage.way.turn(Way.OPEN)
        await asyncio.sleep(PROBED_S)
        await host.say(f"Question 3? DELTA {BRIEFLY}")
        await stage.agrees(host)
    print(f"{name}: turns with a service that hangs took {took[0]:.2f} and {took[1]:.2f} s")
    assert questions_in(stage.brain.seen[-1]) == [f"Question {at}" for at in range(4)]
    assert took[0] < 15


@EACH
@pytest.mark.parametrize("way", [Way.CLOSED, Way.HUNG])
async def test_a_service_that_is_away_is_waited_for_once(
    name: str, way: Way, tmp_path: Path
) -> None:
    """Of the calls to the service within a turn: those of later turns wait for a question alone.
    Hosts of other processes, and the hooks of those that decide for themselves, are in
    test_waits.py."""
    decided_by_the_service(name)
    elsewhere(name)
    async with played(name, tmp_path) as (stage, host):
        with waits() as counted:
            await host.say(f"Question 0? ALPHA {BRIEFLY}")
            assert counted.taken()[0], "calls are counted"
            stage.way.turn(way)
            took = []
            for at in range(1, 6):
                began = time.monotonic()
                await host.say(f"Question {at}? {BRIEFLY} {calling('x')}")
                took.append(time.monotonic() - began)
                sent, waited = counted.taken()
                if at == 1:
                    assert sum(bound for _, bound in sent) <= FIRST_S, sent
                else:
                    assert not sent, "what is known to be away is not called"
                    assert waited <= LATER_S or way is Way.CLOSED, "it refuses at once"
    print(f"{name}, {way.name}: turns took {', '.join(f'{one:.3f}' for one in took)} s")


@EACH
async def test_a_turn_that_failed_leaves_the_conversation_as_the_host_has_it(
    name: str, tmp_path: Path
) -> None:
    async with played(name, tmp_path) as (stage, host):
        await host.say("Question 0? ALPHA")
        await failed(host, f"Question 1? {FAILS}")
        await host.say("Question 2? CHARLIE")
        await stage.agrees(host)
        gone = ["Question 1"] if not host.forgets_failed else []
    assert questions_in(stage.brain.seen[-1]) == ["Question 0", *gone, "Question 2"]


@EACH
async def test_a_host_that_starts_again_goes_on_where_it_was(name: str, tmp_path: Path) -> None:
    async with played(name, tmp_path) as (stage, host):
        for turn in range(3):
            await host.say(question(turn))
        await host.stop()
        await host.start()
        await host.say("Question 3? DELTA")
        await stage.agrees(host)
    assert questions_in(stage.brain.seen[-1]) == [f"Question {at}" for at in range(4)]


@EACH
async def test_an_undo_and_an_edit_leave_the_view(name: str, tmp_path: Path) -> None:
    async with played(name, tmp_path) as (stage, host):
        for turn in range(3):
            await host.say(question(turn))
        for words in ("Question 2? instead", "Question 2? and again"):
            await host.undo()
            await host.say(words)
            await stage.agrees(host)
            assert stage.brain.seen[-1][-1] == words
    assert questions_in(stage.brain.seen[-1]) == ["Question 0", "Question 1", "Question 2"]


@EACH
async def test_two_turns_with_the_same_words_are_two(name: str, tmp_path: Path) -> None:
    async with played(name, tmp_path) as (stage, host):
        for words in ("Question 0? ALPHA", "go on", "go on", f"go on {calling('x', 'x')}", "go on"):
            await host.say(words)
        await stage.agrees(host)
    assert stage.brain.seen[-1].count("go on") == 3


@EACH
async def test_a_compaction_that_is_asked_for_changes_what_is_shown_and_nothing_stored(
    name: str, tmp_path: Path
) -> None:
    decided_by_the_service(name)
    async with played(name, tmp_path) as (stage, host):
        for turn in range(6):
            await host.say(question(turn))
        await stage.agrees(host)
        await stage.compact(host)
        await host.say("Question 6? DELTA")
        await stage.agrees(host)
        before, after = stage.brain.seen[-2:]
        assert len(joined(after)) < len(joined(before))
        assert any("trust=untrusted" in text for text in after)
        await host.say("Question 7? ECHO")
        assert stage.brain.seen[-1][: len(after)] == after
    assert questions_in(stage.brain.seen[-1])[-2:] == ["Question 6", "Question 7"]


@EACH
async def test_a_request_that_is_too_long_is_made_again_with_less(
    name: str, tmp_path: Path
) -> None:
    decided_by_the_service(name)
    async with played(name, tmp_path) as (stage, host):
        for turn in range(4):
            await host.say(question(turn))
        await stage.agrees(host)
        brain = stage.brain
        # The model takes less than the service was told.
        brain.most = 0.8 * len(joined(brain.seen[-1]))
        asked = len(brain.seen)
        await host.say("Question 4? DELTA")
        refused, answered = brain.seen[asked:]
        assert refused[-1] == answered[-1] == "Question 4? DELTA"
        assert len(joined(answered)) <= brain.most < len(joined(refused))
        await stage.agrees(host)
        await host.say("Question 5? ECHO")
        await stage.agrees(host)
        assert brain.seen[-1][-1] == "Question 5? ECHO"
        told = await host.transcript()
    assert questions_in(told) == [f"Question {at}" for at in range(6)]


@EACH
async def test_what_the_host_summarized_away_by_itself_is_kept_and_found(
    name: str, tmp_path: Path
) -> None:
    decided_by_the_host(name)
    async with played(name, tmp_path) as (stage, host):
        for turn in range(6):
            await host.say(question(turn))
        await stage.agrees(host)
        told = await host.transcript()
        await host.compact()
        await host.say("Question 6? DELTA")
        after = await host.transcript()
        assert len(joined(after)) < len(joined(told))
        # Not a file that it read: such ones Claude Code reads again.
        lost = "Answer 1: well"
        assert not any(lost in text for text in after)
        # What was said is all there: a summary takes the place of nothing that is stored.
        await stage.holds(host, [*told, *after[-2:]])
        await host.say(f"Question 7? {searching('Answer 1')}")
        assert any(lost in text for text in stage.brain.seen[-1]), "the model has it again"


@EACH
async def test_a_host_that_compacts_what_is_too_long_loses_nothing(
    name: str, tmp_path: Path
) -> None:
    decided_by_the_host(name)
    async with played(name, tmp_path) as (stage, host):
        # As many that the words by which a host asks for a summary are few beside them.
        for turn in range(12):
            await host.say(question(turn))
        await stage.agrees(host)
        told = await host.transcript()
        stage.brain.most = 0.8 * len(joined(told))
        if host.tries_again:
            await host.say("Question 12? DELTA")
        else:
            await failed(host, "Question 12? DELTA")
            told = [*told, "Question 12? DELTA"]
            await host.say("Question 12? DELTA")
        after = await host.transcript()
        assert len(joined(after)) < stage.brain.most
        assert after[-2] == "Question 12? DELTA"
        await stage.holds(host, [*told, *after[-2:]])


@EACH
async def test_a_request_that_stays_too_long_fails_as_the_provider_says(
    name: str, tmp_path: Path
) -> None:
    decided_by_the_service(name)
    async with played(name, tmp_path) as (stage, host):
        for turn in range(2):
            await host.say(question(turn))
        stage.brain.most = 1
        asked = len(stage.brain.seen)
        with pytest.raises(Exception, match=LENGTH):
            await host.say("Question 2? DELTA")
        assert len(stage.brain.seen) - asked <= 2, "it is made again once"


@EACH
async def test_calls_that_are_named_anew_and_details_that_are_dropped_are_no_new_messages(
    name: str, tmp_path: Path
) -> None:
    decided_by_the_service(name)
    async with played(name, tmp_path) as (stage, host):
        if not host.keeps_list:
            pytest.skip(f"{name} leaves its list to the service")
        for turn in range(4):
            await host.say(question(turn))
        await stage.agrees(host)
        shown = stage.brain.seen[-1]
        await host.rewrite()
        for turn in (4, 5):
            await host.say(question(turn))
            await stage.agrees(host)
        assert stage.brain.seen[-1][: len(shown)] == shown
    assert questions_in(stage.brain.seen[-1]) == [f"Question {at}" for at in range(6)]


@EACH
async def test_a_fork_leaves_what_it_came_from(name: str, tmp_path: Path) -> None:
    async with played(name, tmp_path) as (stage, host):
        if not host.forks:
            pytest.skip(f"{name} has no forks")
        for turn in range(3):
            await host.say(question(turn))
        before, told = host.ref, await host.transcript()
        await host.fork()
        await host.say("Question 3? in the copy")
        await stage.agrees(host)
        assert host.ref != before
        assert await stage.view(host, before) == joined(told)
    assert questions_in(stage.brain.seen[-1]) == [f"Question {at}" for at in range(4)]


def test_every_host_is_a_host() -> None:
    """The names of the table are those of the hosts: what is skipped is skipped by name."""
    for name in WHERE:
        host = found(name)
        assert host is None or host.name == name
