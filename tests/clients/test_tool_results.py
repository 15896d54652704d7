"""Tool results in the formats of providers: each answers one call, and stands behind nothing that
was said beside another."""

from __future__ import annotations

import json

import pytest

from contextengine import types as t
from contextengine.messages import assistant, tool_call, tool_result, user
from tests.clients.drivers import NAMED, Driver, Json, read, written

GEMINI = [one for one in NAMED if one in ("python", "typescript")]


def sent(driver: Driver, name: str, messages: list[t.Message]) -> Json:
    """The request that these messages are in a format."""
    out = [written(message) for message in messages]
    made: Json = json.loads(driver.ask("format", format=name, out=out)["json"])
    return made


@pytest.mark.parametrize("language", [one for one in NAMED if one != "python-asyncio"])
def test_all_results_of_a_step_stand_directly_behind_its_calls(
    language: str, everyone: dict[str, Driver]
) -> None:
    """OpenAI refuses a list in which a user speaks between them, as one does who broke off."""
    calls = [tool_call(f"c{at}", "look", {}) for at in range(3)]
    results = [tool_result(f"c{at}", f"found {at}", name="look") for at in range(3)]
    stopped = t.Message(role=t.ROLE_USER, parts=[*results[0].parts, *user("stop").parts])
    waits = t.Message(role=t.ROLE_USER, parts=[*results[1].parts, *user("wait").parts])
    messages = [user("go"), assistant(tool_calls=calls), stopped, waits, results[2], user("on")]

    def rows(messages: list[t.Message]) -> list[str]:
        made = sent(everyone[language], "openai.chat", messages)["messages"]
        return [row.get("tool_call_id") or row["content"] or row["role"] for row in made]

    said = ["c0", "c1", "c2", "stop", "wait"]
    assert rows(messages) == ["go", "assistant", *said, "on"]
    assert rows(messages[:5]) == ["go", "assistant", *said]
    # A result that came from OpenAI as it is stands among them too.
    results[2].native.format = "openai.chat"
    results[2].native.json = b'{"role": "tool", "tool_call_id": "c2", "content": "own"}'
    assert rows(messages) == ["go", "assistant", *said, "on"]
    # What is said behind the next calls stays there.
    assert rows([*messages[:3], *messages[1:3]]) == ["go", *["assistant", "c0", "stop"] * 2]


@pytest.mark.parametrize("language", GEMINI)
@pytest.mark.parametrize("name", ["langchain", "ai-sdk", "pi"])
def test_so_they_do_in_the_forms_of_hosts(
    name: str, language: str, everyone: dict[str, Driver]
) -> None:
    """Who sends them on to a provider as they are."""
    calls = [tool_call(f"c{at}", "look", {}) for at in range(2)]
    results = [tool_result(f"c{at}", f"found {at}", name="look") for at in range(2)]
    stopped = t.Message(role=t.ROLE_USER, parts=[*results[0].parts, *user("stop").parts])
    messages = [user("go"), assistant(tool_calls=calls), stopped, results[1], user("on")]
    made = json.dumps(sent(everyone[language], name, messages))
    places = [made.index(f'"{said}"') for said in ("go", "found 0", "found 1", "stop", "on")]
    assert places == sorted(places)


@pytest.mark.parametrize("language", GEMINI)
def test_a_part_of_a_result_that_streams_stands_among_them(
    language: str, everyone: dict[str, Driver]
) -> None:
    """LangChain names it otherwise, and it comes back as it was."""
    calls = [tool_call(f"c{at}", "look", {}) for at in range(2)]
    results = [tool_result(f"c{at}", f"found {at}", name="look") for at in range(2)]
    stopped = t.Message(role=t.ROLE_USER, parts=[*results[0].parts, *user("stop").parts])
    own = {"type": "ToolMessageChunk", "data": {"tool_call_id": "c1", "content": "found 1"}}
    results[1].native.format, results[1].native.json = "langchain", json.dumps(own).encode()
    messages = [assistant(tool_calls=calls), stopped, results[1], user("on")]
    made = sent(everyone[language], "langchain", messages)["messages"]
    assert [row["type"] for row in made] == ["ai", "tool", own["type"], "human", "human"]
    assert made[2] == own


def pairs(messages: list[t.Message]) -> tuple[list[str], dict[str, list[str]]]:
    """The ids of the calls in order, and what answers each id."""
    calls: list[str] = []
    answers: dict[str, list[str]] = {}
    for message in messages:
        for part in message.parts:
            if part.HasField("tool_call"):
                calls.append(part.tool_call.call_id)
            if part.HasField("tool_result"):
                text = part.tool_result.parts[0].text.text
                answers.setdefault(part.tool_result.call_id, []).append(text)
    return calls, answers


SAME: Json = {"functionCall": {"name": "look", "args": {"at": 1}}}
OTHER: Json = {"functionCall": {"name": "look", "args": {"at": 2}}}


def answer(text: str) -> Json:
    return {"functionResponse": {"name": "look", "response": {"output": text}}}


def model(*parts: Json) -> Json:
    return {"role": "model", "parts": list(parts)}


def says(*parts: Json) -> Json:
    return {"role": "user", "parts": list(parts)}


@pytest.mark.parametrize("language", GEMINI)
@pytest.mark.parametrize("second", [SAME, OTHER], ids=["alike", "another"])
@pytest.mark.parametrize("called", ["together", "apart"])
@pytest.mark.parametrize("answered", ["together", "apart", "with words between"])
def test_calls_without_ids_have_each_its_result(
    called: str, answered: str, second: Json, language: str, everyone: dict[str, Driver]
) -> None:
    """Gemini names no calls: the results of a step answer those of their name in order."""
    calls = [model(SAME, second)] if called == "together" else [model(SAME), model(second)]
    results = {
        "together": [says(answer("one"), answer("two"))],
        "apart": [says(answer("one")), says(answer("two"))],
        "with words between": [says(answer("one")), says({"text": "on"}), says(answer("two"))],
    }[answered]
    contents = [says({"text": "go"}), *calls, *results]
    asked = {"in": json.dumps({"contents": contents + calls + results})}
    given = everyone[language].ask("format", format="gemini.content", **asked)["messages"]
    messages = [read(t.Message, one) for one in given]
    half = len(contents)
    for step in (messages[:half], messages[half:]):
        [first, last], answers = pairs(step)
        assert first != last
        assert answers == {first: ["one"], last: ["two"]}
    # The same calls have the same names wherever they stand: a list may be cut before them.
    assert pairs(messages[1:half]) == pairs(messages[half:])
