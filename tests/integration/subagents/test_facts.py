"""The facts of the reference about subagents, each over a real channel as a host would live it."""

from __future__ import annotations

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.messages import assistant, tool_call, user
from tests.integration.assemble.asking import assign
from tests.integration.harness import ref, texts

from .family import COMPLETED, DELETED, FORK, ISOLATED, RELEASED, SWEPT, Family

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_fact_83_a_fork_spawn_is_a_fork_and_keeps_the_forked_transcript(
    family: Family,
) -> None:
    await family.say(family.parent, "one", "two")
    prepared = await family.prepare(
        context_mode=FORK,
        parent_transcript=t.TranscriptRef(id="p", file="sqlite:parent"),
        child_transcript=t.TranscriptRef(id="c", file="/nowhere/forked.jsonl"),
    )
    assert (prepared.context_mode, prepared.note) == (FORK, "")
    assert await family.shown() == ["one", "two"]
    spawn = (await family.house.client.get_status(family.child)).spawn
    assert (spawn.child_transcript.id, spawn.child_transcript.file) == (
        "c",
        "/nowhere/forked.jsonl",
    )
    assert (spawn.parent_transcript.id, spawn.parent_transcript.file) == ("p", "sqlite:parent")


async def test_fact_85_a_parent_too_large_to_fork_gives_an_isolated_child_and_a_note(
    family: Family,
) -> None:
    client = family.house.client
    await family.say(family.parent, *("word " * 30_000 for _ in range(4)))
    tokens = (await client.get_status(family.parent)).view_tokens
    prepared = await family.prepare(context_mode=FORK)
    assert tokens > 100_000
    assert prepared.context_mode == ISOLATED
    assert (
        prepared.note
        == f"Parent context is too large to fork ({tokens}/100000 tokens); starting with isolated"
        " context instead."
    )
    assert (prepared.inherited_tokens, await family.shown()) == (0, [])
    just = await family.prepare(family.session("part"), context_mode=FORK, fork_after_sequence=3)
    assert just.context_mode == FORK, "what the fork itself would begin with is what counts"


async def test_fact_87_a_dispatch_that_fails_is_rolled_back_once(family: Family) -> None:
    prepared = await family.fork("one")
    assert await family.roll_back(prepared.spawn_token)
    assert not await family.roll_back(prepared.spawn_token)
    assert await family.sessions() == ["parent"]
    assert await family.shown(family.parent) == ["one"]


async def test_fact_89_a_preparation_that_is_refused_leaves_no_child(family: Family) -> None:
    with pytest.raises(ContextEngineError, match="there is no session"):
        await family.prepare(context_mode=FORK)
    assert not await family.there()
    await family.say(family.parent, "one")
    with pytest.raises(ContextEngineError, match="must be the parent's agent in a fork"):
        await family.prepare(family.session("child", agent="other"), context_mode=FORK)
    assert await family.sessions() == ["parent"]


async def test_fact_91_an_engine_without_the_hook_is_no_hindrance(family: Family) -> None:
    await family.say(family.parent, "one")
    await assign(family.house, family.parent, "legacy")
    await assign(family.house, family.child, "legacy")
    prepared = await family.prepare(context_mode=FORK)
    await family.house.client.bootstrap(family.child, spawn_token=prepared.spawn_token)
    await family.say(family.child, "two")
    assert await family.shown() == ["one", "two"]
    assert await family.end(reason=COMPLETED)


@pytest.mark.parametrize(
    ("reason", "said"),
    [(COMPLETED, "completed"), (DELETED, "deleted"), (RELEASED, "released"), (SWEPT, "swept")],
)
async def test_fact_93_every_reason_of_an_end_is_understood(
    family: Family, reason, said: str
) -> None:
    prepared = await family.fork("one")
    await family.say(family.child, "two")
    assert await family.end(reason=reason)
    assert not await family.end(reason=reason), "at most once"
    status = await family.house.client.get_status(family.child)
    assert (status.spawn.ended, status.ended) == (said, True)
    assert not await family.roll_back(prepared.spawn_token), "what has ended is not taken back"
    assert await family.shown() == ["one", "two"], "what a child stored stays"


async def test_fact_93_an_end_that_is_not_explained_is_a_completion(family: Family) -> None:
    await family.fork("one")
    assert await family.end()
    assert (await family.house.client.get_status(family.child)).spawn.ended == "completed"


async def test_fact_95_a_key_that_a_newer_run_took_over_keeps_that_run_alive(
    family: Family,
) -> None:
    key, client = family.key("run"), family.house.client
    old, new = family.session("old", key=key), family.session("new", key=key)
    first = await family.fork("one", child=old)
    await family.say(family.session("old"), "of the old run")
    second = await family.prepare(new, context_mode=FORK)
    by_key = t.SessionRef(agent_id="agent", session_key=key)
    assert await family.end(by_key, spawn_token=first.spawn_token), "the token says which run"
    assert (await client.get_status(old)).spawn.ended == "completed"
    status = await client.get_status(new)
    assert (status.spawn.ended, status.ended) == ("", False)
    assert not await family.end(by_key, spawn_token=first.spawn_token)
    assert (await client.get_status(by_key)).session_id == new.session_id
    await client.bootstrap(new, spawn_token=second.spawn_token)
    assert await family.end(by_key)
    assert (await client.get_status(new)).spawn.ended == "completed"


async def test_an_end_for_a_child_that_nobody_knows_is_no_error(family: Family) -> None:
    assert not await family.end(reason=SWEPT)
    assert not await family.end(spawn_token="spawn-of-nobody")
    assert await family.sessions() == []


async def test_a_host_that_never_prepares_loses_nothing(family: Family) -> None:
    """Older hosts know the end alone: a child is a session that somebody writes to."""
    client = family.house.client
    await family.say(family.parent, "one")
    await client.bootstrap(family.child, history=[user("a task")])
    await family.say(family.child, "done")
    assert await family.shown() == ["a task", "done"]
    assert await family.end(reason=DELETED)
    assert not await family.end(reason=DELETED)
    assert await family.shown() == ["a task", "done"]
    status = await client.get_status(family.child)
    assert (status.ended, status.HasField("spawn")) == (True, False)
    await family.say(family.child, "again")
    assert not (await client.get_status(family.child)).ended
    assert (await client.sessions.delete(family.parent)).deleted


async def test_a_host_that_never_introduces_the_child_loses_nothing(family: Family) -> None:
    await family.fork("one")
    reply = await family.house.client.assemble(family.child, ingest=[user("two")])
    assert texts(reply.items) == ["one", "two"]


async def test_the_oldest_form_of_the_call_gives_an_isolated_child(family: Family) -> None:
    """Two keys and a time to live, as the first hosts had it."""
    client, key = family.house.client, family.key("kid")
    await client.ingest(ref("", key=family.key("main")), user("one"))
    reply = await family.house.stub.PrepareSubagentSpawn(
        t.PrepareSubagentSpawnRequest(
            parent=ref("", key=family.key("main")), child=ref("", key=key), ttl={"seconds": 60}
        )
    )
    assert reply.context_mode == ISOLATED
    assert (reply.expire_time.ToMilliseconds() - family.house.app.core.clock_ms()) <= 60_000
    assert await family.shown(ref("", key=key)) == []


async def test_the_call_that_spawns_is_pending_in_the_parent_and_abandoned_in_the_fork(
    family: Family,
) -> None:
    spawning = assistant("I will delegate.", tool_calls=[tool_call("c1", "sessions_spawn")])
    await family.fork("do it", spawning)
    assert await family.shown() == ["do it", "I will delegate.\ncall:sessions_spawn"]
    await family.say(family.child, "your part")
    shown = await family.shown()
    assert shown[:2] == ["do it", "I will delegate.\ncall:sessions_spawn"]
    assert shown[-1] == "your part"
    assert "result" in shown[2], "a result that says that there is none"
    assert await family.shown(family.parent) == ["do it", "I will delegate.\ncall:sessions_spawn"]


async def test_a_parent_that_rotated_meanwhile_still_takes_back_what_it_prepared(
    family: Family,
) -> None:
    client, key = family.house.client, family.key("main")
    by_key = t.SessionRef(agent_id="agent", session_key=key)
    await client.ingest(family.session("parent", key=key), user("one"))
    prepared = await family.prepare(parent=by_key, context_mode=FORK)
    await client.ingest(family.session("next", key=key), user("two"))
    assert await family.roll_back(prepared.spawn_token, by_key)
    assert await family.sessions() == ["next", "parent"]
