"""What the proxy calls calls, whatever its client does."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from contextengine import Message, assistant, name_by_content, tool_call, tool_result, user
from contextengine.formats.gemini import INVENTED
from contextengine_proxy.calls import as_given, name_calls
from contextengine_proxy.dialects import dialect_of
from contextengine_proxy.reading import Reader, Request

STEPS = st.lists(st.lists(st.sampled_from(["look", "find"]), max_size=3), min_size=1, max_size=6)
"""The tools that each reply calls."""
NAMES = st.lists(st.sampled_from(["a", "b", "c", f"{INVENTED}0"]), min_size=18, max_size=18)


def talk(steps: list[list[str]], names: list[str]) -> list[Message]:
    """A conversation whose calls have these ids; those of a reply may be alike."""
    said, ids = [user("go on")], iter(names)
    for at, tools in enumerate(steps):
        calls = [(next(ids), tool) for tool in tools]
        made = [tool_call(one, tool, {"at": at}) for one, tool in calls]
        said.append(assistant(f"step {at}", tool_calls=made))
        said += [tool_result(one, f"found {at}", name=tool) for one, tool in calls]
    return said


def ours(messages: list[Message]) -> list[list[str]]:
    return [
        [part.tool_call.call_id or part.tool_result.call_id for part in message.parts]
        for message in messages
    ]


@given(STEPS, NAMES, NAMES, st.data())
def test_calls_have_one_name_whatever_the_client_calls_them(
    steps: list[list[str]], names: list[str], others: list[str], data: st.DataObject
) -> None:
    """And wherever reading begins: a list is read from where it was known to."""
    whole, renamed = talk(steps, names), talk(steps, others)
    name_by_content(whole)
    name_by_content(renamed)
    name_calls(whole, [], {})
    known: dict[str, str] = {}
    begin = 0
    while begin < len(renamed):
        end = data.draw(st.integers(begin + 1, len(renamed)))
        name_calls(renamed[begin:end], renamed[:begin], known)
        begin = end
    assert ours(whole) == ours(renamed)
    calls = [name for names in ours(whole)[1:] for name in names if name]
    assert all(calls.count(name) == 2 for name in calls), "each call has its result"


@given(STEPS, NAMES)
def test_the_client_sees_its_own_names(steps: list[list[str]], names: list[str]) -> None:
    given_as = talk(steps, names)
    messages = talk(steps, names)
    name_by_content(messages)
    known: dict[str, str] = {}
    name_calls(messages, [], known)
    assert ours([as_given(one, known) for one in messages]) == ours(given_as)
    assert ours(messages) != ours(given_as) or not any(steps)


def test_a_result_that_names_its_tool_alone_answers_the_first_such_call() -> None:
    """As Gemini's do, where they are read apart from their calls."""
    called = assistant(tool_calls=[tool_call("x", "look"), tool_call("y", "find")])
    found = tool_result(f"{INVENTED}7-0", "this", name="find")
    messages = [called, found]
    name_by_content(messages)
    known: dict[str, str] = {}
    name_calls(messages[:1], [], known)
    name_calls(messages[1:], messages[:1], known)
    assert found.parts[0].tool_result.call_id == called.parts[1].tool_call.call_id


def test_a_result_of_no_call_stays_what_it_is() -> None:
    found = tool_result("x", "this", name="find")
    name_calls([found], [], {})
    assert found.parts[0].tool_result.call_id == "x"


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
    for one, name in ((first, "a"), (second, "b")):
        assert ours([as_given(message, one.calls) for message in one.messages[1:]]) == [
            [name],
            [name],
        ]
