"""Which session a request names: by its id, by a key, by both."""

from __future__ import annotations

import pytest

from contextengine_server.context.scope import Scope
from contextengine_server.errors import InvalidField, SessionNotFound
from contextengine_server.session.address import Address, Addresses, Ref, not_found
from tests.unit.commands.house import AGENT, TENANT, Server, scope

KEY = "chat"


async def found(server: Server, session: str = "", key: str = "") -> Address:
    return await server.core.addresses.find(TENANT, Ref(AGENT, session, key))


async def test_an_id_names_its_session(server: Server) -> None:
    assert await found(server, "s1") == Address(scope())


async def test_an_unused_key_is_the_id_of_its_first_session(server: Server) -> None:
    assert await found(server, key=KEY) == Address(Scope(TENANT, AGENT, KEY), KEY, bind=True)


async def test_a_key_names_the_session_it_is_tied_to(server: Server) -> None:
    await server.ingest("a", ref=Ref(AGENT, "s1", KEY))
    assert await found(server, key=KEY) == Address(scope(), KEY)
    assert await found(server, "s1", KEY) == Address(scope(), KEY)


async def test_a_new_session_under_a_known_key_takes_its_place(server: Server) -> None:
    await server.ingest("a", ref=Ref(AGENT, "s1", KEY))
    s2 = scope(Ref(AGENT, "s2"))
    assert await found(server, "s2", KEY) == Address(s2, KEY, bind=True, rotated=True, left="s1")
    await server.ingest("b", ref=Ref(AGENT, "s2", KEY))
    assert await found(server, key=KEY) == Address(s2, KEY)


async def test_what_was_rotated_out_does_not_come_back(server: Server) -> None:
    await server.ingest("a", ref=Ref(AGENT, "s1", KEY))
    await server.ingest("b", ref=Ref(AGENT, "s2", KEY))
    assert await found(server, "s1", KEY) == Address(scope(), KEY)
    await server.ingest("c", ref=Ref(AGENT, "s1", KEY))
    assert (await found(server, key=KEY)).scope.session == "s2"


async def test_a_session_that_is_there_is_tied_and_not_rotated_to(server: Server) -> None:
    await server.ingest("a", ref=Ref(AGENT, "s1", KEY))
    await server.ingest("b", ref=Ref(AGENT, "s2"))
    s2 = scope(Ref(AGENT, "s2"))
    assert await found(server, "s2", KEY) == Address(s2, KEY, bind=True, left="s1")


async def test_a_first_session_with_id_and_key_is_tied(server: Server) -> None:
    assert await found(server, "s1", KEY) == Address(scope(), KEY, bind=True)


@pytest.mark.parametrize(
    ("ref", "field", "says"),
    [
        (Ref("", "s1"), "agent_id", "is required: it names the agent"),
        (Ref("a"), "session_id", "is required, or session_key"),
        (Ref("é" * 5, "s1"), "agent_id", "is longer than 9 bytes"),
        (Ref("a", "s" * 10), "session_id", "is longer than 9 bytes"),
        (Ref("a", "s1", "k" * 10), "session_key", "is longer than 9 bytes"),
        (Ref("a\0", "s1"), "agent_id", "holds a NUL character"),
        (Ref("a", "s\0"), "session_id", "holds a NUL character"),
        (Ref("a", "", "k\0"), "session_key", "holds a NUL character"),
    ],
)
async def test_what_names_no_session_is_refused(
    server: Server, ref: Ref, field: str, says: str
) -> None:
    named = Ref(ref.agent, ref.session, ref.key, "turn.session")
    with pytest.raises(InvalidField) as refused:
        await Addresses(server.store, max_id_bytes=9).find(TENANT, named)
    (violation,) = refused.value.violations
    assert violation.field == f"turn.session.{field}"
    assert violation.description.startswith(says)


async def test_a_name_may_be_as_long_as_allowed(server: Server) -> None:
    addresses = Addresses(server.store, max_id_bytes=9)
    named = await addresses.find(TENANT, Ref("a" * 9, "s" * 9, "k" * 9))
    assert named.scope == Scope(TENANT, "a" * 9, "s" * 9)
    assert Addresses(server.store).max_id_bytes == 256


def test_what_is_not_there_is_named() -> None:
    error = not_found(scope())
    assert isinstance(error, SessionNotFound)
    assert error.metadata == {"agent_id": AGENT, "session_id": "s1"}
    assert str(error).startswith("there is no session 's1' of agent 'agent': write to it first")
