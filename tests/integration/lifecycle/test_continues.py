"""`continues`: another session's view, as of one moment, goes on in a session of its own."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.messages import assistant, tool_call, tool_result, user
from tests.integration.harness import House, problem, ref, texts

PARENT, CHILD, GRANDCHILD = ref("parent"), ref("child"), ref("grandchild")


async def say(house: House, session: t.SessionRef, *said: str) -> None:
    await house.client.ingest_batch(session, [user(text) for text in said])


async def shown(house: House, session: t.SessionRef) -> list[str]:
    """What Assemble shows, which must be the same after an eviction and what Export answers."""
    before = texts((await house.client.assemble(session)).items)
    house.forget()
    assert texts((await house.client.assemble(session)).items) == before
    return before


async def exported(house: House, session: t.SessionRef, **more) -> list[tuple[int, str, str]]:
    rows = await house.rows(session, **more)
    return [
        (row.sequence, text, row.stored_in_session_id)
        for row, text in zip(rows, texts(rows), strict=True)
    ]


async def born(house: House, *said: str) -> None:
    """A parent with these messages and a child that continues it."""
    await say(house, PARENT, *said)
    await house.client.bootstrap(CHILD, continues=PARENT)


async def test_the_view_goes_on_and_so_do_the_sequences(house: House) -> None:
    await born(house, "one", "two")
    stored = (await house.client.ingest(CHILD, user("three"))).stored
    assert stored.sequence == 3
    assert await shown(house, CHILD) == ["one", "two", "three"]
    assert await shown(house, PARENT) == ["one", "two"], "the parent is not written to"
    assert await exported(house, CHILD) == [
        (1, "one", "parent"),
        (2, "two", "parent"),
        (3, "three", ""),
    ]
    status = await house.client.get_status(CHILD)
    assert (status.message_count, status.last_sequence, status.continues.session_id) == (
        3,
        3,
        "parent",
    )


async def test_the_parents_ids_count_as_stored(house: House) -> None:
    message = user("one", id="m1")
    await house.client.ingest(PARENT, message)
    await house.client.bootstrap(CHILD, continues=PARENT)
    stored = (await house.client.ingest(CHILD, message)).stored
    assert (stored.disposition, stored.sequence) == (t.StoredMessage.DISPOSITION_DUPLICATE, 1)


async def test_what_happens_to_the_parent_later_does_not_change_the_child(house: House) -> None:
    await born(house, "one", "two")
    await say(house, CHILD, "three")
    before = (await house.client.assemble(CHILD)).context_hash
    await say(house, PARENT, "of the parent")
    assert await shown(house, CHILD) == ["one", "two", "three"]
    await house.client.record_host_change(
        PARENT, rewind=t.RecordHostChangeRequest.Rewind(after_sequence=1)
    )
    assert await shown(house, CHILD) == ["one", "two", "three"]
    await house.client.reset_session(PARENT)
    await say(house, PARENT, "anew")
    await house.restart()
    assert await shown(house, CHILD) == ["one", "two", "three"]
    assert (await house.client.assemble(CHILD)).context_hash == before
    assert await shown(house, PARENT) == ["anew"]


async def test_a_late_result_in_the_parent_does_not_reach_the_child(house: House) -> None:
    calls = [user("go"), assistant(tool_calls=[tool_call("c1", "look")]), user("never mind")]
    await house.client.ingest_batch(PARENT, calls)
    await house.client.bootstrap(CHILD, continues=PARENT)
    before = await shown(house, CHILD)
    await house.client.ingest(PARENT, tool_result("c1", "found"))
    assert await shown(house, CHILD) == before
    assert "found" in await shown(house, PARENT)
    assert "found" not in await shown(house, CHILD)


async def test_a_late_result_in_the_child_takes_the_place_of_the_inherited_calls(
    house: House,
) -> None:
    calls = [user("go"), assistant(tool_calls=[tool_call("c1", "look")]), user("never mind")]
    await house.client.ingest_batch(PARENT, calls)
    await house.client.bootstrap(CHILD, continues=PARENT)
    await house.client.ingest(CHILD, tool_result("c1", "found"))
    assert await shown(house, CHILD) == ["go", "call:look", "found", "never mind"]
    assert "found" not in await shown(house, PARENT)


async def test_continuing_goes_on_over_generations(house: House) -> None:
    await born(house, "one")
    await say(house, CHILD, "two")
    await house.client.bootstrap(GRANDCHILD, continues=CHILD)
    await say(house, GRANDCHILD, "three")
    await say(house, CHILD, "of the child")
    await say(house, PARENT, "of the parent")
    assert await shown(house, GRANDCHILD) == ["one", "two", "three"]
    assert await exported(house, GRANDCHILD) == [
        (1, "one", "parent"),
        (2, "two", "child"),
        (3, "three", ""),
    ]


async def test_a_reset_of_the_child_drops_what_it_inherited(house: House) -> None:
    await born(house, "one", "two")
    await say(house, CHILD, "three")
    revision = (await house.client.get_status(CHILD)).revision
    assert (await house.client.reset_session(CHILD)).retired_count == 3
    assert await shown(house, CHILD) == []
    stored = (await house.client.ingest(CHILD, user("four"))).stored
    assert stored.sequence == 4, "sequences are never used again"
    assert await shown(house, CHILD) == ["four"]
    assert [row[:2] for row in await exported(house, CHILD, as_of_revision=revision)] == [
        (1, "one"),
        (2, "two"),
        (3, "three"),
    ]
    assert await shown(house, PARENT) == ["one", "two"]


async def test_a_reset_child_goes_back_to_nothing(house: House) -> None:
    await born(house, "one", "two")
    await house.client.reset_session(CHILD)
    await say(house, CHILD, "three")
    await house.client.record_host_change(
        CHILD, rewind=t.RecordHostChangeRequest.Rewind(after_sequence=0)
    )
    assert await shown(house, CHILD) == []


async def test_a_session_that_was_reset_while_empty_can_continue_another(house: House) -> None:
    await say(house, PARENT, "one")
    await house.client.bootstrap(CHILD)
    await house.client.reset_session(CHILD)
    await house.client.bootstrap(CHILD, continues=PARENT)
    assert await shown(house, CHILD) == ["one"]


async def test_a_reset_of_the_parent_keeps_as_of_reads_of_the_child(house: House) -> None:
    await born(house, "one", "two")
    at_birth = (await house.client.get_status(CHILD)).revision
    await say(house, CHILD, "three")
    await house.client.reset_session(PARENT)
    assert [row[1] for row in await exported(house, CHILD, as_of_revision=at_birth)] == [
        "one",
        "two",
    ]


async def test_the_child_cannot_go_back_into_its_parent(house: House) -> None:
    await born(house, "one", "two")
    await say(house, CHILD, "three")
    with pytest.raises(ContextEngineError) as caught:
        await house.client.record_host_change(
            CHILD, rewind=t.RecordHostChangeRequest.Rewind(after_sequence=1)
        )
    assert problem(caught.value) == ("INVALID_ARGUMENT", "INVALID_FIELD", ["rewind.after_sequence"])
    await house.client.record_host_change(
        CHILD, rewind=t.RecordHostChangeRequest.Rewind(after_sequence=2)
    )
    assert await shown(house, CHILD) == ["one", "two"]


async def test_deleting_the_parent_is_refused_unless_cascade_is_asked_for(house: House) -> None:
    await born(house, "one")
    await say(house, CHILD, "two")
    await house.client.bootstrap(GRANDCHILD, continues=CHILD)
    with pytest.raises(ContextEngineError) as caught:
        await house.client.sessions.delete(PARENT)
    assert problem(caught.value)[:2] == ("FAILED_PRECONDITION", "HAS_DEPENDENTS")
    assert caught.value.metadata["sessions"] == "child"
    assert await shown(house, CHILD) == ["one", "two"]
    gone = await house.client.sessions.delete(PARENT, cascade=True)
    assert sorted(gone.session_ids) == ["child", "grandchild", "parent"]
    assert (await house.client.sessions.list()).sessions == []


async def test_a_parent_without_children_left_is_deleted(house: House) -> None:
    await born(house, "one")
    await house.client.sessions.delete(CHILD)
    assert (await house.client.sessions.delete(PARENT)).deleted


async def test_the_same_bootstrap_again_changes_nothing(house: House) -> None:
    await born(house, "one")
    await say(house, CHILD, "two")
    before = await house.client.get_status(CHILD)
    await say(house, PARENT, "later")
    again = await house.client.bootstrap(CHILD, continues=PARENT)
    assert (again.revision, again.created) == (before.revision, False)
    assert await shown(house, CHILD) == ["one", "two"]


async def test_only_an_empty_session_can_continue_another(house: House) -> None:
    await say(house, PARENT, "one")
    await say(house, CHILD, "two")
    with pytest.raises(ContextEngineError) as caught:
        await house.client.bootstrap(CHILD, continues=PARENT)
    assert problem(caught.value)[:2] == ("INVALID_ARGUMENT", "CONTRADICTORY_FIELDS")
    assert await shown(house, CHILD) == ["two"]


@pytest.mark.parametrize(
    ("continues", "expected"),
    [
        (ref("child"), ("INVALID_ARGUMENT", "INVALID_FIELD", ["continues"])),
        (ref("none"), ("NOT_FOUND", "SESSION_NOT_FOUND", [])),
        (
            ref("parent", agent="another"),
            ("INVALID_ARGUMENT", "INVALID_FIELD", ["continues.agent_id"]),
        ),
        (
            t.SessionRef(agent_id="agent"),
            ("INVALID_ARGUMENT", "INVALID_FIELD", ["continues.session_id"]),
        ),
    ],
)
async def test_what_cannot_be_continued_is_refused_and_creates_nothing(
    house: House, continues: t.SessionRef, expected: Sequence
) -> None:
    await say(house, PARENT, "one")
    with pytest.raises(ContextEngineError) as caught:
        await house.client.bootstrap(CHILD, continues=continues)
    assert problem(caught.value) == expected
    assert [s.session_id for s in (await house.client.sessions.list()).sessions] == ["parent"]


async def test_a_split_under_the_key_goes_on_where_the_old_session_stood(house: House) -> None:
    await house.client.ingest(ref("old", key="main"), user("one"))
    split = await house.client.bootstrap(ref("new", key="main"), continues=ref("", key="main"))
    assert (split.rotated, split.last_sequence) == (True, 1)
    await house.client.ingest(ref("", key="main"), user("two"))
    assert await shown(house, ref("", key="main")) == ["one", "two"]
    assert await shown(house, ref("old")) == ["one"]


async def test_the_child_takes_over_the_parents_model(house: House) -> None:
    await house.client.update_model(
        PARENT, model="claude-sonnet-4-5", provider="anthropic", window=90_000
    )
    await house.client.bootstrap(CHILD, continues=PARENT)
    status = await house.client.get_status(CHILD)
    assert (status.model, status.provider, status.window) == (
        "claude-sonnet-4-5",
        "anthropic",
        90_000,
    )


async def test_history_given_with_continues_follows_what_was_inherited(house: House) -> None:
    await say(house, PARENT, "one", "two")
    before = (await house.client.get_status(PARENT)).revision
    reply = await house.client.bootstrap(CHILD, continues=PARENT, history=[user("three")])
    assert [item.sequence for item in reply.stored] == [3]
    assert (reply.revision, reply.last_sequence) == (before + 1, 3)
    assert await shown(house, CHILD) == ["one", "two", "three"]
