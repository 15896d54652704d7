"""session_search, the pipeline's tool of recall: it finds and reads, in this conversation and in
others of the agent, and no mistake of a model fails a call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contextengine import types as t
from contextengine.messages import user
from tests.integration.assemble.asking import assign
from tests.integration.harness import House, budget, ref

from .asking import S, call, covered, work, write


async def piped(house: House, session: t.SessionRef = S) -> None:
    """Puts a session under the pipeline."""
    await assign(house, session, "pipeline")


async def use(house: House, session: t.SessionRef = S, **arguments: Any) -> dict[str, Any]:
    """What the tool answers."""
    answer, reply = await call(house, "session_search", arguments, session)
    assert not reply.is_error, answer
    assert reply.tokens > 0
    return answer


async def refusal(house: House, session: t.SessionRef = S, **arguments: Any) -> tuple[str, str]:
    """Code and argument of what a mistake is answered with."""
    answer, reply = await call(house, "session_search", arguments, session)
    assert reply.is_error, answer
    assert len(answer["error"]["message"]) > 10
    return answer["error"]["code"], answer["error"]["argument"]


async def test_it_is_the_one_tool_of_the_pipeline_beside_memory(house: House) -> None:
    await piped(house)
    await write(house, S, "word")
    tool, memory = (await house.client.list_tools(S)).tools
    assert memory.name == "memory_search"
    assert tool.name == "session_search"
    schema = json.loads(tool.input_schema_json)
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    info = (await house.client.bootstrap(S)).engine
    assert list(info.tools) == ["session_search"]
    for name in ("ctx_search", "ctx_expand", "ctx_inspect"):
        answer, refused = await call(house, name, {"query": "word"})
        assert refused.is_error
        assert answer["error"]["code"] == "unknown_tool"
    await assign(house, S, "dag")
    answer, refused = await call(house, "session_search", {"query": "word"})
    assert answer["error"]["code"] == "unknown_tool"


async def test_it_finds_and_then_reads_word_for_word(house: House) -> None:
    await piped(house)
    await write(house, S, *(message for number in range(1, 6) for message in work(number)))
    found = await use(house, query="revenue was 333", limit=1)
    (hit,) = found["hits"]
    assert (hit["kind"], hit["sequence"], hit["role"]) == ("message", 11, "tool")
    assert "session_id" not in hit
    read = await use(house, sequences=[hit["sequence"]])
    assert [item["sequence"] for item in read["items"]] == [11]
    assert "Part 3: revenue was 333 and costs were 21." in read["items"][0]["text"]


async def test_a_long_result_is_read_in_pages(house: House) -> None:
    await piped(house)
    text = " ".join(f"line {number} of the report" for number in range(3_000))
    await write(house, S, text, "next")
    pieces: list[str] = []
    page = ""
    while True:
        answer = await use(house, sequences=[1], max_tokens=4_000, page=page)
        assert answer["tokens"] <= 4_000
        pieces += [item["text"] for item in answer["items"]]
        page = answer.get("next_page", "")
        if not page:
            break
    assert len(pieces) > 3
    assert all(f"line {number} of" in "".join(pieces) for number in (0, 1_000, 2_999))


async def test_what_a_summary_stands_for_is_read(house: House) -> None:
    await piped(house)
    await write(house, S, *(message for number in range(1, 6) for message in work(number)))
    made = await covered(house, S, 1, 8, "two parts")
    read = await use(house, summary_id=made.id)
    kinds = [item["kind"] for item in read["items"]]
    assert [item["sequence"] for item in read["items"] if item["kind"] == "message"] == list(
        range(1, 9)
    )
    assert kinds.count("summary") <= 1


async def test_other_conversations_are_searched_and_read(house: House) -> None:
    await piped(house)
    await write(house, S, "the zebra is here")
    await write(house, ref("far"), "hello", "the zebra is far away")
    await write(house, ref("far", agent="other"), "the zebra of somebody else")
    alone = await use(house, query="zebra")
    assert [hit["sequence"] for hit in alone["hits"]] == [1]
    # The others are found once they are indexed.
    await house.client.recall.search(ref("far"), query="zebra", at_least_revision=1)
    found = await use(house, query="zebra", all_sessions=True)
    assert [(hit.get("session_id"), hit["sequence"]) for hit in found["hits"]] == [
        (None, 1),
        ("far", 2),
    ]
    read = await use(house, sequences=[2], session_id="far")
    assert "far away" in read["items"][0]["text"]
    there = await use(house, query="zebra", session_id="far")
    assert [hit["sequence"] for hit in there["hits"]] == [2]
    assert await refusal(house, sequences=[1], session_id="nowhere") == ("not_found", "session_id")


@pytest.mark.parametrize(
    ("arguments", "code", "argument"),
    [
        ({}, "missing_argument", "query"),
        ({"query": " "}, "missing_argument", "query"),
        ({"query": 7}, "invalid_value", "query"),
        ({"query": "x" * 5_000}, "invalid_value", "query"),
        ({"query": "(", "mode": "regex"}, "invalid_value", "query"),
        ({"query": "x", "mode": "loose"}, "invalid_value", "mode"),
        ({"query": "x", "role": "nobody"}, "invalid_value", "role"),
        ({"query": "x", "limit": "many"}, "invalid_value", "limit"),
        ({"query": "x", "page": "nobody's"}, "invalid_value", "page"),
        ({"query": "x", "all_sessions": "yes"}, "invalid_value", "all_sessions"),
        ({"query": "x", "sequences": [1]}, "contradictory_arguments", "query"),
        ({"query": "x", "max_tokens": 9}, "contradictory_arguments", "max_tokens"),
        ({"sequences": [1], "role": "user"}, "contradictory_arguments", "role"),
        ({"sequences": [1], "all_sessions": True}, "contradictory_arguments", "all_sessions"),
        (
            {"query": "x", "all_sessions": True, "first_sequence": 2},
            "contradictory_arguments",
            "first_sequence",
        ),
        ({"sequences": ["a"]}, "invalid_value", "sequences"),
        ({"query": "x", "wide": True}, "unknown_argument", "wide"),
        ({"sequences": [1], "session_id": 3}, "invalid_value", "session_id"),
    ],
)
async def test_a_mistake_is_answered_and_changes_nothing(
    house: House, arguments: dict[str, Any], code: str, argument: str
) -> None:
    await piped(house)
    revision = await write(house, S, "word")
    assert await refusal(house, **arguments) == (code, argument)
    assert (await house.client.get_status(S)).revision == revision


@pytest.mark.parametrize("raw", [b"[]", b"{", b'"x"'])
async def test_what_is_no_object_is_refused(house: House, raw: bytes) -> None:
    await piped(house)
    await write(house, S, "word")
    answer, reply = await call(house, "session_search", raw)
    assert (reply.is_error, answer["error"]["code"]) == (True, "invalid_arguments")


async def test_slips_are_understood(house: House) -> None:
    await piped(house)
    await write(house, S, "the zebra")
    assert len((await use(house, query="zebra", limit="99"))["hits"]) == 1
    assert (await use(house, sequences="1", maxTokens=1))["items"][0]["sequence"] == 1
    assert (await use(house, sequences=[1, 77]))["missing"] == 1


async def test_a_child_reads_no_other_conversation(house: House) -> None:
    await write(house, S, "the zebra of the parent")
    child = ref("child")
    prepared = await house.client.prepare_subagent_spawn(
        S, child, context_mode=t.CONTEXT_MODE_ISOLATED
    )
    await piped(house, child)
    await write(house, child, "the zebra of the child")
    found = await use(house, child, query="zebra")
    assert [hit["sequence"] for hit in found["hits"]] == [1]
    denied = "permission_denied"
    assert await refusal(house, child, query="zebra", all_sessions=True) == (denied, "all_sessions")
    for session in (S.session_id, "nowhere", "child"):
        answer = await refusal(house, child, sequences=[1], session_id=session)
        assert answer == (denied, "session_id")
    await house.client.end_subagent(child, spawn_token=prepared.spawn_token)
    assert await refusal(house, child, query="zebra", all_sessions=True) == (denied, "all_sessions")


async def test_what_is_left_out_names_the_tool_that_finds_it(house: House) -> None:
    await piped(house)
    await write(house, S, *[user(f"{number} " + "words upon words " * 200) for number in range(9)])
    reply = await house.client.assemble(S, budget=budget(2_500))
    assert "Find them with session_search." in reply.system_prompt_addition
    assert "ctx_" not in reply.system_prompt_addition


async def test_a_grant_opens_the_parent_and_nothing_else_of_the_agent(house: House) -> None:
    text = " ".join(f"stripe {number} of the zebra" for number in range(400))
    await write(house, S, "hello", text)
    await write(house, ref("other"), "another zebra")
    child = ref("child")
    prepared = await house.client.prepare_subagent_spawn(
        S,
        child,
        context_mode=t.CONTEXT_MODE_ISOLATED,
        grant=t.RecallGrant(max_tokens=1_500),
    )
    await piped(house, child)

    async def granted(**arguments: Any) -> tuple[dict[str, Any], t.CallToolResponse]:
        reply = await house.client.call_tool(
            child,
            name="session_search",
            arguments_json=json.dumps(arguments).encode(),
            spawn_token=prepared.spawn_token,
        )
        return json.loads(reply.result_json), reply

    await house.client.recall.search(S, query="zebra", at_least_revision=1)
    found, searched = await granted(query="zebra")
    assert [hit["sequence"] for hit in found["hits"]] == [2]
    for more in ({"all_sessions": True}, {"session_id": "other"}):
        refused, _ = await granted(query="zebra", **more)
        assert refused["error"]["code"] == "permission_denied"
    read, reply = await granted(sequences=[2])
    assert "stripe 0 of" in read["items"][0]["text"]
    assert read["next_page"]
    assert searched.tokens + reply.tokens <= 1_500
    spent, over = await granted(sequences=[2], page=read["next_page"])
    while not over.is_error:
        spent, over = await granted(sequences=[2])
    assert spent["error"]["code"] == "grant_spent"
