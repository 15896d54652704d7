"""What is stored in the place of what was there, and what is made beside others, when somebody else
is quicker: it is looked at again, and in the end the caller is told to send again."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.errors import LostRace, MessageConflict, SessionExists
from contextengine_server.session.address import Ref
from contextengine_server.session.receipt import Disposition
from contextengine_server.session.sessions import MAX_TRIES
from contextengine_server.store.errors import RevisionConflict
from tests.unit.commands.house import (
    AGENT,
    S1,
    TENANT,
    Server,
    request,
    scope,
    spoken,
    texts_of,
)
from tests.unit.commands.subagents.test_prepare_subagent_spawn import CHILD, prepare

S2 = Ref(AGENT, "s2")


async def test_a_list_that_takes_the_place_of_what_was_stored(
    server: Server, other: Server
) -> None:
    await server.ingest("a", "b", "c")
    server.store.before_commit.append(partial(other.ingest, "d"))
    done = await server.assemble(live=spoken("a", "x", "c", "d"), store_new=True)
    assert texts_of(done) == ["a", "x", "c", "d"]
    assert await server.stored() == await other.shown() == ["a", "x", "c", "d"]
    (told,) = server.events("session:rewound")
    head = await server.head()
    assert (told.revision, told.counts, told.session) == (head.revision, {"retired": 3}, "s1")
    marks = (await server.state()).view
    assert (marks.rewind_mark, marks.reopened) == (head.revision, head.revision)
    kept = server.core.cache.find(scope())
    assert kept is not None
    assert kept.view.rewind_mark == head.revision
    assert (await server.assemble()).epoch == (await other.assemble()).epoch


async def test_a_list_that_always_loses(server: Server, other: Server) -> None:
    await server.ingest("a", "b", "c")
    for at in range(20):
        server.store.before_commit.append(partial(other.ingest, f"o{at}"))
    with pytest.raises(LostRace) as lost:
        await server.assemble(live=spoken("a", "x", "c"), store_new=True)
    tries = 20 - len(server.store.before_commit)
    assert str(lost.value) == (
        f"session s1 was changed by others {tries} times meanwhile: send again"
    )
    assert lost.value.retry_after_ms == 50
    server.store.before_commit.clear()
    assert (await server.stored())[:3] == ["a", "b", "c"]


async def test_a_history_that_takes_the_place_of_what_was_stored(
    server: Server, other: Server
) -> None:
    await server.ingest("a", "b", "c")
    server.store.before_commit.append(partial(other.ingest, "d"))
    history = spoken("a", "x", "c", "d")
    done = await server.context.bootstrap.run(TENANT, S1, Introduction(), history, request())
    assert [one.index for one in done.stored] == [0, 1, 2, 3]
    assert done.stored[0].disposition is Disposition.DUPLICATE
    assert await server.stored() == ["a", "x", "c", "d"]


async def test_a_parent_that_is_made_anew_faster_than_it_is_read(
    server: Server, other: Server
) -> None:
    async def anew() -> None:
        await other.sessions.delete.run(TENANT, S2, expected_revision=None, cascade=False)
        await other.ingest("another's", ref=S2)

    await server.ingest("a", ref=S2)
    server.store.before_commit += [anew] * MAX_TRIES
    with pytest.raises(LostRace) as lost:
        await server.context.bootstrap.run(TENANT, S1, Introduction(continues=S2))
    assert str(lost.value) == (
        "continues: that session is deleted and made anew faster than it can be read: send again"
    )
    assert lost.value.retry_after_ms == 50
    assert server.store.before_commit == []
    server.store.before_commit += [anew] * (MAX_TRIES - 1)
    done = await server.context.bootstrap.run(TENANT, S1, Introduction(continues=S2))
    assert (done.head.parent_session, await server.shown()) == ("s2", ["another's"])


async def test_a_child_that_is_made_by_somebody_else_meanwhile(
    server: Server, other: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.ingest("a")
    make = server.store.spawns.prepare

    async def raced(*given: Any) -> Any:
        monkeypatch.setattr(server.store.spawns, "prepare", make)
        await other.ingest("mine", ref=CHILD)
        return await make(*given)

    monkeypatch.setattr(server.store.spawns, "prepare", raced)
    with pytest.raises(SessionExists) as refused:
        await prepare(server)
    assert str(refused.value) == (
        "child: session 'child' is there already: prepare a child before it is first used, or give"
        " a new session_id"
    )
    assert refused.value.metadata == {"session_id": "child"}


async def test_a_child_that_changes_faster_than_it_is_prepared(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.ingest("a")
    tries = []

    async def loses(*given: Any) -> Any:
        tries.append(given)
        raise RevisionConflict(scope(CHILD), 0, 1)

    monkeypatch.setattr(server.store.spawns, "prepare", loses)
    with pytest.raises(LostRace) as lost:
        await prepare(server)
    assert str(lost.value) == (
        "child child or its parent changes faster than it can be prepared: send again"
    )
    assert (lost.value.retry_after_ms, len(tries)) == (50, MAX_TRIES)


async def test_one_request_for_a_child_twice_at_once_is_one_child(server: Server) -> None:
    await server.ingest("a")
    first, second = await asyncio.gather(
        prepare(server, request=request()), prepare(server, request=request())
    )
    assert first == second
    assert len(server.events("subagent:prepared")) == 1


async def test_a_message_before_the_window_that_is_known_by_its_id_is_no_other_list(
    server: Server, other: Server
) -> None:
    await other.talk(1, 20)
    await server.shown(1_000)
    with pytest.raises(MessageConflict) as refused:
        await server.ingest("u1")
    (stored, *_) = await server.store.messages(scope(), 1, 1)
    assert str(refused.value) == (
        "messages[0]: id 'u1' is stored with other content: send an edit under a new id"
    )
    assert refused.value.metadata == {
        "index": "0",
        "id": "u1",
        "stored_hash": stored.content_hash.hex(),
        "sent_hash": spoken("u1")[0].hash.hex(),
    }
    # Its id is known from here on.
    done = await server.assemble(live=spoken("u1"), store_new=True)
    assert done.outcome_reason == ""
    assert (await server.head()).last_sequence == 40
