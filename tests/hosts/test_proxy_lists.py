"""What clients of the proxy make of their lists: cut off at the beginning, begun anew, folded into
words of their own, with other ids of calls."""

from __future__ import annotations

import json
from itertools import cycle
from pathlib import Path

import pytest

from contextengine import name_by_content as name
from tests.hosts.sdk_hosts import Agent, AnthropicAgent, ChatAgent
from tests.hosts.stage import Stage, soon, staged
from tests.integration.harness import ref


def question(turn: int) -> str:
    return f"Question {turn}? {'please ' * 60}"


async def brought(stage: Stage, agent: Agent) -> None:
    """Waits until the session is the agent's list, under whatever ids."""

    async def holds() -> bool:
        rows = await stage.home.rows(ref("talk", agent="proxy"))
        return name([row.message for row in rows]) == name(agent.read())

    await soon(holds)


BEGUN = {
    "qwen-code": ["We are setting up the context.", "Got it. Thanks for the context!"],
    "aider": [
        "Change get_factorial() to use math.factorial",
        "To make this change we need to modify `mathweb/flask/app.py`.",
        "I switched to a new code base. Please don't consider the above files or try to edit them"
        " any longer.",
        "Ok.",
        "Here are summaries of some files present in my git repository.",
        "Ok, I won't try and edit those files without asking first.",
        "I have *added these files to the chat* so you can go ahead and edit them.",
        "Ok, any changes I propose will be to those files.",
    ],
}
"""What hosts begin each conversation in a folder with: words of the user's, then the model's."""


@pytest.mark.parametrize("host", BEGUN)
async def test_what_a_host_says_in_the_models_name_tells_no_conversation_from_another(
    host: str, tmp_path: Path
) -> None:
    """They would all be one session, and each took it over from the one before."""
    async with staged(tmp_path) as stage:
        agents = [ChatAgent(stage.base, stream=False) for _ in range(2)]
        for at, agent in enumerate(agents):
            for told, role in zip(BEGUN[host], cycle(("user", "assistant")), strict=False):
                agent.messages.append({"role": role, "content": told})
            for turn in range(2):
                await agent.say(question(2 * at + turn))
        await stage.each_stored([agent.read() for agent in agents])
        for agent in agents:
            await agent.close()


async def test_a_conversation_that_begins_anew_is_there_once(tmp_path: Path) -> None:
    """As where a user edits the first message: the list has nothing of the session."""
    async with staged(tmp_path) as stage:
        agent = ChatAgent(stage.base, stream=False, session="talk")
        await agent.say(question(0))
        await brought(stage, agent)
        del agent.messages[1:]
        for turn in (1, 2, 3):
            await agent.say(question(turn))
        await brought(stage, agent)
        await agent.close()


async def test_an_answer_that_is_asked_for_again_takes_the_place_of_the_one_before(
    tmp_path: Path,
) -> None:
    """Also where the list is one that the client folded, and the service finds its place by what it
    says."""
    async with staged(tmp_path) as stage:
        agent = ChatAgent(stage.base, stream=False, session="talk")
        for turn in range(4):
            await agent.say(question(turn))
        agent.messages[1:5] = [{"role": "user", "content": "We spoke of questions 0 and 1."}]
        await agent.say(question(4))
        await brought(stage, agent)
        while not _asks(agent.messages[-1]):
            agent.messages.pop()
        agent.messages.pop()
        await agent.say(question(4))
        await brought(stage, agent)
        await agent.close()


def _asks(message: object) -> bool:
    return isinstance(message, dict) and message.get("role") == "user"


async def test_a_list_whose_beginning_was_cut_off_goes_on_in_its_session(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        agent = ChatAgent(stage.base, stream=False, session="talk")
        for turn in range(4):
            await agent.say(question(turn))
        held = len(await stage.stored("talk"))
        del agent.messages[1:5]
        await agent.say("Does it go on?")
        assert len(await stage.stored("talk")) >= held + 1
        assert "Does it go on?" in stage.upstream.seen[-1].body.decode()
        await agent.close()


async def test_calls_whose_ids_were_rewritten_and_reasoning_that_was_dropped_are_the_same(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as stage:
        agent = AnthropicAgent(stage.base, stream=True, session="talk")
        await agent.say(question(0))
        told = json.dumps(agent.messages, default=lambda one: one.model_dump(exclude_unset=True))
        agent.messages = json.loads(told.replace("toolu_0_", "other_"))
        for message in agent.messages:
            if isinstance(message["content"], list):
                message["content"] = [
                    one for one in message["content"] if one["type"] != "thinking"
                ]
        held = await stage.stored("talk")
        await agent.say(question(1))
        assert (await stage.stored("talk"))[: len(held)] == held
        sent = stage.upstream.seen[-1].body.decode()
        assert "other_0" in sent
        assert "toolu_0_" not in sent
        await agent.close()
