"""Heartbeats under the legacy engine: shown like other turns, or left out where nothing came of
them."""

from __future__ import annotations

from pathlib import Path

import pytest

from contextengine import types as t
from contextengine.messages import assistant, tool_call, tool_result, user
from contextengine_server.wire.message import is_heartbeat
from tests.integration.harness import House, budget, house, ref, texts

CAUSE = t.EPOCH_CAUSE_MASKED


def marked(text: str) -> t.Message:
    prompt = user(text)
    prompt.is_heartbeat = True
    return prompt


def idle(number: int) -> list[t.Message]:
    return [marked(f"Look after the plants, time {number}."), assistant("HEARTBEAT_OK")]


async def shown(home: House) -> list[str]:
    return texts((await home.client.assemble(ref(), budget=budget(20_000))).items)


@pytest.mark.parametrize(
    ("reply", "yes"),
    [
        ("HEARTBEAT_OK", True),
        (" **heartbeat_ok**.\n", True),
        ("HEARTBEAT_OK, but the disk is full", False),
        ("ok", False),
        ("", False),
    ],
)
def test_what_acknowledges_a_heartbeat(reply: str, yes: bool) -> None:
    assert is_heartbeat(assistant(reply)) is yes
    assert not is_heartbeat(user(reply)), "of a user's message the host says it"


async def test_a_pair_is_gone_once_the_user_goes_on(tmp_path: Path) -> None:
    options = {"engine.default": "legacy", "engine.legacy.hideHeartbeats": True}
    async with house(tmp_path, **options) as home:
        said = [user("hello"), assistant("hi"), *idle(1)]
        await home.client.ingest_batch(ref(), said)
        before = await home.client.assemble(ref(), budget=budget(20_000))
        assert texts(before.items) == texts(said), "the newest turn stands"
        await home.client.ingest_batch(ref(), [user("and now?")])
        after = await home.client.assemble(
            ref(), budget=budget(20_000), known_epoch=before.context_projection.epoch, explain=True
        )
        assert texts(after.items) == ["hello", "hi", "and now?"]
        assert after.context_projection.epoch != before.context_projection.epoch
        assert after.cache.epoch_cause == CAUSE
        assert [one.rule for one in after.decisions][2:4] == [
            "a heartbeat that nothing came of"
        ] * 2
        await home.restart()
        assert await shown(home) == ["hello", "hi", "and now?"]
        assert texts(await home.rows(ref())) == [*texts(said), "and now?"], "all of it is stored"


async def test_only_pairs_of_which_nothing_came(tmp_path: Path) -> None:
    """Not where a tool was called, where something else was said, where there is no answer, where
    nobody marked the prompt, and not what is pinned."""
    acted = [
        marked("look"),
        assistant(tool_calls=[tool_call("c1", "read", {"path": "plants.txt"})]),
        tool_result("c1", "water the plants"),
        assistant("HEARTBEAT_OK"),
    ]
    pinned = idle(2)
    pinned[1].labels["pinned"] = "true"
    kept = [
        *acted,
        *(marked("look again"), assistant("The disk is full.")),
        *(marked("no answer"),),
        *(user("say it"), assistant("HEARTBEAT_OK")),
        *pinned,
    ]
    options = {"engine.default": "legacy", "engine.legacy.hideHeartbeats": True}
    async with house(tmp_path, **options) as home:
        await home.client.ingest_batch(ref(), [*idle(0), *kept, *idle(1), user("end")])
        assert await shown(home) == texts([*kept, user("end")])


async def test_turns_are_counted_without_them(tmp_path: Path) -> None:
    options = {"engine.default": "legacy", "engine.legacy.historyLimit": 2}
    turns = [(user(f"q{n}"), assistant(f"a{n}")) for n in range(5)]
    said = [message for n, turn in enumerate(turns) for message in (*turn, *idle(n))]
    async with house(tmp_path, **options) as home:
        await home.client.ingest_batch(ref(), [*said, user("end")])
        assert (await shown(home))[0] == "q4", "they are turns like others"
        assert len(await shown(home)) == 5
        await home.restart(**{"engine.legacy.hideHeartbeats": True})
        assert await shown(home) == ["q4", "a4", "end"]
        await home.restart(**{"engine.legacy.historyLimit": 4})
        every = [message for turn in turns for message in turn]
        assert await shown(home) == [*texts(every), "end"]


async def test_the_turn_says_it_of_its_prompt(tmp_path: Path) -> None:
    """And of nothing else: what the model said then is no acknowledgement for it."""
    options = {"engine.default": "legacy", "engine.legacy.hideHeartbeats": True}
    async with house(tmp_path, **options) as home:
        for reply in ("HEARTBEAT_OK", "The disk is full."):
            await home.client.after_turn(ref(), [user("look"), assistant(reply)], is_heartbeat=True)
        await home.client.after_turn(ref(), [user("end")])
        assert await shown(home) == ["look", "The disk is full.", "end"]
