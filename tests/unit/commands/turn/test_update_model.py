"""UpdateModel: a session runs on another model, and what usage taught comes into force."""

from __future__ import annotations

import asyncio

from contextengine_server.commands.turn.update_model import Model
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.session.model import Report, Sent
from contextengine_server.tokens import profile
from tests.unit.commands.house import S1, TENANT, Server, request


async def test_a_session_is_made_where_there_is_none(server: Server) -> None:
    done = await server.context.update_model.run(TENANT, S1, Model("claude-sonnet-4-5"), None)
    known = profile("claude-sonnet-4-5")
    assert (done.head.model, done.head.provider) == ("claude-sonnet-4-5", "anthropic")
    assert (done.model.window, done.model.max_output) == (known.window, known.max_output)
    assert done.revision == 1
    assert [event.name for event in server.events()] == ["session:created"]


async def test_what_is_not_said_stays(server: Server) -> None:
    await server.context.update_model.run(TENANT, S1, Model("gpt-5", "azure", 9_000, 500), None)
    done = await server.context.update_model.run(TENANT, S1, Model(window=8_000), None)
    assert (done.head.model, done.head.provider) == ("gpt-5", "azure")
    assert (done.model.window, done.model.max_output) == (8_000, 500)


async def test_what_usage_taught_comes_into_force(server: Server) -> None:
    await server.ingest("a")
    taught = Report(input_tokens=2_000, billed=True, sent=Sent(ReferenceTokens(1_000)), other=0)
    reported = await server.context.report_usage.run(TENANT, S1, taught, None)
    done = await server.context.update_model.run(TENANT, S1, Model(), None)
    assert done.model.factor == reported.model.learned > 1


async def test_another_model_begins_with_its_own_factor(server: Server) -> None:
    await server.ingest("a")
    taught = Report(input_tokens=2_000, billed=True, sent=Sent(ReferenceTokens(1_000)), other=0)
    await server.context.report_usage.run(TENANT, S1, taught, None)
    done = await server.context.update_model.run(TENANT, S1, Model("claude-opus-4-7"), None)
    assert done.model.factor == done.model.learned == profile("claude-opus-4-7").factor > 1


async def test_the_same_request_again_changes_nothing(server: Server) -> None:
    first = await server.context.update_model.run(TENANT, S1, Model("gpt-5"), request())
    await server.context.update_model.run(TENANT, S1, Model("gpt-4o"), None)
    again = await server.context.update_model.run(TENANT, S1, Model("gpt-5"), request())
    assert (again.revision, (await server.head()).revision) == (first.revision, 2)
    assert again.head.model == "gpt-4o"


async def test_what_comes_meanwhile_waits_and_loses_no_race(server: Server) -> None:
    await server.ingest("a")
    others: list[asyncio.Task[object]] = []

    async def another() -> None:
        call = server.context.update_model.run(TENANT, S1, Model(window=9_000), None)
        others.append(asyncio.create_task(call))
        for _ in range(20):
            await asyncio.sleep(0)

    server.store.before_commit.append(another)
    server.store.calls.clear()
    await server.context.update_model.run(TENANT, S1, Model("gpt-5"), None)
    await asyncio.gather(*others)
    assert ((await server.head()).model, (await server.state()).model.window) == ("gpt-5", 9_000)
    assert server.store.calls["commit"] == 2


async def test_a_provider_alone_leaves_the_model(server: Server) -> None:
    await server.context.update_model.run(TENANT, S1, Model("gpt-5", "openai"), None)
    done = await server.context.update_model.run(TENANT, S1, Model(provider="azure"), None)
    assert (done.head.model, done.head.provider) == ("gpt-5", "azure")
    assert done.model.factor == profile("gpt-5").factor
