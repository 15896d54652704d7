"""Bootstrap: a host and a session are introduced, once; a session goes on where another stood."""

from __future__ import annotations

import pytest

from contextengine_server.commands.turn.bootstrap import HostFacts, Introduction
from contextengine_server.errors import (
    ContradictoryFields,
    InvalidField,
    RowNotFound,
    SessionNotFound,
)
from contextengine_server.session.address import Ref
from tests.unit.commands.house import AGENT, S1, TENANT, Server, request, scope, spoken

S2 = Ref(AGENT, "s2")
HOST = HostFacts(b"host", ("lends-model",))


async def test_a_session_is_made_with_what_is_said(server: Server) -> None:
    said = Introduction(HOST, "gpt-5", "openai", 50_000)
    done = await server.context.bootstrap.run(TENANT, S1, said, spoken("a"), request())
    state = await server.state()
    assert (done.created, done.head.revision, len(done.stored)) == (True, 1, 1)
    assert (done.head.model, done.head.provider) == ("gpt-5", "openai")
    assert (state.model.window, state.capabilities) == (50_000, ("lends-model",))
    assert bytes.fromhex(state.host) == b"host"
    assert done.encoding == state.encoding


async def test_what_is_known_commits_nothing(server: Server) -> None:
    said = Introduction(HOST, "gpt-5")
    for _ in range(2):
        done = await server.context.bootstrap.run(TENANT, S1, said, spoken("a"))
    assert (done.created, done.head.revision) == (False, 1)
    assert server.store.calls["commit"] == 1


async def test_news_are_noted(server: Server) -> None:
    await server.context.bootstrap.run(TENANT, S1, Introduction(HOST))
    done = await server.context.bootstrap.run(TENANT, S1, Introduction(model="gpt-5"))
    assert (done.head.revision, done.head.model) == (2, "gpt-5")
    assert (await server.state()).capabilities == ("lends-model",)


async def test_a_session_goes_on_with_another(server: Server) -> None:
    await server.ingest("a", "b", ref=S2)
    said = Introduction(continues=S2)
    done = await server.context.bootstrap.run(TENANT, S1, said, spoken("c"))
    assert (done.head.parent_session, done.head.parent_revision) == ("s2", 1)
    assert [one.sequence for one in done.stored] == [3]
    await server.ingest("d", ref=S2)
    assert await server.shown() == ["a", "b", "c"]
    again = await server.context.bootstrap.run(TENANT, S1, said)
    assert again.head.revision == done.head.revision


async def test_only_an_empty_session_goes_on_with_another(server: Server) -> None:
    await server.ingest("a")
    await server.ingest("b", ref=S2)
    with pytest.raises(ContradictoryFields):
        await server.context.bootstrap.run(TENANT, S1, Introduction(continues=S2))
    assert (await server.head()).parent_session == ""


@pytest.mark.parametrize(
    ("named", "error"),
    [
        (S1, InvalidField),
        (Ref("other", "s2"), InvalidField),
        (Ref(AGENT, "none"), SessionNotFound),
    ],
)
async def test_what_cannot_be_gone_on_with(
    server: Server, named: Ref, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await server.context.bootstrap.run(TENANT, S1, Introduction(continues=named))
    assert await server.store.head(scope()) is None


async def test_a_token_that_is_not_known(server: Server) -> None:
    with pytest.raises(RowNotFound):
        await server.context.bootstrap.run(TENANT, S1, Introduction(), spawn_token="none")
    assert await server.store.head(scope()) is None
