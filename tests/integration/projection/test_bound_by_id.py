"""A harness with threads of its own may say by the host's id what its thread has seen."""

from __future__ import annotations

from typing import Any

import pytest

from contextengine import ContextEngineError, assistant, user
from contextengine import types as t
from tests.integration.harness import House, problem
from tests.integration.projection.asking import CODEX, Action, options, project, text
from tests.integration.projection.test_project import stored

FIELD = "binding.last_message_id"


async def bound(house: House, session: t.SessionRef) -> t.ProjectionBinding:
    """The binding of a thread that was begun with the session."""
    first = await project(house, session, prompt=text("one"), inject_items=True)
    first.binding.thread_id = "thread-1"
    return first.binding


async def test_what_the_thread_has_seen_is_not_injected(house: House) -> None:
    session = await stored(house)
    binding = await bound(house, session)
    turn = [user("one", id="t1"), assistant("done", id="t2")]
    other = assistant("from elsewhere", id="t3")
    await house.client.after_turn(session, [*turn, other])
    by_id = t.ProjectionBinding()
    by_id.CopyFrom(binding)
    by_id.last_message_id = "t2"
    by_sequence = t.ProjectionBinding()
    by_sequence.CopyFrom(binding)
    rows = {row.message.id: row.sequence for row in await house.rows(session)}
    by_sequence.last_sequence = rows["t2"]
    asked: dict[str, Any] = {"prompt": text("two"), "inject_items": True}
    unsaid = await project(house, session, binding=binding, **asked)
    assert len(unsaid.inject_items_json) == 3
    wanted = await project(house, session, binding=by_sequence, **asked)
    assert wanted.action == Action.PROJECTION_ACTION_INJECT
    assert len(wanted.inject_items_json) == 1
    assert await project(house, session, binding=by_id, **asked) == wanted
    beside = await house.client.assemble(
        session, prompt=text("two"), projection=options(inject_items=True, binding=by_id)
    )
    assert beside.projection.inject_items_json == wanted.inject_items_json
    assert not beside.projection.binding.last_message_id


async def test_an_id_that_nothing_has_is_refused_before_anything_is_stored(house: House) -> None:
    session = await stored(house)
    binding = await bound(house, session)
    binding.last_message_id = "nobody's"
    before = (await house.client.get_status(session)).revision
    with pytest.raises(ContextEngineError) as caught:
        await project(house, session, binding=binding)
    assert problem(caught.value) == ("NOT_FOUND", "ROW_NOT_FOUND", [FIELD])
    with pytest.raises(ContextEngineError) as caught:
        await house.client.assemble(
            session, ingest=[user("new")], projection=options(binding=binding)
        )
    assert problem(caught.value) == ("NOT_FOUND", "ROW_NOT_FOUND", [FIELD])
    assert (await house.client.get_status(session)).revision == before


async def test_in_a_list_an_id_must_name_one_message(house: House) -> None:
    said = [user("one", id="a"), assistant("two", id="b"), user("three", id="b")]
    for id, many in (("b", "2 messages have"), ("nobody's", "no message has")):
        binding = t.ProjectionBinding(thread_id="thread-1", last_message_id=id)
        with pytest.raises(ContextEngineError, match=many) as caught:
            await house.client.projection.project(
                options(binding=binding), messages=said, prompt=text("go")
            )
        assert problem(caught.value) == (
            "INVALID_ARGUMENT",
            "INVALID_FIELD",
            [f"options.{FIELD}"],
        )
    binding = t.ProjectionBinding(thread_id="thread-1", last_message_id="a")
    reply = await house.client.projection.project(
        options(binding=binding), messages=said, prompt=text("go")
    )
    assert reply.target == CODEX
