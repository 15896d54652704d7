"""A call names its session, and what is between may keep a session at one of several servers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from contextengine import Client, user
from contextengine import types as t
from contextengine.affinity import SESSION_HEADER
from tests.unit.client.conftest import Server

NAMED = hashlib.sha256("a\0é".encode()).hexdigest()[:32]
RING = json.dumps(
    {"loadBalancingConfig": [{"ring_hash_experimental": {"requestHashHeader": SESSION_HEADER}}]}
)


def session(name: str = "é") -> t.SessionRef:
    return t.SessionRef(agent_id="a", session_id=name)


@pytest.mark.parametrize(
    ("agent", "named", "name"), [("a", "é", NAMED), ("", "é", None), ("a", "", None)]
)
def test_a_watch_names_the_session_that_it_is_about(
    server: Server, agent: str, named: str, name: str | None
) -> None:
    """A session without its agent may be several."""
    with Client(server.address) as client:
        list(client.sessions.watch(agent_id=agent, session_id=named))
    assert [metadata.get(SESSION_HEADER) for metadata in server.metadata] == [name]


def test_an_import_and_an_export_name_their_session(
    server: Server, run: Callable[..., Any]
) -> None:
    def use(client: Any) -> Any:
        stream = client.sessions.export(session())
        if isinstance(client, Client):
            list(stream)
            return client.sessions.import_session(session(), [user("hello")])

        async def both() -> Any:
            async for _ in stream:
                pass
            return await client.sessions.import_session(session(), [user("hello")])

        return both()

    run(use)
    assert [metadata.get(SESSION_HEADER) for metadata in server.metadata] == [NAMED, NAMED]
    assert len(server.requests[1]) == 2


def test_a_call_names_its_session(server: Server, run: object) -> None:
    assert callable(run)
    run(lambda client: client.get_status(session()))
    run(lambda client: client.sessions.list(agent_id="a"))
    assert [metadata.get(SESSION_HEADER) for metadata in server.metadata] == [NAMED, None]


def test_what_a_caller_names_is_sent_instead(server: Server) -> None:
    with Client(server.address, metadata=lambda: [(SESSION_HEADER, "mine")]) as client:
        client.get_status(session())
    assert server.metadata[0][SESSION_HEADER] == "mine"


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    """Three, of which a client knows every address."""
    found = [Server() for _ in range(3)]
    yield found
    for one in found:
        one.stop()


def test_grpc_keeps_a_session_at_one_server(
    servers: list[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRPC_EXPERIMENTAL_RING_HASH_SET_REQUEST_HASH_KEY", "true")
    target = "ipv4:" + ",".join(one.address for one in servers)
    with Client(target, options=[("grpc.service_config", RING)]) as client:
        for _ in range(3):
            for number in range(40):
                client.get_status(session(f"s{number}"))
    seen = [{one[SESSION_HEADER] for one in server.metadata} for server in servers]
    assert all(seen), "of 40 sessions each of three servers has some"
    assert sum(map(len, seen)) == len(set.union(*seen)) == 40
