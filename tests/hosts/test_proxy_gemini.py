"""Gemini's API at the proxy: what differs from the others. What they have in common is in
test_proxy.py."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx2
import pytest
from google.genai import types as google
from hypothesis import given
from hypothesis import strategies as st

from contextengine import name_by_content as name
from contextengine.formats import FormatError
from contextengine.types import Message
from contextengine_proxy.calls import name_calls
from contextengine_proxy.dialects import dialect_of
from contextengine_proxy.dialects.gemini import DIALECT, Gemini
from contextengine_proxy.headers import credentials
from tests.hosts.providers import SIGNATURE, Answer, Json
from tests.hosts.sdk_hosts import GeminiAgent
from tests.hosts.stage import proxied, staged
from tests.integration.harness import PATIENCE_S, ref

PATH = "/v1beta/models/mock-1"


def user(*parts: Json) -> Json:
    return {"role": "user", "parts": list(parts)}


def model(*parts: Json) -> Json:
    return {"role": "model", "parts": list(parts)}


def call(tool: str, **given: object) -> Json:
    return {"functionCall": {"name": tool, "args": given}}


def result(tool: str, said: str) -> Json:
    return {"functionResponse": {"name": tool, "response": {"output": said}}}


def read(*contents: Json) -> list[Message]:
    return DIALECT.read([json.dumps(one) for one in contents])


def ids(messages: list[Message]) -> list[str]:
    """What the service knows the calls by, and what answers them."""
    name(messages)
    name_calls(messages, [], [])
    return [
        part.tool_call.call_id or part.tool_result.call_id
        for message in messages
        for part in message.parts
        if part.HasField("tool_call") or part.HasField("tool_result")
    ]


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/v1beta/models/gemini-3-pro:generateContent", "gemini-3-pro"),
        ("/v1/models/gemini-3-pro:streamGenerateContent", "gemini-3-pro"),
        ("/v1beta1/projects/p/locations/l/publishers/google/models/g:generateContent/", "g"),
        ("/v1beta/models/gemini-3-pro:countTokens", None),
        ("/v1beta/models/gemini-3-pro:generateContents", None),
        ("/v1beta/models", None),
    ],
)
def test_the_path_names_the_model(path: str, named: str | None) -> None:
    dialect = dialect_of(path)
    if named is None:
        assert dialect is None
    else:
        assert isinstance(dialect, Gemini)
        assert dialect.model({"model": "another"}) == named


TALK = [
    user({"text": "Look."}),
    model(call("f", of="a"), call("f", of="a"), call("g")),
    user(result("f", "one"), result("f", "two"), result("g", "three")),
    model({"text": "So."}),
    user({"text": "And again."}),
    model(call("f", of="a")),
    user(result("f", "four")),
]


def test_each_result_answers_a_call_of_its_tool() -> None:
    called = ids(read(*TALK))
    assert called[:3] == called[3:6]
    assert called[6] == called[7]
    assert len(set(called[:3])) == 3


PIECES = st.lists(
    st.one_of(
        st.builds(lambda text: {"text": text}, st.text("ab ", max_size=3)),
        st.builds(lambda text: {"text": text, "thought": True}, st.text("xy", max_size=3)),
        st.just({"text": "", "thoughtSignature": SIGNATURE}),
        st.just(call("f", of="a")),
    ),
    min_size=1,
    max_size=9,
)


@given(PIECES)
def test_a_reply_in_pieces_is_one_message_however_it_is_kept(parts: list[Json]) -> None:
    """By clients that join its texts, by those that keep its pieces, and as it is recorded."""
    events = [{"candidates": [{"content": model(part)}]} for part in parts]
    last = {"candidates": [{"content": model({"text": ""}), "finishReason": "STOP"}]}
    reply = Gemini().whole([*events, last])
    assert reply is not None
    asked = user({"text": "Go."})
    kept = read(asked, *(model(part) for part in parts))
    joined = read(asked, model(*parts))
    if any(part.get("text", "x").strip() and not part.get("thought") for part in parts):
        assert len(kept) == 2
        assert name([kept[0], *reply.messages]) == name(kept) == name(joined)
        assert ids(kept) == ids([kept[0], *reply.messages]) == ids(joined)
        pieces = json.loads(kept[1].native.json)
        assert pieces == ([model(part) for part in parts] if len(parts) > 1 else model(*parts))


@pytest.mark.parametrize(
    "parts",
    [None, "x", ["x"], [3], [{"text": 3}], [{"text": "a"}, {"text": ["b"]}], [{"functionCall": 3}]],
)
@pytest.mark.parametrize("several", [1, 2])
def test_what_is_no_content_is_said_to_be_none(parts: Any, several: int) -> None:
    contents = [{"role": "model", "parts": parts}] * several
    if parts is None:
        assert [len(one.parts) for one in read(*contents)] == [0]
        return
    with pytest.raises(FormatError, match="parts"):
        read(*contents)


def test_a_part_without_words_is_none() -> None:
    (message,) = read(model({"text": "a"}, {"text": None}, {"text": "b"}))
    assert [part.text.text for part in message.parts] == ["ab"]


async def test_a_client_that_makes_up_ids_has_its_results_shown(tmp_path: Path) -> None:
    """As gemini-cli does, for calls that come without one."""

    def answer(number: int, given: Json) -> Answer:
        words = any("text" in part for part in given["contents"][-1]["parts"])
        return Answer(calls=[{"of": "a"}, {"of": "b"}]) if words else Answer("well " * 300)

    talk: list[Json] = []
    async with staged(tmp_path, answer) as stage, httpx2.AsyncClient() as client:

        async def step(*parts: Json) -> list[Json]:
            talk.append(user(*parts))
            body = {"contents": talk}
            address = f"{stage.base}{PATH}:generateContent"
            reply = (await client.post(address, json=body, timeout=PATIENCE_S)).json()
            said: list[Json] = reply["candidates"][0]["content"]["parts"]
            calls = [part["functionCall"] for part in said if "functionCall" in part]
            for at, one in enumerate(calls):
                one["id"] = f"{one['name']}_{len(talk)}_{at}"
            talk.append(model(*said))
            return calls

        for turn in range(12):
            calls = await step({"text": f"Go on {turn}."})
            await stage.each_stored([read(*talk)])
            # The last ones are shown in part.
            found = {"output": "much " * (100 if turn < 11 else 4_000)}
            await step(*({"functionResponse": {"response": found, **_same(one)}} for one in calls))
            sent = stage.upstream.seen[-1].json["contents"]
            assert sent[-2] == talk[-3]
            assert (sent[-1] == talk[-2]) == (turn < 11)
            shown = [part["functionResponse"] for part in sent[-1]["parts"]]
            assert [_same(one) for one in shown] == [_same(one) for one in calls]
            assert "No result was recorded" not in json.dumps(sent)
        assert len(sent) < len(talk)


def _same(call: Json) -> Json:
    return {key: call[key] for key in ("id", "name")}


@pytest.mark.parametrize("answered", [0, 1, 2])
async def test_results_that_nobody_gave_stand_beside_those_that_came(
    answered: int, tmp_path: Path
) -> None:
    """A user breaks off while tools run in parallel, and says something else."""
    talk = [
        user({"text": "Look."}),
        model(call("f", of="a"), call("f", of="b"), call("g")),
        user(*[result("f", "one"), result("f", "two")][:answered]),
        user({"text": "Stop. Say something."}),
    ]
    if not answered:
        del talk[2]

    def answer(number: int, given: Json) -> Answer:
        return Answer("So.")

    async with staged(tmp_path, answer) as stage, httpx2.AsyncClient() as client:
        address = f"{stage.base}{PATH}:generateContent"
        reply = await client.post(address, json={"contents": talk}, timeout=PATIENCE_S)
        assert reply.status_code == 200
        sent = stage.upstream.seen[-1].json
        lawful(sent)
        told = [part["functionResponse"]["response"] for part in sent["contents"][2]["parts"]]
        assert told[:answered] == [{"output": "one"}, {"output": "two"}][:answered]
        assert all("No result was recorded" in str(one) for one in told[answered:])
        assert sent["contents"][3] == talk[-1]


def test_of_several_candidates_none_is_recorded() -> None:
    told = {"content": model({"text": "a"}), "finishReason": "STOP"}
    assert Gemini().whole({"candidates": [told, {**told, "index": 1}]}) is None


def test_a_key_may_stand_in_the_address() -> None:
    in_header = credentials([(b"x-goog-api-key", b"secret")])
    assert credentials([], b"alt=sse&key=secret") == in_header != credentials([], b"alt=sse")


def lawful(body: Json) -> None:
    """What Google refuses: a list that begins with the model, calls without as many results in the
    content behind them. Contents of the model that follow each other are one turn."""
    contents: list[Json] = []
    for role, pieces in groupby(body["contents"], lambda one: one["role"]):
        if role == "user":
            contents += pieces
            continue
        contents.append({"role": role, "parts": [part for one in pieces for part in one["parts"]]})
    assert contents[0]["role"] == "user"
    for at, one in enumerate(contents):
        calls = [part["functionCall"]["name"] for part in one["parts"] if "functionCall" in part]
        before = contents[at - 1]["parts"] if at else []
        asked = [part["functionCall"]["name"] for part in before if "functionCall" in part]
        told = [p["functionResponse"]["name"] for p in one["parts"] if "functionResponse" in p]
        assert told == asked
        assert not (calls and at + 1 == len(contents))
        assert all(part.get("thoughtSignature", SIGNATURE) == SIGNATURE for part in one["parts"])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_calls_and_their_results_stay_together_over_a_restart(
    stream: bool, tmp_path: Path
) -> None:
    """Calls have no ids here, and several are alike."""

    def answer(number: int, given: Json) -> Answer:
        if "functionResponse" in json.dumps(given["contents"][-1]):
            return Answer(f"Answer {number}: {'well ' * 60}")
        return Answer(calls=[{"of": "it"}] * 3, thought="Hm.")

    async with staged(tmp_path, answer, window=4_000) as stage:
        agent = GeminiAgent(stage.base, stream=stream, session="talk")
        for turn in range(6):
            await agent.say(f"Question {turn}? {'please ' * 60}")
        await stage.settled("talk", name(agent.read()))
        async with proxied(stage.home, stage.there, 4_000) as (_, base):
            again = GeminiAgent(base, stream=stream, session="talk")
            again.messages = agent.messages
            for turn in range(6, 9):
                await again.say(f"Question {turn}? {'please ' * 60}")
            await stage.settled("talk", name(again.read()))
            await again.close()
        await agent.close()
        for one in stage.upstream.seen:
            lawful(one.json)
        last = stage.upstream.seen[-1].json
        assert len(last["contents"]) < len(agent.messages) - 4
        assert last["generationConfig"] == {"maxOutputTokens": 500}
        first, *rest = last["systemInstruction"]["parts"]
        assert first == {"text": "You are a careful assistant."}
        assert rest, "the service says that it left something out"
        status = await stage.home.client.get_status(ref("talk", agent="proxy"))
        assert (status.model, status.last_total_tokens) == ("mock-1", 105)


class ObjectAgent(GeminiAgent):
    """Its tool answers an object of its own, and a long one."""

    def answer(self, call: tuple[str, Any], result: str) -> None:
        rows = {"rows": [f"row {at}: {result[:60]}" for at in range(400)]}
        answered = google.FunctionResponse(name=call[0], response=rows)
        self.results.append(google.Part(function_response=answered))


async def test_an_object_too_long_for_the_window_is_shown_in_part(tmp_path: Path) -> None:
    def answer(number: int, given: Json) -> Answer:
        if "functionResponse" in json.dumps(given["contents"][-1]):
            return Answer(f"Answer {number}.")
        return Answer(calls=[{"of": "it"}])

    async with staged(tmp_path, answer, window=6_000) as stage:
        agent = ObjectAgent(stage.base, stream=False, session="talk")
        for turn in range(3):
            await agent.say(f"Question {turn}?")
        await stage.settled("talk", name(agent.read()))
        await agent.close()
        last = stage.upstream.seen[-1].json
        lawful(last)
        [part] = last["contents"][-1]["parts"]
        shown = part["functionResponse"]["response"]["output"]
        assert len(shown) < 20_000
        assert "left out" in shown


@pytest.mark.parametrize("method", ["generateContent", "streamGenerateContent?alt=sse"])
async def test_what_fits_goes_through_byte_for_byte_both_ways(method: str, tmp_path: Path) -> None:
    body = (
        b'{ "contents" :[ {"role":"user", "parts": [{"text" : "Hi \\ud83d \\u00e9"}]}, '
        b'{"role":"model","parts":[{"text":"Yes?"}]},{"parts":[{"text":"Go on.  "}] } ],'
        b'"x-unknown": [1.0, 1e3], "generationConfig":{"maxOutputTokens":9} }\n'
    )

    def answer(number: int, given: Json) -> Answer:
        return Answer("Yes. " * 9, thought="Hm.")

    async with staged(tmp_path, answer) as stage, httpx2.AsyncClient() as client:
        named = {"X-ContextEngine-Session": "talk"}
        reply = await client.post(f"{stage.base}{PATH}:{method}", content=body, headers=named)
        assert stage.upstream.seen[0].body == body
        assert reply.content == stage.upstream.seen[0].sent
        said = read(*json.loads(body)["contents"], model({"text": ("Yes. " * 9)}))
        await stage.settled("talk", name(said))


async def test_what_is_not_spoken_goes_through(tmp_path: Path) -> None:
    def answer(number: int, given: Json) -> Any:
        return Answer("Yes.")

    kept = {"contents": [user({"text": "Hi"})], "cachedContent": "cachedContents/1"}
    async with staged(tmp_path, answer) as stage, httpx2.AsyncClient() as client:
        await client.post(f"{stage.base}{PATH}:generateContent", json=kept)
        assert stage.upstream.seen[0].json == kept
        assert await stage.sessions() == []
    async with staged(tmp_path, answer, max_bytes=10) as stage, httpx2.AsyncClient() as client:
        ours = await client.post(f"{stage.base}{PATH}:generateContent", json=kept)
        error = ours.json()["error"]
        assert (ours.status_code, error["code"], error["status"]) == (413, 413, "INVALID_ARGUMENT")
        assert "--max-body" in error["message"]
