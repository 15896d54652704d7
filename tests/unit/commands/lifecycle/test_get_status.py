"""GetStatus: what is known of a session."""

from __future__ import annotations

import pytest

from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.commands.turn.update_model import Model
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.errors import SessionNotFound
from contextengine_server.session.address import Ref
from tests.unit.commands.house import AGENT, S1, TENANT, Server, assistant, incoming, scope, user


async def test_what_is_held_of_a_session(server: Server) -> None:
    messages = incoming(user("a"), assistant("", "", "c1"), user("b"), assistant("", "", "c2"))
    await server.context.ingest.run(TENANT, S1, messages, None)
    status = await server.context.get_status.run(TENANT, S1, 1)
    assert (status.scope, status.head.revision) == (scope(), 1)
    assert (status.view.steps, status.view.window_from_step) == (4, 0)
    assert (status.view.pending_calls, status.view.abandoned_calls) == (1, 1)
    # The result that was made up for the call that was given up is no message.
    assert status.view.tokens >= sum(row.tokens for row in await server.store.messages(scope()))
    assert (status.selected.engine.id, status.selected.source) == ("dag", "configuration")
    assert status.failure is None
    assert (status.live_children, status.spawn, status.jobs) == (0, None, [])
    assert status.now_ms == server.clock.ms


async def test_nothing_is_pending_of_what_is_closed(server: Server) -> None:
    await server.context.ingest.run(TENANT, S1, incoming(user("a"), assistant("b")), None)
    status = await server.context.get_status.run(TENANT, S1, 0)
    assert (status.view.pending_calls, status.view.abandoned_calls) == (0, 0)
    assert (status.view.max_depth, status.parent_key, status.spawn) == (0, "", None)
    empty = Ref(AGENT, "empty")
    await server.context.bootstrap.run(TENANT, empty, Introduction())
    status = await server.context.get_status.run(TENANT, empty, 0)
    assert (status.view.pending_calls, status.view.steps, status.view.tokens) == (0, 0, 0)
    assert not status.current_for_key


async def test_summaries_and_jobs_are_counted(server: Server) -> None:
    await server.talk(1, 6)
    await server.compact(4_000)
    await server.core.queue.add(scope(), ReferenceTokens(1_000))
    status = await server.context.get_status.run(TENANT, S1, 0)
    assert status.head.summary_count == len(await server.store.summaries(scope())) > 0
    assert [job.kind for job in status.jobs] == ["compact"]


async def test_the_budget_is_that_of_the_sessions_window(server: Server) -> None:
    await server.context.update_model.run(TENANT, S1, Model(window=50_000), None)
    budget = (await server.context.get_status.run(TENANT, S1, 0)).budget
    assert budget is not None
    assert (budget.window, budget.source) == (50_000, "model")


async def test_a_key_names_its_newest_session(server: Server) -> None:
    old, new = Ref(AGENT, "old", "chat"), Ref(AGENT, "new", "chat")
    await server.ingest("a", ref=old)
    assert (await server.context.get_status.run(TENANT, old, 0)).current_for_key
    await server.ingest("b", ref=new)
    assert not (await server.context.get_status.run(TENANT, old, 0)).current_for_key
    assert (await server.context.get_status.run(TENANT, new, 0)).current_for_key


async def test_a_session_that_is_not_there(server: Server) -> None:
    with pytest.raises(SessionNotFound):
        await server.context.get_status.run(TENANT, S1, 0)


async def test_what_a_session_takes_is_told_where_asked(server: Server) -> None:
    await server.ingest("a " + "word " * 1_000)
    assert (await server.context.get_status.run(TENANT, S1, 0)).disk_bytes is None
    before = (await server.context.get_status.run(TENANT, S1, 0, sized=True)).disk_bytes
    assert before is not None
    assert before > 5_000
    await server.ingest("b " + "word " * 1_000)
    after = (await server.context.get_status.run(TENANT, S1, 0, sized=True)).disk_bytes
    assert after is not None
    assert after > before + 5_000


async def test_the_smallest_window_leaves_one_token(server: Server) -> None:
    await server.context.bootstrap.run(TENANT, S1, Introduction(window=1))
    budget = (await server.context.get_status.run(TENANT, S1, 0)).budget
    assert budget is not None
    assert (budget.window, budget.available) == (1, 1)
