"""Naming a session: by id, by key, by both; and rotation (a new id under a known key)."""

from __future__ import annotations

import pytest

from contextengine import ContextEngineError
from contextengine.messages import user
from tests.integration.harness import House, problem, ref, texts


async def shown(house: House, session) -> list[str]:
    return texts((await house.client.assemble(session)).items)


async def test_an_id_alone_is_that_session(house: House) -> None:
    await house.client.ingest(ref("one"), user("in one"))
    await house.client.ingest(ref("two"), user("in two"))
    assert await shown(house, ref("one")) == ["in one"]
    assert await shown(house, ref("two")) == ["in two"]


async def test_the_same_id_of_two_agents_is_two_sessions(house: House) -> None:
    await house.client.ingest(ref("s", agent="a"), user("of a"))
    await house.client.ingest(ref("s", agent="b"), user("of b"))
    assert await shown(house, ref("s", agent="a")) == ["of a"]
    assert await shown(house, ref("s", agent="b")) == ["of b"]


async def test_a_key_alone_creates_a_session_named_as_the_key(house: House) -> None:
    await house.client.ingest(ref("", key="main"), user("first"))
    status = await house.client.get_status(ref("", key="main"))
    assert (status.session_id, status.session_key, status.current_for_key) == ("main", "main", True)
    assert await shown(house, ref("main")) == ["first"]


async def test_both_tie_the_session_to_the_key(house: House) -> None:
    await house.client.ingest(ref("s1", key="main"), user("first"))
    assert await shown(house, ref("", key="main")) == ["first"]
    await house.client.ingest(ref("", key="main"), user("second"))
    assert await shown(house, ref("s1")) == ["first", "second"]


async def test_a_session_that_had_no_key_is_tied_by_the_next_write(house: House) -> None:
    await house.client.ingest(ref("s1"), user("first"))
    assert (await house.client.get_status(ref("s1"))).session_key == ""
    await house.client.ingest(ref("s1", key="main"), user("second"))
    assert await shown(house, ref("", key="main")) == ["first", "second"]


async def test_the_same_message_again_still_ties_the_key(house: House) -> None:
    message = user("first")
    await house.client.ingest(ref("s1"), message)
    await house.client.ingest(ref("s1", key="main"), message)
    assert (await house.client.get_status(ref("", key="main"))).session_id == "s1"


async def test_reading_ties_nothing(house: House) -> None:
    await house.client.ingest(ref("s1"), user("first"))
    await house.client.assemble(ref("s1", key="main"))
    await house.client.get_status(ref("s1", key="main"))
    assert (await house.client.sessions.get(ref("s1"))).session.session_key == ""


async def test_a_new_id_under_a_known_key_is_a_rotation(house: House) -> None:
    await house.client.ingest(ref("old", key="main"), user("before"))
    reply = await house.client.bootstrap(ref("new", key="main"))
    assert (reply.rotated, reply.created, reply.last_sequence) == (True, True, 0)
    assert await shown(house, ref("", key="main")) == []
    assert (await house.client.get_status(ref("", key="main"))).session_id == "new"
    assert await shown(house, ref("old")) == ["before"], "the old one stays readable"
    assert await shown(house, ref("old", key="main")) == ["before"]
    assert not (await house.client.get_status(ref("old"))).current_for_key


async def test_a_write_rotates_as_well(house: House) -> None:
    await house.client.ingest(ref("old", key="main"), user("before"))
    await house.client.ingest(ref("new", key="main"), user("after"))
    assert await shown(house, ref("", key="main")) == ["after"]


async def test_writing_to_the_old_id_under_the_key_does_not_make_it_current_again(
    house: House,
) -> None:
    await house.client.ingest(ref("old", key="main"), user("before"))
    await house.client.ingest(ref("new", key="main"), user("after"))
    await house.client.ingest(ref("old", key="main"), user("late"))
    assert not (await house.client.bootstrap(ref("old", key="main"))).rotated
    await house.restart()
    assert (await house.client.get_status(ref("", key="main"))).session_id == "new"
    assert await shown(house, ref("old")) == ["before", "late"]


async def test_an_epoch_says_reset_where_another_session_stands_under_the_key(house: House) -> None:
    key = ref("", key="main")
    await house.client.ingest(ref("old", key="main"), user("before"))
    before = await house.client.assemble(key)
    await house.client.ingest(ref("new", key="main"), user("after"))
    after = await house.client.assemble(
        key, known_context_hash=before.context_hash, known_epoch=before.context_projection.epoch
    )
    assert (after.cache.delta, after.cache.reused_count) == (False, 0)
    assert after.cache.epoch_cause == 5  # RESET
    assert texts(after.items) == ["after"]


async def test_keys_of_two_agents_are_two_keys(house: House) -> None:
    await house.client.ingest(ref("s", agent="a", key="main"), user("of a"))
    await house.client.ingest(ref("t", agent="b", key="main"), user("of b"))
    assert await shown(house, ref("", agent="a", key="main")) == ["of a"]
    assert await shown(house, ref("", agent="b", key="main")) == ["of b"]


async def test_a_key_whose_current_session_was_deleted_begins_anew(house: House) -> None:
    await house.client.ingest(ref("s1", key="main"), user("before"))
    await house.client.sessions.delete(ref("s1"))
    with pytest.raises(ContextEngineError) as caught:
        await house.client.get_status(ref("", key="main"))
    assert problem(caught.value)[:2] == ("NOT_FOUND", "SESSION_NOT_FOUND")
    await house.client.ingest(ref("", key="main"), user("after"))
    assert await shown(house, ref("", key="main")) == ["after"]


async def test_neither_id_nor_key_is_refused(house: House) -> None:
    with pytest.raises(ContextEngineError) as caught:
        await house.client.ingest(ref(""), user("x"))
    assert problem(caught.value) == ("INVALID_ARGUMENT", "INVALID_FIELD", ["session.session_id"])


async def test_a_session_that_is_not_there_is_not_found(house: House) -> None:
    for call in (
        house.client.get_status(ref("none")),
        house.client.reset_session(ref("none")),
        house.client.end_session(ref("none")),
        house.client.maintain(ref("none")),
        house.client.compact(ref("none")),
        house.client.sessions.get(ref("none")),
        house.rows(ref("none")),
    ):
        with pytest.raises(ContextEngineError) as caught:
            await call
        assert problem(caught.value)[:2] == ("NOT_FOUND", "SESSION_NOT_FOUND")
        assert caught.value.metadata == {"agent_id": "agent", "session_id": "none"}
