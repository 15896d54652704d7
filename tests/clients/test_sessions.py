"""One session, whoever asks: begun by one client, continued by the others, projected to the same
bytes."""

from __future__ import annotations

import pytest

from contextengine import types as t
from tests.clients.drivers import Driver, Json
from tests.clients.vectors import parsed, vectors

ROOM = t.Budget(message_tokens=6_000)
"""More than is said here: no compaction in the background changes a list between two calls."""
PROJECTION = vectors("projection.json")


@pytest.fixture
def drivers(everyone: dict[str, Driver], address: str) -> list[Driver]:
    """A driver of each language, all connected to the real server."""
    for driver in everyone.values():
        driver.connect(address)
    return list(everyone.values())


def said(role: t.Role, id: str, text: str) -> t.Message:
    return t.Message(id=id, role=role, parts=[t.Part(text=t.TextPart(text=text))])


def test_a_session_goes_from_hand_to_hand(drivers: list[Driver], session: Json) -> None:
    sent: list[str] = []
    for round in range(3):
        for driver in drivers:
            id = f"{round}-{driver.language}"
            question = said(t.ROLE_USER, f"q-{id}", f"Question {id}: " + "words " * 200)
            answer = said(t.ROLE_ASSISTANT, f"a-{id}", f"Answer {id}")
            context = driver.assemble(session, t.AssembleRequest(ingest=[question], budget=ROOM))
            sent += [question.id, answer.id]
            assert context.degraded is None
            assert context.ids[-1] == question.id
            turn = driver.session(
                session, "after_turn", t.AfterTurnRequest(messages=[answer]), t.AfterTurnResponse
            )
            assert turn.status == t.AfterTurnResponse.STATUS_COMMITTED
    # A handle that holds a list gets a delta and answers the whole; both are the same for everyone.
    request = t.AssembleRequest(budget=ROOM)
    whole = [driver.assemble(session, request, delta=False) for driver in drivers]
    deltas = [driver.assemble(session, request) for driver in drivers]
    for context in (*whole, *deltas):
        assert context.bytes == whole[0].bytes
        assert context.response.context_hash == whole[0].response.context_hash
    assert {context.response.cache.reused_count for context in deltas} == {len(whole[0].items)}
    assert all(not context.response.items for context in deltas)
    for driver in drivers:
        assert [t.Message.FromString(message).id for message in driver.export(session)] == sent


@pytest.mark.parametrize("target", PROJECTION["targets"])
def test_projections_are_the_same_for_everyone(target: str, drivers: list[Driver]) -> None:
    request = t.ProjectRequest(
        messages=[parsed(t.Message, message) for message in PROJECTION["messages"]],
        prompt=[parsed(t.Part, part) for part in PROJECTION["prompt"]],
        options=t.ProjectionOptions(target=target),
        budget=t.Budget(message_tokens=8_000),
    )
    replies = [driver.call("Projection.Project", request, t.ProjectResponse) for driver in drivers]
    assert all(reply == replies[0] for reply in replies)
    shown = replies[0].prompt.encode() + replies[0].messages_json
    assert "📦 #4711" in shown.decode()


def test_codex_in_one_call(driver: Driver, session: Json) -> None:
    history = [parsed(t.Message, message) for message in PROJECTION["messages"]]
    driver.session(
        session, "ingest_batch", t.IngestBatchRequest(messages=history), t.IngestBatchResponse
    )
    request = t.AssembleRequest(
        prompt=[parsed(t.Part, part) for part in PROJECTION["prompt"]],
        projection=t.ProjectionOptions(base_instructions="Base."),
        budget=ROOM,
    )
    reply = driver.project_codex(session, request)
    assert reply.action == t.PROJECTION_ACTION_START
    assert reply.target == t.PROJECTION_TARGET_CODEX
    assert "📦 #4711" in reply.prompt
    assert "And when will it come? 🚚" in reply.prompt
    request.projection.binding.CopyFrom(reply.binding)
    request.projection.binding.thread_id = "thread-1"
    again = driver.project_codex(session, request)
    assert again.action != t.PROJECTION_ACTION_UNSPECIFIED
    assert again.binding.engine_id == reply.binding.engine_id


def test_compaction_goes_through_every_client(driver: Driver, session: Json) -> None:
    turns = [
        said(
            role,
            f"m{n}{role}",
            f"Message {n} of {role}. " + "The parcel 4711 went to Utrecht. " * 30,
        )
        for n in range(30)
        for role in (t.ROLE_USER, t.ROLE_ASSISTANT)
    ]
    driver.session(
        session, "ingest_batch", t.IngestBatchRequest(messages=turns), t.IngestBatchResponse
    )
    before = driver.assemble(session, t.AssembleRequest(budget=t.Budget(message_tokens=30_000)))
    reply = driver.session(session, "compact", t.CompactRequest(force=True), t.CompactResponse)
    assert reply.compacted, reply.reason
    after = driver.assemble(session, t.AssembleRequest(budget=t.Budget(message_tokens=30_000)))
    assert sum(item.tokens for item in after.items) < sum(item.tokens for item in before.items)
    assert after.response.cache.epoch_cause == t.EPOCH_CAUSE_COMPACTED
    assert any(item.HasField("summary") for item in after.items)
    assert len(driver.export(session)) == len(turns)


def test_subagents_go_through_every_client(driver: Driver, session: Json) -> None:
    parent = t.SessionRef(**session)
    driver.session(
        session,
        "ingest",
        t.IngestRequest(message=said(t.ROLE_USER, "u", "plan it")),
        t.IngestResponse,
    )

    def prepare(name: str) -> t.PrepareSubagentSpawnResponse:
        child = t.SessionRef(agent_id="clients", session_id=f"{parent.session_id}-{name}")
        request = t.PrepareSubagentSpawnRequest(parent=parent, child=child, request_id=f"{name}-1")
        return driver.call(
            "ContextEngine.PrepareSubagentSpawn", request, t.PrepareSubagentSpawnResponse
        )

    spawned, taken_back = prepare("one"), prepare("two")
    assert spawned.spawn_token
    assert prepare("one").spawn_token == spawned.spawn_token
    rollback = t.RollbackSubagentSpawnRequest(spawn_token=taken_back.spawn_token, parent=parent)
    for first in (True, False):
        reply = driver.call(
            "ContextEngine.RollbackSubagentSpawn", rollback, t.RollbackSubagentSpawnResponse
        )
        assert reply.rolled_back is first
    child = t.SessionRef(agent_id="clients", session_id=f"{parent.session_id}-one")
    end = t.EndSubagentRequest(child=child, spawn_token=spawned.spawn_token)
    assert driver.call("ContextEngine.EndSubagent", end, t.EndSubagentResponse).ended


def test_recall_by_the_ids_that_a_host_gave(driver: Driver, session: Json) -> None:
    said_so = [said(t.ROLE_USER, f"m{n}", f"Boat {n} lies in the harbour") for n in range(1, 6)]
    stored = driver.session(
        session, "ingest_batch", t.IngestBatchRequest(messages=said_so), t.IngestBatchResponse
    )
    expand = t.ExpandRequest(session=t.SessionRef(**session), message_ids=["m4", "m2"])
    page = driver.call("Recall.Expand", expand, t.ExpandResponse)
    assert [item.id for item in page.items] == ["m2", "m4"]
    search = t.SearchRequest(
        session=t.SessionRef(**session),
        query="harbour",
        first_message_id="m2",
        last_message_id="m4",
        at_least_revision=stored.revision,
    )
    found = driver.call("Recall.Search", search, t.SearchResponse)
    assert sorted(hit.id for hit in found.hits) == ["m2", "m3", "m4"]
