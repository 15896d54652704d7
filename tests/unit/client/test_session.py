"""A session handle: what it sends, and that it always answers the whole list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest

from contextengine import AsyncClient, Client, DeltaMismatch, assistant, user
from contextengine.calls import ASSEMBLE, INGEST_BATCH
from contextengine.types import (
    AssembleRequest,
    AssembleResponse,
    CacheReport,
    ContextProjection,
    DeleteRequest,
    EndSessionRequest,
    GetStatusRequest,
    Item,
    Message,
    RecordHostChangeRequest,
    SessionRef,
    WatchRequest,
)
from tests.unit.client.conftest import Server

REF = SessionRef(agent_id="a", session_id="s")
Run = Callable[..., Any]


class Assembling:
    """Assembles whatever was ingested, as a delta where it can. `forget` drops the oldest
    message."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.forget = False
        self.wrong = False

    def __call__(self, request: AssembleRequest, context: grpc.ServicerContext) -> AssembleResponse:
        self.messages += request.ingest
        if self.forget:
            self.messages = self.messages[1:]
        hashes = [
            "/".join(message.id for message in self.messages[:n])
            for n in range(len(self.messages) + 1)
        ]
        known = request.known_context_hash.decode()
        reused = hashes.index(known) if known in hashes else 0
        return AssembleResponse(
            items=[Item(id=message.id, message=message) for message in self.messages[reused:]],
            cache=CacheReport(
                reused_count=reused + self.wrong, total_count=len(self.messages), delta=reused > 0
            ),
            context_hash=hashes[-1].encode(),
            context_projection=ContextProjection(epoch=f"cut at {self.messages[0].id}"),
            outcome=AssembleResponse.OUTCOME_FITS,
        )


def turns(texts: str) -> list[Message]:
    return [user(text, id=text) for text in texts]


def test_the_whole_list_comes_back_though_only_what_is_new_is_sent(server: Server) -> None:
    server.answers[ASSEMBLE.path] = assembling = Assembling()
    with Client(server.address) as client:
        session = client.session(agent_id="a", session_id="s")
        first = session.assemble(ingest=turns("ab"))
        second = session.assemble(ingest=turns("c"))
        assert [message.id for message in first.messages] == ["a", "b"]
        assert [message.id for message in second.messages] == ["a", "b", "c"]
        assert second.fits
        assert [item.id for item in second.response.items] == ["c"]
        assert server.requests[1].known_context_hash == b"a/b"
        assert server.requests[1].known_epoch == "cut at a"

        assembling.forget = True
        shrunken = session.assemble()
        assert [item.id for item in shrunken.items] == ["b", "c"]
        assembling.forget = False

        whole = session.assemble(delta=False)
        assert len(whole.response.items) == len(whole.items) == 2
        assert server.requests[-1].known_context_hash == b""

        other = client.session(agent_id="a", session_id="s")
        other.assemble()
        assert server.requests[-1].known_context_hash == b""


async def test_the_asyncio_handle_does_the_same(server: Server) -> None:
    server.answers[ASSEMBLE.path] = Assembling()
    async with AsyncClient(server.address) as client:
        session = client.session(agent_id="a", session_id="s")
        await session.assemble(ingest=turns("ab"))
        second = await session.assemble(ingest=turns("c"))
        assert [message.id for message in second.messages] == ["a", "b", "c"]
        assert len(second.response.items) == 1


def test_after_a_delta_that_does_not_fit_everything_is_asked_for(server: Server) -> None:
    server.answers[ASSEMBLE.path] = assembling = Assembling()
    with Client(server.address) as client:
        session = client.session(agent_id="a", session_id="s")
        session.assemble(ingest=turns("ab"))
        assembling.wrong = True
        with pytest.raises(DeltaMismatch):
            session.assemble(ingest=turns("c"))
        assembling.wrong = False
        assert [item.id for item in session.assemble().items] == ["a", "b", "c"]


def test_messages_handed_over_keep_their_shape(server: Server, run: Run) -> None:
    mine = [user("hello", id=""), assistant("hi", id="")]
    run(lambda client: client.session(agent_id="a", session_id="s").ingest_batch(mine))
    assert [message.id for message in mine] == ["", ""]
    sent = server.requests[0].messages
    assert all(message.id for message in sent)
    assert server.answers.get(INGEST_BATCH.path) is None


Change = RecordHostChangeRequest


@pytest.mark.parametrize(
    ("use", "sent"),
    [
        (
            lambda s: s.record_rewind(4, change_id="c"),
            Change(change_id="c", rewind=Change.Rewind(after_sequence=4)),
        ),
        (
            lambda s: s.record_compaction(1, 9, "in short", change_id="c"),
            Change(
                change_id="c",
                compacted=Change.HostCompaction(
                    first_sequence=1, last_sequence=9, summary="in short"
                ),
            ),
        ),
        (
            lambda s: s.record_native_compaction(change_id="c"),
            Change(change_id="c", native_compacted=Change.NativeCompaction()),
        ),
        (lambda s: s.status(at_least_revision=3), GetStatusRequest(at_least_revision=3)),
        (
            lambda s: s.end(request_id="r", reason="done"),
            EndSessionRequest(request_id="r", reason="done"),
        ),
        (
            lambda s: s.delete(request_id="r", expected_revision=0, cascade=True),
            DeleteRequest(request_id="r", expected_revision=0, cascade=True),
        ),
    ],
)
def test_calls_of_a_handle_name_its_session(
    use: Callable[[Any], Any], sent: Any, server: Server, run: Run
) -> None:
    run(lambda client: use(client.session(agent_id="a", session_id="s")))
    sent.session.CopyFrom(REF)
    assert server.requests == [sent]


@pytest.mark.parametrize(
    "name", ["bootstrap", "after_turn", "compact", "report_usage", "update_model", "reset"]
)
def test_calls_that_change_state_carry_a_request_id(name: str, server: Server, run: Run) -> None:
    run(lambda client: getattr(client.session(agent_id="a", session_key="k"), name)())
    (request,) = server.requests
    assert request.session == SessionRef(agent_id="a", session_key="k")
    assert request.request_id


def test_dispose_reaches_the_server(server: Server, run: Run) -> None:
    run(lambda client: client.session(agent_id="a", session_id="s").dispose())
    assert server.requests[0].session == REF


def test_watch_is_for_one_session(server: Server) -> None:
    with Client(server.address) as client:
        list(client.session(agent_id="a", session_id="s").watch(resume_position="p"))
        assert server.requests == [WatchRequest(agent_id="a", session_id="s", resume_position="p")]
        with pytest.raises(ValueError, match="session_id"):
            client.session(agent_id="a", session_key="k").watch()


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_a_session_needs_a_name(client: type[Client | AsyncClient]) -> None:
    with pytest.raises(ValueError, match="session_id or session_key"):
        client().session(agent_id="a")
