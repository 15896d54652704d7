"""An operator chooses for sessions by pattern. See docs/semantics.md#choosing-an-engine."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contextengine import ContextEngineError, user
from contextengine import types as t
from tests.integration.harness import House, problem, ref


async def assign(
    house: House, engine: str = "", scope: t.SessionRef | None = None, **match: Any
) -> t.AssignResponse:
    clear = match.pop("clear", False)
    options = match.pop("options", None)
    reply: t.AssignResponse = await house.engine_stub.Assign(
        t.AssignRequest(
            scope=scope,
            engine_id=engine,
            options_json=json.dumps(options).encode() if options else b"",
            match=t.SessionMatch(**match) if match else None,
            clear=clear,
        )
    )
    return reply


async def serving(house: House, session: t.SessionRef) -> tuple[str, str]:
    status = await house.client.get_status(session)
    return status.engine.id, status.engine_source


async def test_a_keys_choice_holds_through_its_rotations(house: House) -> None:
    key = "agent:main:cron:1"
    await house.client.ingest(ref("first", key=key), user("one"))
    options = {"contextThreshold": 0.3}
    by_key = t.SessionRef(agent_id="agent", session_key=key)
    assigned = await assign(house, scope=by_key, options=options)
    assert assigned.engine.compaction_threshold == pytest.approx(0.3)
    assert (await house.client.get_status(ref("first"))).engine.compaction_threshold == (
        pytest.approx(0.3)
    )
    rotated = await house.client.bootstrap(ref("second", key=key))
    assert rotated.rotated
    assert rotated.engine.compaction_threshold == pytest.approx(0.3)
    house.forget()
    for session in ("first", "second"):
        status = await house.client.get_status(ref(session))
        assert status.engine.compaction_threshold == pytest.approx(0.3)
    await house.client.ingest(ref("other", key=f"{key}0"), user("one"))
    assert (await house.client.get_status(ref("other"))).engine.compaction_threshold == (
        pytest.approx(1)
    )
    await assign(house, scope=by_key, clear=True)
    assert (await house.client.bootstrap(ref("third", key=key))).engine.compaction_threshold == (
        pytest.approx(1)
    )


async def test_sessions_are_meant_by_globs(house: House) -> None:
    said = await assign(house, "legacy", session_key="agent:*:cron:**")
    assert (said.engine.id, said.source) == ("legacy", "pattern")
    for session, key in (("s1", "agent:a:cron:x:y"), ("s2", "agent:a:chat:x"), ("s3", "")):
        await house.client.ingest(ref(session, key=key), user("one"))
    assert await serving(house, ref("s1")) == ("legacy", "pattern")
    assert await serving(house, ref("s2")) == ("dag", "configuration")
    assert await serving(house, ref("s3")) == ("dag", "configuration")
    await assign(house, "dag", scope=ref("s1"))
    assert await serving(house, ref("s1")) == ("dag", "session")


async def test_a_model_and_its_window_choose(house: House) -> None:
    await assign(house, "legacy", model="small-*", max_window=16_000)
    for session, model, window in (("s1", "small-1", 8_000), ("s2", "small-1", 32_000)):
        first = await house.client.bootstrap(ref(session), model=model, window=window)
        assert first.created
    assert await serving(house, ref("s1")) == ("legacy", "pattern")
    assert await serving(house, ref("s2")) == ("dag", "configuration")
    await house.client.update_model(ref("s2"), model="small-1", window=16_000)
    assert await serving(house, ref("s2")) == ("legacy", "pattern")


async def test_the_policy_of_summaries_goes_by_pattern_as_well(house: House) -> None:
    options = {"summarizer": {"spend": {"max_tokens_per_tenant_per_hour": 7}}}
    await assign(house, agent_id="bot-*", options=options)
    for agent, cap in (("bot-1", 7), ("human", 500_000)):
        session = ref("s1", agent=agent)
        await house.client.ingest(session, user("one"))
        status = await house.client.get_status(session)
        assert status.summarizers.max_tokens_per_hour == cap


async def test_what_names_nobody_or_too_much_is_refused(house: House) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"match": t.SessionMatch()}, "match"),
        ({"match": t.SessionMatch(model="x"), "scope": ref()}, "scope"),
        ({"match": t.SessionMatch(min_window=-1)}, "match.min_window"),
        ({"match": t.SessionMatch(min_window=10, max_window=9)}, "match.max_window"),
        ({"scope": t.SessionRef(session_key="k")}, "scope.agent_id"),
        ({"match": t.SessionMatch(session_key="x" * 300)}, "match.session_key"),
    ]
    for fields, named in cases:
        with pytest.raises(ContextEngineError) as caught:
            await house.client.engines.assign(engine_id="legacy", **fields)
        code, _, fields_named = problem(caught.value)
        assert (code, fields_named[0]) == ("INVALID_ARGUMENT", named)
