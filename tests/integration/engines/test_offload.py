"""Long results under the pipeline, over a channel: shown in short from their arrival on, stored
whole, and read again (docs/pipeline.md#long-results)."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from contextengine import types as t
from contextengine.messages import assistant, tool_call, tool_result, user
from tests.integration.assemble.asking import assign, epoch, hashes, judged, live
from tests.integration.harness import House, budget, ref, texts
from tests.integration.harness import house as living
from tests.integration.projection.asking import TARGETS, project
from tests.integration.projection.asking import judged as judged_by_target

S = ref("s1")
FITS = t.AssembleResponse.OUTCOME_FITS
BEGINS = "[Tool result offloaded to disk: "
LONG = "\n".join(f"line {number}: {number * 7_919 % 10_007}" for number in range(3_000))
"""46,557 characters."""


def turn(number: int, said: str = LONG, tool: str = "bash") -> list[t.Message]:
    asked = tool_call(f"c{number}", tool, {"number": number})
    return [
        user(f"question {number}", id=f"u{number}"),
        assistant(tool_calls=[asked], id=f"a{number}"),
        tool_result(f"c{number}", said, id=f"r{number}"),
    ]


async def begun(house: House, *messages: t.Message) -> t.AssembleResponse:
    await assign(house, S, "pipeline")
    await house.client.ingest_batch(S, list(messages))
    return await house.client.assemble(S)


async def read_by_tool(house: House, session: t.SessionRef, shown: str) -> str:
    """All of what a reference stands for, by the call that it names."""
    found = re.search(r"\n.* by (\w+) (\{.*\})\n", shown)
    assert found is not None
    arguments, read = json.loads(found[2]), ""
    while True:
        reply = await house.client.call_tool(
            session, name=found[1], arguments_json=json.dumps(arguments).encode()
        )
        assert not reply.is_error
        answer = json.loads(reply.result_json)
        for item in answer["items"]:
            fence = re.search(r"<<<untrusted (\w+)\n(.*)\n\1 untrusted>>>", item["text"], re.DOTALL)
            assert fence is not None
            read += fence[2]
        if "next_page" not in answer:
            return read
        arguments["page"] = answer["next_page"]


async def test_a_long_result_is_short_stored_whole_and_read_again_in_pages(house: House) -> None:
    said = turn(1)
    reply = await begun(house, *said)
    shown = texts(reply.items)[2]
    assert shown.startswith(f"{BEGINS}bash returned {len(LONG)} chars. hasMore=true\n")
    assert (reply.items[2].form, reply.outcome) == (
        t.FORM_HEAD_TAIL,
        FITS,
    )
    assert reply.estimated_tokens < 1_500
    assert [row.message for row in await house.rows(S)] == said
    assert LONG in await read_by_tool(house, S, shown)
    page, pieces = "", 0
    while True:
        found = await house.client.recall.expand(
            S, sequences=[3], max_tokens=4_000, page_token=page
        )
        pieces += len(found.items)
        page = found.next_page_token
        if not page:
            break
    assert pieces > 1
    whole = await house.client.recall.expand(S, sequences=[3], max_tokens=50_000)
    assert [item.message for item in whole.items] == said[2:]


async def test_what_was_read_again_is_not_put_away_again(house: House) -> None:
    await begun(house, *turn(1, "some words of a report " * 3_000))
    back = await house.client.call_tool(
        S, name="session_search", arguments_json=b'{"sequences": [3], "max_tokens": 4000}'
    )
    answer = back.result_json.decode()
    assert len(answer) > 15_000
    reply = await house.client.assemble(S, ingest=turn(2, answer, "session_search"))
    assert texts(reply.items)[-1] == answer


async def test_an_empty_result_says_so_and_is_stored_empty(house: House) -> None:
    said = turn(1, "")
    reply = await begun(house, *said)
    assert texts(reply.items)[2] == '[Tool "bash" returned no output.]'
    assert [row.message for row in await house.rows(S)] == said


async def test_the_form_is_the_same_warm_and_cold_after_a_restart_and_an_import(
    house: House, tmp_path: Path
) -> None:
    before = await begun(house, *turn(1), *turn(2, ""), *turn(3, "short"))
    assert await judged(house, before, S) == []
    house.forget()
    cold = await house.client.assemble(S, known_epoch=epoch(before))
    await house.restart()
    again = await house.client.assemble(S, known_epoch=epoch(before))
    assert before.items == cold.items == again.items
    assert epoch(before) == epoch(cold) == epoch(again)
    rows = [row.message for row in await house.rows(S)]
    (tmp_path / "other").mkdir()
    async with living(tmp_path / "other", **{"engine.default": "pipeline"}) as other:
        await other.client.sessions.import_session(S, rows)
        imported = await other.client.assemble(S)
    assert [item.message for item in imported.items] == [item.message for item in before.items]


async def test_it_never_changes_while_the_session_goes_on(house: House) -> None:
    reply = await begun(house, *turn(1))
    epochs, lists = {epoch(reply)}, [hashes(reply)]
    for number in range(2, 10):
        reply = await house.client.assemble(
            S, ingest=turn(number), budget=budget(60_000), known_context_hash=b""
        )
        assert await judged(house, reply, S) == []
        epochs.add(epoch(reply))
        lists.append(hashes(reply))
    assert len(epochs) <= 2  # another budget than the first
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(lists))


async def test_a_fork_shows_the_same_and_reads_it_again(house: House) -> None:
    parent = await begun(house, *turn(1))
    child = ref("child")
    await assign(house, child, "pipeline")
    await house.client.prepare_subagent_spawn(S, child, context_mode=t.CONTEXT_MODE_FORK)
    reply = await house.client.assemble(child, ingest=[user("go on")])
    assert [item.message for item in reply.items][:3] == [item.message for item in parent.items]
    assert LONG in await read_by_tool(house, child, texts(reply.items)[2])


@pytest.mark.parametrize("target", sorted(TARGETS))
async def test_every_projection_shows_it_and_is_valid(house: House, target: str) -> None:
    await begun(house, *turn(1), assistant("so"), *turn(2, ""), assistant("done"), user("go on"))
    reply = await project(house, S, target)
    assert judged_by_target(reply, target) == []
    body = json.dumps(TARGETS[target].body(reply))
    assert body.count(BEGINS) == 1
    assert body.count("returned no output.]") == 1
    assert "line 1500:" not in body


async def test_explain_says_why(house: House) -> None:
    await begun(house, *turn(1))
    reply = await house.client.assemble(S, explain=True)
    decision = reply.decisions[2]
    assert decision.kind == t.Decision.KIND_BOUNDED
    assert "from their arrival on" in decision.rule


async def test_what_is_not_stored_is_with_the_caller(house: House) -> None:
    await begun(house, user("hello", id="u0"))
    reply = await house.client.assemble(S, live=live([user("hello", id="u0"), *turn(1)]))
    shown = texts(reply.items)[3]
    assert shown.startswith(BEGINS)
    assert "\nThe caller has all of it.\n" in shown


async def test_long_results_stand_in_a_budget_that_could_hold_none_of_them(house: House) -> None:
    """Each has some 20,000 tokens."""
    await begun(house, *turn(1))
    for number in range(2, 8):
        reply = await house.client.assemble(S, ingest=turn(number), budget=budget(14_000))
        assert reply.outcome == FITS
        assert sum(BEGINS in said for said in texts(reply.items)) == number
        assert await judged(house, reply, S) == []


async def test_another_engine_shows_all_of_it_and_back(house: House) -> None:
    short = await begun(house, *turn(1), assistant("done"))
    await assign(house, S, "legacy")
    assert texts((await house.client.assemble(S)).items)[2] == LONG
    await assign(house, S, "pipeline")
    assert (await house.client.assemble(S)).items == short.items
