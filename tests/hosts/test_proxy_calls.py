"""What the proxy calls calls, whatever its client does."""

from __future__ import annotations

import json
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from contextengine import Message, assistant, tool_call, tool_result, user
from contextengine.formats.gemini import INVENTED
from contextengine_proxy.calls import as_given, name_calls, named_in
from contextengine_proxy.dialects import dialect_of
from contextengine_proxy.reading import Reader, Request
from tests.hosts.providers import Json
from tests.hosts.sdk_hosts import ChatAgent
from tests.hosts.stage import staged

STEPS = st.lists(st.lists(st.sampled_from(["look", "find"]), max_size=3), min_size=1, max_size=6)
"""The tools that each reply calls."""
NAMES = st.lists(st.sampled_from(["a", "b", "c", f"{INVENTED}0"]), min_size=18, max_size=18)


def talk(steps: list[list[str]], names: list[str]) -> list[Message]:
    """A conversation whose calls have these ids; those of a reply may be alike."""
    said, ids = [user("go on")], iter(names)
    for at, tools in enumerate(steps):
        calls = [(next(ids), tool) for tool in tools]
        made = [tool_call(one, tool, {"at": at % 2}) for one, tool in calls]
        said.append(assistant(f"step {at}", tool_calls=made))
        said += [tool_result(one, f"found {at}", name=tool) for one, tool in calls]
    return said


def ours(messages: list[Message]) -> list[list[str]]:
    return [[one.call_id for one in named_in(message)] for message in messages]


@given(STEPS, NAMES, NAMES, st.data())
def test_calls_have_one_name_whatever_the_client_calls_them(
    steps: list[list[str]], names: list[str], others: list[str], data: st.DataObject
) -> None:
    """And wherever reading begins: a list is read from where it was known to, and may have lost its
    beginning."""
    whole, renamed = talk(steps, names), talk(steps, others)
    name_calls(whole, [], [])
    known: list[tuple[str, ...]] = []
    begin = first = data.draw(st.sampled_from(_starts(renamed)))
    while begin < len(renamed):
        end = data.draw(st.integers(begin + 1, len(renamed)))
        known += name_calls(renamed[begin:end], renamed[first:begin], known)
        begin = end
    assert ours(whole[first:]) == ours(renamed[first:])
    called: list[str] = []
    for message in whole:
        for one in named_in(message):
            if message.parts[0].HasField("tool_result"):
                called.remove(one.call_id)  # each result has its call
            else:
                called.append(one.call_id)
    assert not called


def _starts(messages: list[Message]) -> list[int]:
    return [at for at, one in enumerate(messages) if not one.parts[0].HasField("tool_result")]


@given(STEPS, NAMES)
def test_the_client_sees_its_own_names(steps: list[list[str]], names: list[str]) -> None:
    given_as, messages = talk(steps, names), talk(steps, names)
    ids = name_calls(messages, [], [])
    assert [list(one) for one in ids] == ours(given_as)
    for message, one, before in zip(messages, ids, given_as, strict=True):
        names_of = dict(zip(ours([message])[0], one, strict=True))
        assert ours([as_given(message, names_of)]) == ours([before])


def test_a_result_that_names_its_tool_alone_answers_the_first_such_call() -> None:
    """As Gemini's do, where they are read apart from their calls: made up ids may be those of
    others then."""
    calls = [tool_call(f"{INVENTED}1-{at}", tool) for at, tool in enumerate(("look", "find"))]
    called = assistant(tool_calls=calls)
    found = tool_result(f"{INVENTED}1-0", "this", name="find")
    known = name_calls([called], [], [])
    name_calls([found], [called], known)
    assert found.parts[0].tool_result.call_id == called.parts[1].tool_call.call_id


def test_a_result_of_no_call_stays_what_it_is() -> None:
    found = tool_result("x", "this", name="find")
    name_calls([found], [], [])
    assert found.parts[0].tool_result.call_id == "x"


def test_many_results_of_no_call_cost_as_much_each_as_few() -> None:
    messages = [tool_result("x", "this", name="find") for _ in range(20_000)]
    messages += [assistant(tool_calls=[tool_call("y", "find") for _ in range(10_000)])]
    messages += [tool_result("y", "this", name="find") for _ in range(20_000)]
    began = time.process_time()
    name_calls(messages, [], [])
    assert time.process_time() - began < 5


def test_conversations_that_say_the_same_keep_their_own_names() -> None:
    """As two agents do that were given the same task: each is answered under its own ids."""
    dialect = dialect_of("/v1/chat/completions")
    assert dialect is not None
    reader = Reader()

    def request(call_id: str) -> Request:
        call = {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        said = [
            {"role": "user", "content": "go on"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call_id, "content": "found"},
        ]
        return reader.read(dialect, json.dumps({"model": "m", "messages": said}).encode(), "")

    first, second = request("a"), request("b")
    assert first.ids == second.ids
    assert ours(first.messages) == ours(second.messages)
    assert (first.calls[1:], second.calls[1:]) == ([("a",), ("a",)], [("b",), ("b",)])


async def test_a_client_that_sends_its_newest_messages_alone_is_answered_in_pairs(
    tmp_path: Path,
) -> None:
    """Also where it cuts its list amid the work for one prompt."""

    class Sliding(ChatAgent):
        async def step(self) -> tuple[str, list[tuple[str, object]]]:
            whole, begin = self.messages, max(0, len(self.messages) - 4)
            while begin and _role(whole[begin]) == "tool":
                begin -= 1
            self.messages = whole[begin:]
            try:
                told = await super().step()
                return told[0], list(told[1])
            finally:
                self.messages = whole[:begin] + self.messages

        def answer(self, call: tuple[str, object], result: str) -> None:
            super().answer(call, result * 40)  # shown in part

    async with staged(tmp_path) as stage:
        agent = Sliding(stage.base, stream=False, session="talk")
        for turn in range(8):
            await agent.say(f"Question {turn}: {'and ' * 100}")
        for seen in stage.upstream.seen:
            called: set[str] = set()
            for message in seen.json["messages"]:
                if message["role"] == "tool":
                    assert message["tool_call_id"] in called, seen.json["messages"]
                called |= {one["id"] for one in message.get("tool_calls") or ()}
        await agent.close()


def _role(message: Json | object) -> object:
    return message["role"] if isinstance(message, dict) else getattr(message, "role", "")
