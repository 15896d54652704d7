"""Agents of LangChain with the middleware: judged by what the model was sent and what is stored.
Runs where LangChain is installed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.prebuilt import create_react_agent

from contextengine import AsyncClient, Client, Message, text_of, tool_result, user
from contextengine.types import FORM_PLACEHOLDER, Item
from contextengine_langchain import ContextengineHooks, ContextengineMiddleware
from contextengine_langchain.messages import kept, shown, with_addition
from tests.hosts.stage import soon
from tests.integration.harness import House, house, ref

WINDOW = 18_000
HERE = ref("thread-1", agent="langchain")
RUN: Any = {"configurable": {"thread_id": "thread-1"}}


@tool
def look_up(of: str) -> str:
    """Looks something up."""
    if of == "nothing":
        raise ValueError("there is nothing")
    return f"found {of}: " + "word " * 100


class Scripted(BaseChatModel):
    """Calls the tool twice at once for every third question, else says something long."""

    seen: list[list[Any]]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return self

    def _generate(self, messages: Any, *_: Any, **more: Any) -> ChatResult:
        self.seen.append(list(messages))
        said = AIMessage(f"Answer {len(self.seen)}: " + "well " * 150)
        if isinstance(messages[-1], HumanMessage) and len(self.seen) % 3 == 0:
            calls = [
                {"name": "look_up", "args": {"of": f"{len(self.seen)}-{at}"}, "id": f"c{at}"}
                for at in range(2)
            ]
            said = AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=said)])


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as made:
        yield made


def agent_of(
    client: Client | AsyncClient, model: Scripted, saver: Any = None, others: Sequence[Any] = ()
) -> Any:
    return create_agent(
        model,
        [look_up],
        system_prompt="Be brief.",
        middleware=[*others, ContextengineMiddleware(client, window=WINDOW)],
        checkpointer=saver or InMemorySaver(),
    )


async def stored(home: House) -> list[str]:
    rows = await home.rows(HERE)
    return [text_of(row.message) for row in rows if not row.retired_revision]


def names(messages: Iterable[Message]) -> list[str]:
    return [message.id for message in messages]


async def has_summaries(home: House) -> bool:
    return (await home.client.get_status(HERE)).summary_count > 0


async def test_all_is_stored_and_what_fits_is_sent(home: House) -> None:
    model = Scripted(seen=[])
    async with AsyncClient(home.app.address, retry_for=0) as client:
        agent = agent_of(client, model)
        for at in range(30):
            state = await agent.ainvoke({"messages": [HumanMessage(f"question {at}")]}, RUN)
        # A model's answer takes longer than this one's: the background compacts meanwhile.
        await soon(lambda: has_summaries(home))
        state = await agent.ainvoke({"messages": [HumanMessage("the last one")]}, RUN)
    rows = await home.rows(HERE)
    assert names(row.message for row in rows) == names(kept(state["messages"]))
    assert len(rows) > 60
    last = model.seen[-1]
    assert str(last[0].content).startswith("Be brief.")
    assert len(last) < len(rows)
    assert any(str(message.id).startswith("ce:summary:") for message in last)
    assert last[-1] is state["messages"][-2]


def test_blocking_calls_do_the_same(tmp_path: Path, serving: str) -> None:
    model = Scripted(seen=[])
    with Client(serving, retry_for=0) as client:
        agent = agent_of(client, model)
        for at in range(3):
            state = agent.invoke({"messages": [HumanMessage(f"question {at}")]}, RUN)
        status = client.get_status(HERE)
    assert status.message_count == len(state["messages"])


@pytest.fixture
def serving(tmp_path: Path) -> Any:
    from tests.acceptance.shell import serving as served

    with served(tmp_path) as server:
        yield server.address


async def test_an_undo_leaves_the_view(home: House) -> None:
    model = Scripted(seen=[])
    async with AsyncClient(home.app.address, retry_for=0) as client:
        agent = agent_of(client, model)
        for words in ("one", "two"):
            state = await agent.ainvoke({"messages": [HumanMessage(words)]}, RUN)
        gone = [RemoveMessage(id=str(message.id)) for message in state["messages"][2:]]
        await agent.aupdate_state(RUN, {"messages": gone})
        await agent.ainvoke({"messages": [HumanMessage("instead")]}, RUN)
    texts = await stored(home)
    assert [one for one in texts if one in ("one", "two", "instead")] == ["one", "instead"]
    sent = [str(message.content) for message in model.seen[-1]]
    assert "two" not in sent


async def test_a_service_that_is_away_stops_no_agent_and_gets_all_later(home: House) -> None:
    model, saver = Scripted(seen=[]), InMemorySaver()

    def agent(client: AsyncClient) -> Any:
        middleware = [ContextengineMiddleware(client, window=WINDOW)]
        return create_agent(model, [look_up], middleware=middleware, checkpointer=saver)

    async with AsyncClient("127.0.0.1:1", retry_for=0, breaker=True) as away:
        state = await agent(away).ainvoke({"messages": [HumanMessage("one")]}, RUN)
        assert [m.content for m in model.seen[-1]] == ["one"]
    async with AsyncClient(home.app.address, retry_for=0) as client:
        state = await agent(client).ainvoke({"messages": [HumanMessage("two")]}, RUN)
    assert await stored(home) == [str(message.content) for message in state["messages"]]


async def test_without_a_thread_the_state_is_sent_as_it_is(home: House) -> None:
    model = Scripted(seen=[])
    async with AsyncClient(home.app.address, retry_for=0) as client:
        middleware = [ContextengineMiddleware(client)]
        agent = create_agent(model, [look_up], middleware=middleware)
        await agent.ainvoke({"messages": [HumanMessage("one")]})
        assert [m.content for m in model.seen[-1]] == ["one"]
        assert not (await client.sessions.list()).sessions


def test_what_is_shown_verbatim_is_the_agents_own_message() -> None:
    said = AIMessage("hm", id="a", additional_kwargs={"signature": "s"})
    rows = kept([said])
    (one,) = rows
    assert text_of(one) == "hm"
    assert shown([Item(id=one.id, message=one)], [said], rows)[0] is said
    made = shown([Item(id=one.id, message=one, form=FORM_PLACEHOLDER)], [said], rows)
    assert made[0] is not said
    assert made[0].id == "a"


def test_what_failed_and_what_binds_reasoning_is_kept() -> None:
    thought = [{"type": "thinking", "thinking": "hm", "signature": "s"}]
    failed = ToolMessage("no", tool_call_id="c", status="error", artifact={"a": 1}, id="b")
    reply, result = kept([AIMessage(thought, id="a"), failed])
    assert reply.parts[0].reasoning.signature == b"s"
    assert result.parts[0].tool_result.is_error
    assert result.parts[0].tool_result.details_json == b'{"a":1}'


def test_messages_are_named_by_what_they_say() -> None:
    """Callers who hand over their whole list get other ids for it each time."""
    one, other = kept([HumanMessage("hi", id="a"), AIMessage("hm")]), kept([HumanMessage("hi")])
    assert one[0].id == other[0].id
    assert one[1].id not in ("", one[0].id)


def test_an_artifact_of_any_kind_is_kept() -> None:
    artifact = {("a", 1): "left out", "b": float("nan"), "c": object, "d": "\ud83d"}
    (row,) = kept([ToolMessage("found", tool_call_id="c", artifact=artifact)])
    assert text_of(row) == "found"


@pytest.mark.parametrize("again", [False, True], ids=["one process", "another process"])
async def test_what_is_done_to_the_state_is_done_to_the_session(home: House, again: bool) -> None:
    model, saver = Scripted(seen=[]), InMemorySaver()
    async with AsyncClient(home.app.address, retry_for=0) as client:
        agent = agent_of(client, model, saver)

        async def becomes(*done: Any) -> None:
            nonlocal agent
            await agent.aupdate_state(RUN, {"messages": [*done]})
            agent = agent_of(client, model, saver) if again else agent
            state = await agent.ainvoke({"messages": [HumanMessage("and now?")]}, RUN)
            assert await stored(home) == [str(one.content) for one in state["messages"]]
            sent = [one.content for one in model.seen[-1] if one.type != "system"]
            assert sent == [one.content for one in state["messages"][:-1]]

        for at in range(5):
            state = await agent.ainvoke({"messages": [HumanMessage(f"question {at}")]}, RUN)
        ids = [str(one.id) for one in state["messages"]]
        await becomes(AIMessage("changed", id=ids[1]))
        await becomes(HumanMessage("another question", id=ids[0]))
        await becomes(RemoveMessage(id=ids[3]))
        await becomes(RemoveMessage(id=ids[0]), RemoveMessage(id=ids[1]))
        summary = HumanMessage("What was said before: nothing.")
        state = (await agent.aget_state(RUN)).values
        last = max(at for at, one in enumerate(state["messages"]) if one.type == "human")
        await becomes(RemoveMessage(id=REMOVE_ALL_MESSAGES), summary, *state["messages"][last:])


class Reminding(AgentMiddleware[Any, Any, Any]):
    """Has the model see what is no part of the conversation."""

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        words = {"role": "user", "content": "Mind the time."}
        return await handler(request.override(messages=[*request.messages, words]))


async def test_what_another_middleware_shows_for_one_call_is_shown_and_not_stored(
    home: House,
) -> None:
    model = Scripted(seen=[])
    async with AsyncClient(home.app.address, retry_for=0) as client:
        agent = agent_of(client, model, others=[Reminding()])
        for at in range(2):
            state = await agent.ainvoke({"messages": [HumanMessage(f"question {at}")]}, RUN)
            assert model.seen[-1][-1].content == "Mind the time."
    assert await stored(home) == [str(one.content) for one in state["messages"]]


def test_what_is_beside_the_agents_own_messages_stands_where_it_stood() -> None:
    bad = {"name": "f", "args": "{", "id": "c", "error": None, "type": "invalid_tool_call"}
    own = [
        HumanMessage("hi", id="a"),
        AIMessage("", id="b", invalid_tool_calls=[bad]),
        HumanMessage("go on", id="d"),
    ]
    rows = kept(own)
    made_up = tool_result("c", "No result was recorded.", name="f")
    items = [Item(id=row.id, message=row) for row in rows]
    items.insert(2, Item(id="ce:result:1", message=made_up))
    assert [one.type for one in shown(items, own, rows)] == ["human", "ai", "tool", "human"]
    # LangChain answers a call that it cannot read, for the model alone.
    answer, first = ToolMessage("no JSON", tool_call_id="c"), HumanMessage("first")
    asked = [first, own[0], own[1], answer, own[2]]
    assert shown(items, own, rows, asked) == asked
    summary = Item(id="ce:summary:1", message=user("what was said"))
    found = shown([summary, items[-1]], own, rows, asked)
    assert [one.content for one in found] == ["what was said", "first", "go on"]
    assert shown(items, own, rows, [own[0], own[2]]) == [own[0], own[2]]


async def test_a_graph_with_hooks_gets_what_fits_and_keeps_its_state(home: House) -> None:
    model = Scripted(seen=[])
    async with AsyncClient(home.app.address, retry_for=0) as client:
        hooks = ContextengineHooks(client, window=WINDOW)
        graph: Any = create_react_agent(
            model,
            [look_up],
            pre_model_hook=hooks.before_model,
            post_model_hook=hooks.after_model,
            checkpointer=InMemorySaver(),
        )
        for at in range(45):
            await graph.ainvoke({"messages": [HumanMessage(f"question {at}")]}, RUN)
        await soon(lambda: has_summaries(home))
        state = await graph.ainvoke({"messages": [HumanMessage("the last one")]}, RUN)
    rows = await home.rows(HERE)
    assert names(row.message for row in rows) == names(kept(state["messages"]))
    last = model.seen[-1]
    assert last[0].type == "system", "the model is told that the beginning is summarized"
    assert any(str(message.id).startswith("ce:summary:") for message in last)
    assert len(last) < len(rows)
    assert last[-1] is state["messages"][-2]


def test_blocking_graphs_do_the_same(serving: str) -> None:
    model = Scripted(seen=[])
    with Client(serving, retry_for=0) as client:
        hooks = ContextengineHooks(client, window=WINDOW)
        graph: Any = create_react_agent(
            model,
            [look_up],
            pre_model_hook=hooks.before_model,
            post_model_hook=hooks.after_model,
            checkpointer=InMemorySaver(),
        )
        for at in range(3):
            state = graph.invoke({"messages": [HumanMessage(f"question {at}")]}, RUN)
        status = client.get_status(HERE)
    assert status.message_count == len(state["messages"])


class Narrow(Scripted):
    """Takes no more characters than `most`."""

    most: int = 10**9
    fails: str = "prompt is too long"

    def _generate(self, messages: Any, *others: Any, **more: Any) -> ChatResult:
        if sum(len(str(one.content)) for one in messages) > self.most:
            self.seen.append(list(messages))
            raise ValueError(self.fails)
        return super()._generate(messages, *others, **more)

    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return self.bind(tools=[one.name for one in tools])


@pytest.mark.parametrize("fails", ["prompt is too long", "no such model"])
def test_blocking_graphs_ask_once_more_with_less_where_a_prompt_is_too_long(
    serving: str, fails: str
) -> None:
    model = Narrow(seen=[], fails=fails)
    with Client(serving, retry_for=0) as client:
        hooks = ContextengineHooks(client, window=WINDOW)
        graph: Any = create_react_agent(
            hooks.model(model),
            [look_up],
            prompt="Be brief.",
            pre_model_hook=hooks.before_model,
            post_model_hook=hooks.after_model,
            checkpointer=InMemorySaver(),
        )
        for at in range(4):
            graph.invoke({"messages": [HumanMessage(f"question {at}")]}, RUN)
        model.most = sum(len(str(one.content)) for one in model.seen[-1])
        before = len(model.seen)
        words = {"messages": [HumanMessage("the last one")]}
        if fails != "prompt is too long":
            with pytest.raises(ValueError, match=fails):
                graph.invoke(words, RUN)
            assert len(model.seen) == before + 1
            return
        graph.invoke(words, RUN)
    refused, answered = model.seen[before : before + 2]
    assert len(answered) < len(refused)
    assert answered[-1] is refused[-1]
    assert answered[0].content == refused[0].content == "Be brief."


def test_a_model_of_a_graph_is_still_one_of_a_provider_with_its_tools(serving: str) -> None:
    """`create_react_agent` looks for it where it is to answer in a given form."""
    model = Narrow(seen=[])
    with Client(serving, retry_for=0) as client:
        hooks = ContextengineHooks(client)
        for asked in (
            hooks.model(model).bind_tools([look_up]),
            hooks.model(model.bind_tools([look_up])),
        ):
            assert asked.bound is model
            assert asked.kwargs == {"tools": ["look_up"]}
            assert asked.hooks is hooks


def test_the_addition_stands_behind_the_agents_own_words() -> None:
    assert with_addition(None, "") is None
    assert with_addition(None, "more").content == "more"  # type: ignore[union-attr]
    assert with_addition(SystemMessage("Be."), "more").content == "Be.\n\nmore"  # type: ignore[union-attr]
    parts = with_addition(SystemMessage([{"type": "text", "text": "Be."}]), "more")
    assert parts is not None
    assert parts.content[-1] == {"type": "text", "text": "more"}
