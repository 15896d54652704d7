"""Without an agent there is no scope: Assemble answers from what the caller sent, reading and
storing nothing; nothing else runs."""

from __future__ import annotations

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.messages import assistant, tool_call, user
from tests.integration.harness import House, budget, problem, ref, texts

NOBODY = ref("s1", agent="")
DEGRADED = t.AssembleResponse.OUTCOME_DEGRADED


async def degraded(house: House, **more) -> t.AssembleResponse:
    reply = await house.client.assemble(NOBODY, **more)
    assert (reply.outcome, reply.outcome_reason) == (DEGRADED, "INCOMPLETE_SCOPE")
    assert (reply.revision, list(reply.stored)) == (0, [])
    return reply


async def test_what_the_caller_sent_is_assembled_under_the_laws(house: House) -> None:
    said = [user("go"), assistant(tool_calls=[tool_call("c1", "look")]), user("never mind")]
    for more in ({"ingest": said}, {"live": t.LiveList(messages=said, store_new=True)}):
        reply = await degraded(house, **more)
        assert texts(reply.items) == [
            "go",
            "call:look",
            "No result was recorded for this tool call.",
            "never mind",
        ]
    assert (await house.client.sessions.list()).sessions == []


async def test_nothing_is_read(house: House) -> None:
    await house.client.ingest(ref("s1", key="main"), user("a secret of the agent's"))
    for nobody in (NOBODY, ref("", agent="", key="main"), t.SessionRef()):
        reply = await house.client.assemble(nobody, ingest=[user("hello")])
        assert texts(reply.items) == ["hello"]
        assert reply.outcome == DEGRADED


async def test_the_budget_holds_all_the_same(house: House) -> None:
    said = [user(f"q{n} " + "word " * 100) if n % 2 == 0 else assistant("a") for n in range(41)]
    reply = await degraded(house, ingest=said, budget=budget(600))
    assert 0 < len(reply.items) < 41
    assert reply.estimated_tokens <= 600
    assert texts(reply.items)[-1].startswith("q40")


async def test_no_event_and_no_work_comes_of_it(house: House) -> None:
    said = [user("word " * 1_000) for _ in range(20)]
    await degraded(house, ingest=said, budget=budget(20_100))
    async with house.client.sessions.watch(resume_position="0") as events:
        await house.client.bootstrap(ref("mark"))
        names = []
        async for event in events:
            names.append(event.name)
            if event.session_id == "mark":
                break
    assert names == ["watch:gap", "session:created"]


async def test_everything_else_is_refused(house: House) -> None:
    client = house.client
    await client.ingest(ref(), user("hello"))
    change = t.RecordHostChangeRequest.Rewind(after_sequence=0)
    calls = [
        client.bootstrap(NOBODY),
        client.ingest(NOBODY, user("x")),
        client.ingest_batch(NOBODY, [user("x")]),
        client.after_turn(NOBODY, [user("x")]),
        client.compact(NOBODY),
        client.record_host_change(NOBODY, rewind=change),
        client.maintain(NOBODY),
        client.report_usage(NOBODY, usage=t.Usage(input_tokens=1)),
        client.update_model(NOBODY, model="gpt-5"),
        client.get_status(NOBODY),
        client.reset_session(NOBODY),
        client.end_session(NOBODY),
        client.dispose_session(NOBODY),
        client.sessions.get(NOBODY),
        client.sessions.delete(NOBODY),
        house.rows(NOBODY),
        client.engines.get(session=NOBODY),
        client.engines.doctor(session=NOBODY),
    ]
    for call in calls:
        with pytest.raises(ContextEngineError) as caught:
            await call
        assert problem(caught.value) == ("INVALID_ARGUMENT", "INVALID_FIELD", ["session.agent_id"])
    assert texts(await house.rows(ref())) == ["hello"]
