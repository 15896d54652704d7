"""Real conversations through each format and each language: what a message was made of comes back
byte for byte, and without its original it says the same to a model."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from contextengine import types as t
from contextengine.formats import read_transcript
from contextengine.messages import assistant, tool_call, tool_result, user
from tests.clients.drivers import NAMED, ROOT, Driver, Json, read, written
from tests.clients.vectors import vectors
from tests.unit.client.test_to_responses import said

DATA = ROOT / "tests" / "data"


@cache
def conversations() -> list[list[t.Message]]:
    """The messages of real sessions, without the originals they were read from."""
    found = []
    for name in ("airline_transcripts.jsonl", "coding_session.pi.jsonl"):
        for session in read_transcript(DATA / name):
            for message in session.messages:
                message.ClearField("native")
            # A leading instruction stands beside the list in two formats.
            found.append([one for one in session.messages if one.role != t.ROLE_SYSTEM])
    return found


def pairs() -> list[Any]:
    """Each client with what it reads and writes; asyncio's shares the code of Python's other."""
    return [
        pytest.param(language, case["format"], id=f"{language}-{case['format']}")
        for language in NAMED
        for case in vectors("formats.json")["cases"]
        if language != "python-asyncio" and language in case.get("by", [language])
    ]


def through(driver: Driver, name: str, messages: list[t.Message]) -> tuple[list[t.Message], Any]:
    """A request of these messages, and what is made of it again."""
    out = [written(message) for message in messages]
    request = driver.ask("format", format=name, out=out)["json"]
    again = driver.ask("format", format=name, **{"in": request})["messages"]
    return [read(t.Message, message) for message in again], json.loads(request)


@pytest.mark.parametrize(("language", "name"), pairs())
def test_real_sessions_lose_nothing_that_a_model_is_told(
    language: str, name: str, everyone: dict[str, Driver]
) -> None:
    driver = everyone[language]
    told = 0
    for messages in conversations():
        made, request = through(driver, name, messages)
        assert said(made) == said(messages)
        told += len(said(messages))
        # With their originals the messages are the very request again.
        _, again = through(driver, name, made)
        assert again == request
    assert told > 3_000


@pytest.mark.parametrize("language", [one for one in NAMED if one in ("python", "typescript")])
def test_an_object_that_is_shown_in_part_is_said_as_it_is(
    language: str, everyone: dict[str, Driver]
) -> None:
    """The service shortens what tools answered: what is left of an object's JSON is none."""
    call = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
    answered = {"functionResponse": {"name": "f", "response": {"rows": [1, 2]}}}
    request = json.dumps({"contents": [call, {"role": "user", "parts": [answered]}]})
    driver = everyone[language]
    given = driver.ask("format", format="gemini.content", **{"in": request})["messages"]
    messages = [read(t.Message, one) for one in given]
    for message in messages:
        message.ClearField("native")
    messages[1].parts[0].tool_result.parts[0].text.text = '{"rows": [1, [... left out ...]'
    out = [written(message) for message in messages]
    made = json.loads(driver.ask("format", format="gemini.content", out=out)["json"])
    [part] = made["contents"][1]["parts"]
    assert part["functionResponse"]["response"] == {"output": '{"rows": [1, [... left out ...]'}


@pytest.mark.parametrize("language", [one for one in NAMED if one in ("python", "typescript")])
def test_results_of_one_step_share_a_content(language: str, everyone: dict[str, Driver]) -> None:
    """Gemini refuses fewer results in the content behind calls than were called."""
    driver = everyone[language]
    calls = [tool_call(f"c{at}", "look", {"at": at}) for at in range(3)]
    messages = [user("go"), assistant(tool_calls=calls)]
    messages += [tool_result(f"c{at}", f"found {at}", name="look") for at in range(3)]
    messages.append(user("and now?"))

    def contents(messages: list[t.Message]) -> list[Json]:
        out = [written(message) for message in messages]
        made: Json = json.loads(driver.ask("format", format="gemini.content", out=out)["json"])
        found: list[Json] = made["contents"]
        return found

    def parts(made: list[Json]) -> list[int]:
        return [len(content["parts"]) for content in made]

    assert parts(contents(messages)) == [1, 3, 3, 1]
    # A host's own list goes back as it came; what was put beside its results joins them.
    apart = [{"role": "user", "parts": [part]} for part in contents(messages)[2]["parts"]]
    request = json.dumps({"contents": apart})
    given = driver.ask("format", format="gemini.content", **{"in": request})["messages"]
    own = [read(t.Message, one) for one in given]
    assert contents(own) == apart
    assert parts(contents([*own[:2], messages[4]])) == [1, 2]
    assert parts(contents([messages[2], *own[1:]])) == [3]
    stopped = t.Message(role=t.ROLE_USER, parts=[*messages[2].parts, *user("stop").parts])
    [content] = contents([stopped, messages[3]])
    assert [next(iter(part)) for part in content["parts"]] == ["functionResponse"] * 2 + ["text"]


@pytest.mark.parametrize("language", [one for one in NAMED if one != "python-asyncio"])
def test_results_of_one_step_share_a_message_of_anthropic(
    language: str, everyone: dict[str, Driver]
) -> None:
    """As the API wants those of parallel calls: "all of them in the next user message"."""
    driver = everyone[language]
    calls = [tool_call(f"c{at}", "look", {"at": at}) for at in range(3)]
    results = [tool_result(f"c{at}", f"found {at}", name="look") for at in range(3)]
    messages = [user("go"), assistant(tool_calls=calls), *results, user("and now?")]

    def sent(messages: list[t.Message]) -> list[Json]:
        out = [written(message) for message in messages]
        made: Json = json.loads(driver.ask("format", format="anthropic.messages", out=out)["json"])
        found: list[Json] = made["messages"]
        return found

    def blocks(messages: list[t.Message]) -> list[int]:
        return [len(message["content"]) for message in sent(messages)]

    assert blocks(messages) == [1, 3, 3, 1]
    assert sent(messages)[2]["role"] == "user"
    # A host's own list goes back as it came; what was put beside its results joins them.
    apart = [{"role": "user", "content": [block]} for block in sent(messages)[2]["content"]]
    request = json.dumps({"messages": apart})
    given = driver.ask("format", format="anthropic.messages", **{"in": request})["messages"]
    own = [read(t.Message, one) for one in given]
    assert sent(own) == apart
    assert blocks([*own[:2], results[2]]) == [1, 2]
    assert blocks([results[0], *own[1:]]) == [3]
    # Results stand before all else: the API refuses a text between them.
    stopped = t.Message(role=t.ROLE_USER, parts=[*results[0].parts, *user("stop").parts])
    kinds = [block["type"] for block in sent([stopped, results[1]])[0]["content"]]
    assert kinds == ["tool_result", "tool_result", "text"]
    # What the provider's own tool found stands in the model's message, which stays the model's.
    found = assistant("so it is", tool_calls=[tool_call("s1", "search", {})])
    found.parts.add().tool_result.call_id = "s1"
    for beside in ([results[0], found], [found, results[0]]):
        roles = ["user" if one is results[0] else "assistant" for one in beside]
        assert [one["role"] for one in sent(beside)] == roles
    system = t.Message(role=t.ROLE_SYSTEM, parts=results[0].parts)
    assert blocks([system, results[0]]) == [1]


@pytest.mark.parametrize("language", [one for one in NAMED if one != "python-asyncio"])
def test_instructions_amid_a_conversation_stand_where_the_api_takes_them(
    language: str, everyone: dict[str, Driver]
) -> None:
    """Behind the user's, and before the model's or last; elsewhere they are the user's."""
    driver = everyone[language]
    said = [
        {"role": "user", "content": "go"},
        {"role": "system", "content": "be quick"},
        {"role": "assistant", "content": [{"type": "text", "text": "gone"}]},
        {"role": "user", "content": "and now?"},
        {"role": "system", "content": "be slow"},
    ]
    request = json.dumps({"messages": said})
    given = driver.ask("format", format="anthropic.messages", **{"in": request})["messages"]

    def roles(kept: list[int]) -> list[str]:
        out = [given[at] for at in kept]
        made: Json = json.loads(driver.ask("format", format="anthropic.messages", out=out)["json"])
        return [message["role"] for message in made["messages"]]

    assert roles([0, 1, 2, 3, 4]) == ["user", "system", "assistant", "user", "system"]
    assert roles([1, 2, 3]) == ["user", "assistant", "user"]
    assert roles([2, 4]) == ["assistant", "user"]
    assert roles([0, 1, 3]) == ["user", "user", "user"]
    assert roles([0, 1, 4]) == ["user", "user", "system"]


@pytest.mark.parametrize("language", [one for one in NAMED if one != "python-asyncio"])
@pytest.mark.parametrize("name", ["anthropic.messages", "gemini.content"])
def test_a_reply_that_came_in_pieces_is_written_whole(
    name: str, language: str, everyone: dict[str, Driver]
) -> None:
    """Its original is a list: of messages, as Claude Code writes them, or of contents."""
    if name == "gemini.content" and language not in ("python", "typescript"):
        pytest.skip(f"{language} has not this format")
    message = assistant("one two")
    message.native.format = name
    message.native.json = b'[{"role": "assistant", "content": []}, {"role": "model", "parts": []}]'
    made = json.loads(everyone[language].ask("format", format=name, out=[written(message)])["json"])
    [said] = made["messages" if "messages" in made else "contents"]
    assert (said.get("content") or said["parts"])[0]["text"] == "one two"
