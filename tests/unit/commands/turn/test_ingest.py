"""Ingest: messages are stored, all or none, each once."""

from __future__ import annotations

import pytest

from contextengine_server.commands.subagents.prepare_subagent_spawn import SpawnRequest
from contextengine_server.errors import (
    FieldViolation,
    InvalidField,
    MessageConflict,
    RequestIdReused,
    TooLarge,
)
from contextengine_server.session.address import Ref
from contextengine_server.session.receipt import Disposition
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import (
    AGENT,
    S1,
    TENANT,
    Server,
    incoming,
    long,
    request,
    scope,
    spoken,
    user,
)


async def test_messages_are_stored_in_order_under_one_revision(server: Server) -> None:
    done = await server.context.ingest.run(TENANT, S1, spoken("a", "b", "c"), None)
    assert [(one.sequence, one.disposition) for one in done.stored] == [
        (1, Disposition.STORED),
        (2, Disposition.STORED),
        (3, Disposition.STORED),
    ]
    assert done.revision == (await server.head()).revision == 1
    assert await server.stored() == ["a", "b", "c"]


async def test_what_is_there_is_a_duplicate_and_commits_nothing(server: Server) -> None:
    await server.ingest("a", "b")
    done = await server.context.ingest.run(TENANT, S1, spoken("a", "b"), None)
    assert [(one.sequence, one.disposition) for one in done.stored] == [
        (1, Disposition.DUPLICATE),
        (2, Disposition.DUPLICATE),
    ]
    assert done.revision == 1
    assert server.store.calls["commit"] == 1


async def test_a_duplicate_has_the_tokens_of_what_is_stored(server: Server) -> None:
    """A reply tells how much of the budget each message takes, stored now or before."""
    messages = incoming(user(long("m"), "m"), user("short", "s"))
    first = await server.context.ingest.run(TENANT, S1, messages, None)
    rows = await server.store.messages(scope())
    assert [one.tokens for one in first.stored] == [row.tokens for row in rows]
    again = incoming(user("short", "s"), user(long("m"), "m"))
    done = await server.context.ingest.run(TENANT, S1, again, None)
    assert [one.tokens for one in done.stored] == [rows[1].tokens, rows[0].tokens]
    twice = incoming(user(long("n"), "n"), user(long("n"), "n"))
    one, other = (await server.context.ingest.run(TENANT, S1, twice, None)).stored
    assert one.tokens == other.tokens > 100


async def test_a_message_keeps_the_time_that_its_host_says(server: Server, other: Server) -> None:
    said = user("a", "m1")
    said.timestamp.FromMilliseconds(1_700_000_000_123)
    await server.context.ingest.run(TENANT, S1, incoming(said, user("b")), None)
    for one in (server, other):
        entries = list((await one.assemble()).view.entries())
        assert [entry.time_ms for entry in entries] == [1_700_000_000_123, None]


async def test_an_id_twice_in_one_batch_is_one_message(server: Server) -> None:
    messages = incoming(user("a", "m1"), user("a", "m1"))
    done = await server.context.ingest.run(TENANT, S1, messages, None)
    assert [one.sequence for one in done.stored] == [1, 1]
    assert await server.stored() == ["a"]


async def test_the_same_text_without_an_id_is_another_message(server: Server) -> None:
    for _ in range(2):
        await server.ingest("a", ids=False)
    assert await server.stored() == ["a", "a"]


async def test_a_conflict_stores_nothing_of_the_batch(server: Server) -> None:
    await server.ingest("a")
    with pytest.raises(MessageConflict) as refused:
        await server.context.ingest.run(
            TENANT, S1, incoming(user("new", "new"), user("other", "a")), None, "batch"
        )
    assert refused.value.violations[0].field == "batch[1].id"
    known, sent = refused.value.metadata["stored_hash"], refused.value.metadata["sent_hash"]
    assert (known, sent) == (spoken("a")[0].hash.hex(), incoming(user("other"))[0].hash.hex())
    assert await server.stored() == ["a"]
    assert (await server.head()).revision == 1


@pytest.mark.parametrize("ids", [True, False])
async def test_the_same_request_again_answers_what_it_answered(server: Server, ids: bool) -> None:
    messages = spoken("a", "b", ids=ids)
    first = await server.context.ingest.run(TENANT, S1, messages, request())
    await server.ingest("c")
    again = await server.context.ingest.run(TENANT, S1, messages, request())
    assert (again.stored, again.revision) == (first.stored, first.revision)
    assert await server.stored() == ["a", "b", "c"]


async def test_a_request_id_is_for_one_request(server: Server) -> None:
    await server.context.ingest.run(TENANT, S1, spoken("a", ids=False), request(digest=b"1"))
    with pytest.raises(RequestIdReused) as refused:
        await server.context.ingest.run(TENANT, S1, spoken("b", ids=False), request(digest=b"2"))
    assert refused.value.violations[0].field == "request_id"
    assert await server.stored() == ["a"]


async def test_items_of_ours_that_come_back_are_not_stored(server: Server) -> None:
    await server.ingest("a")
    done = await server.context.ingest.run(TENANT, S1, incoming(user("b", "ce:summary:x")), None)
    assert [(one.sequence, one.disposition) for one in done.stored] == [(0, Disposition.DUPLICATE)]
    assert await server.stored() == ["a"]


async def test_a_session_holds_so_many_messages(serve: Serve) -> None:
    server = await serve(**{"sessions.max_session_messages": 2})
    await server.ingest("a", "b")
    with pytest.raises(TooLarge) as refused:
        await server.ingest("c")
    assert refused.value.metadata == {"limit": "2"}
    assert await server.ingest("a") == 1  # what is stored is no more
    assert await server.stored() == ["a", "b"]


async def test_messages_that_left_the_view_count_as_well(serve: Serve) -> None:
    """A reset keeps every row: what the store holds of a session is what is limited."""
    server = await serve(**{"sessions.max_session_messages": 3})
    await server.ingest("a", "b")
    await server.context.reset_session.run(TENANT, S1, None, None)
    await server.ingest("c")
    with pytest.raises(TooLarge) as refused:
        await server.ingest("d")
    assert refused.value.metadata == {"limit": "3"}


async def test_what_a_fork_inherits_does_not_count(serve: Serve) -> None:
    """Its rows are the parent's, and stored once."""
    server = await serve(**{"sessions.max_session_messages": 2})
    await server.ingest("a", "b")
    child = Ref(AGENT, "child")
    await server.context.prepare_subagent_spawn.run(TENANT, SpawnRequest(S1, child, fork=True))
    await server.ingest("c", "d", ref=child)
    with pytest.raises(TooLarge):
        await server.ingest("e", ref=child)


async def test_a_key_names_its_session_and_a_new_id_rotates_it(server: Server) -> None:
    await server.ingest("a", ref=Ref(AGENT, key="chat"))
    await server.ingest("b", ref=Ref(AGENT, "second", key="chat"))
    await server.ingest("c", ref=Ref(AGENT, key="chat"))
    assert await server.stored(Ref(AGENT, "chat")) == ["a"]
    assert await server.stored(Ref(AGENT, "second")) == ["b", "c"]


@pytest.mark.parametrize(
    ("ref", "field"),
    [
        (Ref("", "s1"), "session.agent_id"),
        (Ref(AGENT), "session.session_id"),
        (Ref(AGENT, "s" * 257), "session.session_id"),
        (Ref(AGENT, "s1", "k" * 257), "session.session_key"),
        (Ref("a\x00b", "s1"), "session.agent_id"),
    ],
)
async def test_a_session_that_cannot_be_is_refused(server: Server, ref: Ref, field: str) -> None:
    with pytest.raises(InvalidField) as refused:
        await server.ingest("a", ref=ref)
    assert refused.value.violations[0].field == field
    assert (await server.store.counts())["sessions"] == 0


async def test_what_is_stored_is_told_and_counted(server: Server) -> None:
    await server.ingest("a", "b")
    await server.ingest("b", "c")
    created, first, second = server.events("session:")
    assert (created.name, created.revision) == ("session:created", 1)
    assert first.counts["messages"] == 2
    assert (second.counts["messages"], second.revision) == (1, 2)
    assert server.core.meters.messages.value == 3


async def test_a_session_that_begins_with_too_many_does_not_begin(serve: Serve) -> None:
    server = await serve(**{"sessions.max_session_messages": 2})
    with pytest.raises(TooLarge) as refused:
        await server.ingest("a", "b", "c")
    assert str(refused.value).startswith("the session would have more than 2 messages")
    assert await server.store.head(scope()) is None
    await server.ingest("a", "b")


async def test_a_conflict_says_which_message_it_is(server: Server) -> None:
    await server.ingest("a")
    with pytest.raises(MessageConflict) as refused:
        await server.context.ingest.run(TENANT, S1, incoming(user("other", "a")), None)
    metadata = refused.value.metadata
    assert metadata.keys() == {"index", "id", "stored_hash", "sent_hash"}
    assert (metadata["index"], metadata["id"]) == ("0", "a")
    assert str(refused.value) == (
        "messages[0]: id 'a' is stored with other content: send an edit under a new id"
    )
    assert refused.value.violations == (
        FieldViolation("messages[0].id", "is stored with other content"),
    )


async def test_what_came_is_told_and_counted_together(server: Server) -> None:
    await server.ingest("a", "some more words", "and the last")
    [told] = server.events("session:ingested")
    tokens = sum(row.tokens for row in await server.store.messages(scope()))
    assert told.counts == {"messages": 3, "tokens": tokens}
    meters = server.core.meters
    assert (meters.messages.value, meters.tokens_in.value) == (3, tokens)
