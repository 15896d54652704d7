"""A fork shows the parent's view as of its spawn, without copying, and goes on from there by
itself."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest
from msgspec.structs import replace

from contextengine import types as t
from contextengine.messages import assistant, tool_call, tool_result, user
from contextengine_server.context.scope import Scope
from contextengine_server.session.state import SessionState, ViewFacts
from tests.integration.assemble.asking import ask, judged, live, quiet, talk
from tests.integration.harness import budget, texts

from .family import DELETED, FORK, ISOLATED, Family, refused

pytestmark = pytest.mark.asyncio(loop_scope="module")
DUPLICATE = t.StoredMessage.DISPOSITION_DUPLICATE


async def test_nothing_is_copied(family: Family) -> None:
    prepared = await family.fork("one", "two")
    store = family.house.app.store
    own = await store.messages(Scope("default", "agent", family.child.session_id), retired=True)
    assert own == []
    tokens = (await family.house.client.get_status(family.parent)).message_tokens
    assert prepared.inherited_tokens == tokens > 0
    assert [row.stored_in_session_id for row in await family.house.rows(family.child)] == [
        family.parent.session_id
    ] * 2


async def test_what_a_provider_has_cached_of_the_parent_serves_its_fork(family: Family) -> None:
    await family.say(family.parent, *talk(5))
    before = await ask(family.house, family.parent)
    await family.prepare(context_mode=FORK)
    await family.say(family.child, "your part")
    forked = await ask(family.house, family.child)
    size = len(before.items)
    assert [item.content_hash for item in forked.items[:size]] == [
        item.content_hash for item in before.items
    ]


async def test_the_parent_goes_on_without_its_fork(family: Family) -> None:
    client = family.house.client
    await family.say(family.parent, "one", "two")
    revision = (await client.get_status(family.parent)).revision
    prepared = await family.prepare(context_mode=FORK)
    assert prepared.parent_revision == revision
    assert (await client.get_status(family.parent)).revision == revision, (
        "a spawn is no change of the parent"
    )
    before = (await client.assemble(family.child)).context_hash
    await family.say(family.parent, "three")
    await client.record_host_change(
        family.parent, rewind=t.RecordHostChangeRequest.Rewind(after_sequence=1)
    )
    assert await family.shown() == ["one", "two"]
    await client.reset_session(family.parent)
    assert await family.shown() == ["one", "two"]
    assert (await client.assemble(family.child)).context_hash == before
    assert await family.shown(family.parent) == []


async def test_the_view_is_the_spawns_and_not_the_introductions(family: Family) -> None:
    prepared = await family.fork("one")
    await family.say(family.parent, "two")
    reply = await family.house.client.bootstrap(
        family.child, spawn_token=prepared.spawn_token, history=[user("three")]
    )
    assert (reply.created, reply.last_sequence) == (False, 2)
    assert await family.shown() == ["one", "three"]
    assert await family.shown(family.parent) == ["one", "two"]


async def test_the_childs_messages_continue_the_parents_sequences(family: Family) -> None:
    await family.fork("one", "two")
    assert await family.say(family.child, "three") == 3
    assert await family.say(family.parent, "another three") == 3
    assert await family.shown() == ["one", "two", "three"]


async def test_the_frozen_ids_count_as_stored(family: Family) -> None:
    client = family.house.client
    messages = [user("one", id=family.key("m1")), user("two", id=family.key("m2"))]
    await family.fork(*messages)
    later = user("three", id=family.key("m3"))
    await client.ingest(family.parent, later)
    reply = await client.ingest_batch(family.child, [*messages, later])
    assert [(one.sequence, one.disposition == DUPLICATE) for one in reply.stored] == [
        (1, True),
        (2, True),
        (3, False),
    ]
    edited = user("edited", id=family.key("m1"))
    assert await refused(client.ingest(family.child, edited)) == (
        "ALREADY_EXISTS",
        "MESSAGE_CONFLICT",
        ["message[0].id"],
    )


async def test_a_hosts_copy_of_the_transcript_is_recognised(family: Family) -> None:
    """The host copies the transcript and sends its whole list, without ids."""
    house = family.house
    said = [
        t.Message(role=one.role, parts=one.parts)
        for one in (user("one"), assistant("two"), user("three"))
    ]
    await house.stub.IngestBatch(t.IngestBatchRequest(session=family.parent, messages=said[:2]))
    await family.fork()
    reply = await ask(house, family.child, live=live(said, store_new=True))
    assert texts(reply.items) == ["one", "two", "three"]
    assert [row.sequence for row in await house.rows(family.child)] == [1, 2, 3]
    done = await house.stub.AfterTurn(
        t.AfterTurnRequest(session=family.child, messages=said[2:], advancement_key="k")
    )
    assert len(done.stored) == 1


async def test_a_fork_may_begin_before_the_newest_message(family: Family) -> None:
    client = family.house.client
    await family.say(family.parent, *talk(3))
    rows = await family.house.rows(family.parent)
    for after in range(len(rows) + 1):
        child = family.session(f"child{after}")
        prepared = await family.prepare(child, context_mode=FORK, fork_after_sequence=after)
        assert [row.sequence for row in await family.house.rows(child)] == list(range(1, after + 1))
        status = await client.get_status(child)
        assert status.message_tokens == prepared.inherited_tokens == status.view_tokens
        assert (status.message_count, status.last_sequence) == (after, after)
        assert await family.say(child, "on") == after + 1
        reply = await ask(family.house, child)
        assert await judged(family.house, reply, child) == []
        family.house.forget()
        assert (await ask(family.house, child)).context_hash == reply.context_hash
        assert (
            await client.get_status(child)
        ).message_tokens == status.message_tokens + reply.items[-1].tokens


async def test_what_is_noted_of_a_shorter_fork_is_what_a_session_of_these_messages_notes(
    family: Family,
) -> None:
    open_call = assistant(tool_calls=[tool_call("c9", "look")])
    said = [
        t.Message(role=t.ROLE_SYSTEM, parts=user("be brief").parts),
        *talk(3),
        open_call,
        user("never mind"),
    ]
    await family.say(family.parent, *said, tool_result("c9", "late"), "on")
    for after in range(len(said) + 1):
        child, twin = family.session(f"child{after}"), family.session(f"twin{after}")
        await family.prepare(child, context_mode=FORK, fork_after_sequence=after)
        await family.house.client.bootstrap(twin)
        if after:
            await family.say(twin, *said[:after])
        noted = [await _facts(family, session) for session in (child, twin)]
        assert noted[0] == noted[1]


async def _facts(family: Family, session: t.SessionRef) -> ViewFacts:
    head = await family.house.app.store.head(Scope("default", "agent", session.session_id))
    assert head is not None
    facts = SessionState.decode(head.state).view
    rows = await family.house.rows(session)
    assert facts.last_id == (rows[-1].message.id if rows else "")
    # Ids are made anew for each session: each names its own newest message.
    return replace(facts, reopened=0, last_id="")


async def test_a_fork_in_the_middle_of_a_step_stands_on_lawful_ground(family: Family) -> None:
    calls = assistant(tool_calls=[tool_call("c1", "look"), tool_call("c2", "look")])
    await family.fork(
        "go",
        calls,
        tool_result("c1", "first"),
        tool_result("c2", "second"),
        "on",
        fork_after_sequence=3,
    )
    await family.say(family.child, "go another way")
    reply = await ask(family.house, family.child)
    assert await judged(family.house, reply, family.child) == []
    assert "second" not in texts(reply.items)
    assert texts(reply.items)[-1] == "go another way"


async def test_a_compacted_parent_is_forked_as_it_is_shown(family: Family) -> None:
    client, house = family.house.client, family.house
    await quiet(house, family.parent)
    await family.say(family.parent, *talk(20, 60))
    assert (await client.compact(family.parent, force=True, budget=budget(2_000))).summaries
    before = await ask(house, family.parent, budget=budget(4_000))
    prepared = await family.prepare(context_mode=FORK)
    assert prepared.inherited_tokens == (await client.get_status(family.parent)).view_tokens
    forked = await ask(house, family.child, budget=budget(4_000))
    assert texts(forked.items) == texts(before.items)
    assert await judged(house, forked, family.child) == []
    await client.compact(family.parent, undo_to_generation=0)
    assert texts((await ask(house, family.child, budget=budget(4_000))).items) == texts(
        before.items
    )
    (summary, *_) = [item.origin.summary_id for item in forked.items if item.origin.summary_id]
    opened = await client.recall.expand(family.child, summary_ids=[summary])
    assert opened.items, "what was summarized is brought back through the fork"


async def test_the_childs_summaries_over_the_parents_rows_are_its_own(family: Family) -> None:
    client, house = family.house.client, family.house
    await quiet(house, family.parent)
    await family.say(family.parent, *talk(20, 60))
    before = await ask(house, family.parent)
    await family.prepare(context_mode=FORK)
    await quiet(house, family.child)
    await family.say(family.child, "on")
    done = await client.compact(family.child, force=True, budget=budget(2_000))
    assert done.summaries
    assert (await client.get_status(family.parent)).summary_count == 0
    assert (await ask(house, family.parent)).context_hash == before.context_hash
    reply = await ask(house, family.child, budget=budget(4_000))
    assert [item for item in reply.items if item.origin.summary_id]
    assert await judged(house, reply, family.child) == []
    house.forget()
    assert (await ask(house, family.child, budget=budget(4_000))).context_hash == reply.context_hash


async def test_a_fork_recalls_its_parent_as_its_own(family: Family) -> None:
    prepared = await family.fork("about zebras", "two")
    await family.say(family.parent, "more zebras")
    await family.say(family.child, "zebras again")
    for token in ("", prepared.spawn_token):
        found = await family.house.client.recall.search(
            family.child, "zebras", at_least_revision=1, spawn_token=token
        )
        assert sorted((hit.origin.sequence, hit.session_id) for hit in found.hits) == [
            (1, family.parent.session_id),
            (3, ""),
        ]


async def test_forks_of_forks_see_what_their_ancestors_had_then(family: Family) -> None:
    grandchild = family.session("grandchild")
    await family.fork("one")
    await family.say(family.child, "two")
    deeper = await family.prepare(grandchild, family.child, context_mode=FORK)
    assert deeper.depth == 2
    await family.say(grandchild, "three")
    await family.say(family.child, "of the child")
    await family.say(family.parent, "of the parent")
    assert await family.shown(grandchild) == ["one", "two", "three"]
    cut = family.session("cut")
    await family.prepare(cut, grandchild, context_mode=FORK, fork_after_sequence=1)
    assert await family.shown(cut) == ["one"]


async def test_the_child_takes_over_the_parents_model(family: Family) -> None:
    client = family.house.client
    await client.update_model(
        family.parent, model="claude-sonnet-4-5", provider="anthropic", window=90_000
    )
    await family.fork("one")
    status = await client.get_status(family.child)
    assert (status.model, status.provider, status.window) == (
        "claude-sonnet-4-5",
        "anthropic",
        90_000,
    )
    isolated = family.session("isolated")
    await family.prepare(isolated)
    assert (await client.get_status(isolated)).model == ""


async def test_a_parent_with_forks_is_deleted_with_them_or_not_at_all(family: Family) -> None:
    sessions = family.house.client.sessions
    fork = await family.fork("one")
    own = family.session("own")
    isolated = await family.prepare(own, grant=t.RecallGrant())
    dependents: Any = ("FAILED_PRECONDITION", "HAS_DEPENDENTS", [])
    assert await refused(sessions.delete(family.parent)) == dependents
    await family.end()
    assert await refused(sessions.delete(family.parent)) == dependents, (
        "an ended fork's view stands on it still"
    )
    gone = await sessions.delete(family.parent, cascade=True)
    assert sorted(gone.session_ids) == sorted([family.parent.session_id, family.child.session_id])
    assert await family.sessions() == ["own"], "what does not stand on the parent stays"
    for token in (fork.spawn_token, isolated.spawn_token):
        said = await refused(family.house.client.bootstrap(own, spawn_token=token))
        assert said == ("NOT_FOUND", "ROW_NOT_FOUND", ["spawn_token"])
        assert not (await family.house.client.end_subagent(own, spawn_token=token)).ended


async def test_a_parent_whose_prepared_fork_was_taken_back_can_go(family: Family) -> None:
    prepared = await family.fork("one")
    assert await refused(family.house.client.sessions.delete(family.parent))
    await family.roll_back(prepared.spawn_token)
    assert (await family.house.client.sessions.delete(family.parent)).deleted


async def test_a_child_that_did_not_complete_and_said_nothing_is_gone(family: Family) -> None:
    await family.fork("one")
    assert await family.end(reason=DELETED)
    assert await family.sessions() == ["parent"]
    again = await family.prepare(context_mode=FORK)
    assert again.context_mode == FORK, "its name is free"
    assert await family.end()
    assert await family.sessions() == ["child", "parent"], "one that completed is kept"


async def test_a_child_names_its_parents_key(family: Family) -> None:
    client, key = family.house.client, family.key("parents")
    await family.say(family.session("parent", key=key), "one")
    await family.prepare(context_mode=FORK)
    parent = (await client.get_status(family.child)).spawn.parent
    assert parent == family.session("parent", key=key)
    await client.ingest(family.session("next", key=key), user("a rotation"))
    assert (await client.get_status(family.child)).spawn.parent == parent


async def test_a_rotation_is_taken_back_as_well(family: Family) -> None:
    client, key = family.house.client, family.key("key")
    by_key = t.SessionRef(agent_id="agent", session_key=key)
    await family.say(family.parent, "one")
    await client.ingest(family.session("before", key=key), user("under the key"))
    prepared = await family.prepare(family.session("child", key=key), context_mode=FORK)
    assert (await client.get_status(by_key)).session_id == family.child.session_id
    assert await family.roll_back(prepared.spawn_token)
    assert (await client.get_status(by_key)).session_id == family.session("before").session_id
    assert await family.shown(by_key) == ["under the key"]


async def test_a_rollback_restores_every_row_as_it_was(family: Family) -> None:
    """Whatever the store holds, tables and all, but for the record that the spawn is over."""
    await family.say(family.parent, "one", "two")
    before = _rows(family)
    prepared = await family.prepare(family.session("child", key=family.key("k")), context_mode=FORK)
    assert _rows(family) != before
    await family.house.client.bootstrap(family.child, spawn_token=prepared.spawn_token)
    assert await family.roll_back(prepared.spawn_token)
    assert _rows(family) == before


def _rows(family: Family) -> dict[str, list[Any]]:
    """What the store holds of a family, by table: others live in its house."""
    tables = (
        "sessions",
        "session_keys",
        "messages",
        "summaries",
        "requests",
        "debts",
        "assignments",
    )
    with closing(sqlite3.connect(family.house.database)) as db:
        return {
            table: [
                row
                for row in db.execute(f"SELECT * FROM {table}")
                if any(str(cell).startswith(family.name) for cell in row)
            ]
            for table in tables
        }


async def test_a_session_that_is_there_cannot_become_a_child(family: Family) -> None:
    await family.say(family.parent, "one")
    await family.say(family.child, "its own")
    for mode in (FORK, ISOLATED):
        said = await refused(family.prepare(context_mode=mode))
        assert said == ("ALREADY_EXISTS", "SESSION_EXISTS", ["child"])
    assert await family.shown() == ["its own"]


async def test_every_message_kind_passes_into_a_fork_unchanged(family: Family) -> None:
    await family.say(
        family.parent, "go", assistant(tool_calls=[tool_call("c1", "look")]), tool_result("c1", "x")
    )
    await family.prepare(context_mode=FORK)
    mine = await family.house.rows(family.parent)
    theirs = await family.house.rows(family.child)
    assert [row.message.SerializeToString() for row in mine] == [
        row.message.SerializeToString() for row in theirs
    ]
