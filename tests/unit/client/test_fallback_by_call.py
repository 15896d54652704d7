"""Each call of a session handle may say for itself whether it bears that the service is away, and
what the host itself would send then (clients/README.md, section 5)."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest

from contextengine import Client, ContextEngineError, assistant, user
from contextengine.calls import ASSEMBLE
from contextengine.session import Session
from contextengine.types import (
    AssembleRequest,
    AssembleResponse,
    Budget,
    CacheReport,
    Item,
    SessionRef,
)
from tests.unit.client.conftest import Server

REF = SessionRef(agent_id="a", session_id="s")
AWAY = "127.0.0.1:1"
"""Nobody listens here."""


@pytest.fixture(params=[True, False], ids=["with fallback", "without"])
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    """A handle whose service is away, of a client that bears it, and of one that does not."""
    with Client(AWAY, retry_for=0, fallback=request.param) as client:
        yield client.session(agent_id="a", session_id="s")


def test_writes_raise_where_assemble_is_borne(session: Session) -> None:
    said = user("hello", id="m1")
    for write in (
        lambda: session.ingest(said, fallback=False),
        lambda: session.ingest_batch([said], fallback=False),
        lambda: session.after_turn([said], fallback=False),
        lambda: session.report_usage(fallback=False),
    ):
        with pytest.raises(ContextEngineError) as caught:
            write()
        assert caught.value.code is grpc.StatusCode.UNAVAILABLE
    assert session.pending == 0
    reply = session.assemble(fallback=True, host_messages=[said])
    assert reply.degraded is not None
    assert [message.id for message in reply.messages] == ["m1"]
    with pytest.raises(ContextEngineError):
        session.assemble(fallback=False, host_messages=[said])


def test_a_fresh_handle_answers_the_hosts_own_list(session: Session) -> None:
    listed = [user("one"), assistant("two"), user("three")]
    reply = session.assemble(fallback=True, host_messages=listed)
    assert reply.messages == listed
    assert reply.response.outcome == AssembleResponse.OUTCOME_DEGRADED
    assert not session.assemble(fallback=True).messages, "which would be nothing without it"
    # It is cut to the budget as any other list is.
    small = session.assemble(fallback=True, host_messages=listed, budget=Budget(message_tokens=40))
    assert small.messages == listed[-1:]


def test_what_is_ingested_stands_in_the_hosts_list_already() -> None:
    with Client(AWAY, retry_for=0) as client:
        session = client.session(agent_id="a", session_id="s")
        reply = session.assemble(
            ingest=[user("new", id="m2")], host_messages=[user("old"), user("new")]
        )
        assert [text.parts[0].text.text for text in reply.messages] == ["old", "new"]
        assert session.pending == 1, "it waits to be stored all the same"
    with Client(AWAY, retry_for=0, fallback=False) as client:
        session = client.session(agent_id="a", session_id="s")
        borne = session.assemble(ingest=[user("new")], host_messages=[user("new")], fallback=True)
        assert borne.degraded is not None
        assert borne.degraded.unqueued == 1, "nobody stores it but the caller"


def test_the_hosts_list_is_not_sent(server: Server) -> None:
    item = Item(id="m1", message=user("stored", id="m1"))

    def answer(request: AssembleRequest, _: grpc.ServicerContext) -> AssembleResponse:
        return AssembleResponse(items=[item], cache=CacheReport(total_count=1))

    server.answers[ASSEMBLE.path] = answer
    with Client(server.address) as client:
        session = client.session(agent_id="a", session_id="s")
        reply = session.assemble(host_messages=[user("of the host")])
        assert [message.id for message in reply.messages] == ["m1"]
        assert server.requests == [AssembleRequest(session=REF)]


def test_a_host_id_must_name_a_message(session: Session) -> None:
    with pytest.raises(ValueError, match="host id of a message is empty"):
        session.record_rewind_to("")
    with pytest.raises(ValueError, match="host id of a message is empty"):
        session.record_compaction_before("", "in short")
