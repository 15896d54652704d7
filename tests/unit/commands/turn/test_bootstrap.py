"""Bootstrap: a host and a session are introduced, once; a session goes on where another stood."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextengine_server.commands.turn.bootstrap import HostFacts, Introduction
from contextengine_server.context.plan import segment_slots
from contextengine_server.errors import (
    ContradictoryFields,
    InvalidField,
    LostRace,
    RequestIdReused,
    RowNotFound,
    SessionHasDependents,
    SessionNotFound,
    SpawnEnded,
)
from contextengine_server.session.address import Ref
from contextengine_server.session.receipt import Disposition
from contextengine_server.session.sessions import MAX_TRIES
from contextengine_server.store.lineage import parent_of
from contextengine_server.wire.slots import item_of
from tests.unit.commands.house import (
    AGENT,
    S1,
    SMALL,
    TENANT,
    Rows,
    Server,
    assistant,
    incoming,
    request,
    result,
    scope,
    spoken,
    user,
)

S2 = Ref(AGENT, "s2")
HOST = HostFacts(b"host", ("lends-model",))


async def test_a_session_is_made_with_what_is_said(server: Server) -> None:
    said = Introduction(HOST, "gpt-5", "openai", 50_000)
    done = await server.context.bootstrap.run(TENANT, S1, said, spoken("a"), request())
    state = await server.state()
    assert (done.created, done.head.revision, len(done.stored)) == (True, 1, 1)
    assert (done.head.model, done.head.provider) == ("gpt-5", "openai")
    assert (state.model.window, state.capabilities) == (50_000, ("lends-model",))
    assert (done.address.scope, done.capabilities) == (scope(), ("lends-model",))
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
    (row,) = await server.store.messages(scope())
    assert row.created_revision == done.head.revision
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


async def _delete(server: Server, ref: Ref) -> None:
    await server.sessions.delete.run(TENANT, ref, expected_revision=None, cascade=False)


@pytest.mark.parametrize("history", [(), ("c",)])
async def test_a_parent_that_goes_meanwhile_is_not_gone_on_with(
    server: Server, history: Sequence[str]
) -> None:
    await server.ingest("a", "b", ref=S2)
    server.store.before_commit.append(lambda: _delete(server, S2))
    with pytest.raises(SessionNotFound):
        await server.context.bootstrap.run(TENANT, S1, Introduction(continues=S2), spoken(*history))
    assert await server.store.head(scope()) is None
    await server.ingest("a stranger's", ref=S2)
    await server.ingest("d")
    assert await server.shown() == ["d"]


FATES = st.lists(st.sampled_from(["delete", "write", "nothing"]), max_size=6)


@settings(max_examples=150, deadline=None)
@given(before_commit=FATES, before_read=FATES, after=FATES, history=st.booleans())
def test_a_child_never_sees_a_stranger(
    before_commit: list[str], before_read: list[str], after: list[str], history: bool
) -> None:
    """Whatever becomes of the parent and of its name, beside Bootstrap and after it: a child that
    is there stands on a session that is there, and shows what that held when it began."""
    asyncio.run(_race(before_commit, before_read, after, history))


async def _race(
    before_commit: list[str], before_read: list[str], after: list[str], history: bool
) -> None:
    rows = Rows()
    server, other = await Server(rows, **SMALL).open(), await Server(rows, **SMALL).open()
    said = ["m0"]

    async def meet(fate: str) -> None:
        if fate == "delete":
            try:
                await _delete(other, S2)
                said.clear()
            except SessionHasDependents:
                assert await other.store.head(scope()) is not None
        elif fate == "write":
            number = next(rows.ids)
            await other.ingest(f"m{number}", ref=S2)
            said.append(f"m{number}")

    try:
        await other.ingest("m0", ref=S2)
        server.store.before_commit += [partial(meet, one) for one in before_commit]
        server.store.before_read += [partial(meet, one) for one in before_read]
        began: list[str] = []
        try:
            await server.context.bootstrap.run(
                TENANT, S1, Introduction(continues=S2), spoken("c") if history else ()
            )
        except (SessionNotFound, LostRace):
            assert await other.store.head(scope()) is None
            return
        finally:
            server.store.before_commit.clear()
            server.store.before_read.clear()
        head = await other.head()
        began = said[: head.parent_sequence] + (["c"] if history else [])
        assert await parent_of(other.store, head) is not None
        assert await other.shown() == await server.shown() == began
        for fate in after:
            await meet(fate)
        assert await other.shown() == await server.shown() == began
    finally:
        await server.close()
        await other.close()


async def test_a_session_goes_on_with_another_once_for_a_request(server: Server) -> None:
    await server.ingest("a", "b", ref=S2)
    said = Introduction(continues=S2)
    history = [user("c"), user("d")]
    first = await server.context.bootstrap.run(TENANT, S1, said, incoming(*history), request())
    again = await server.context.bootstrap.run(TENANT, S1, said, incoming(*history), request())
    assert (
        [one.sequence for one in again.stored] == [one.sequence for one in first.stored] == [3, 4]
    )
    assert again.head.revision == first.head.revision
    assert await server.shown() == ["a", "b", "c", "d"]


async def test_another_history_cannot_come_under_the_same_request(server: Server) -> None:
    await server.ingest("parent", ref=S2)
    for ref, said in ((S1, Introduction()), (Ref(AGENT, "s3"), Introduction(continues=S2))):
        run = partial(server.context.bootstrap.run, TENANT, ref, said)
        await run(spoken("a"), request())
        with pytest.raises(RequestIdReused):
            await run(spoken("a", "b"), request(digest=b"another"))
        assert await server.stored(ref) == ["a"]


async def test_items_of_ours_in_a_history_are_at_no_place(server: Server) -> None:
    await server.ingest("a")
    history = incoming(user("a", "a"), user("made up", "ce:s1"), user("b", "b"))
    done = await server.context.bootstrap.run(TENANT, S1, Introduction(), history)
    assert [(one.index, one.sequence) for one in done.stored] == [(0, 1), (1, 0), (2, 2)]


async def test_a_history_meets_what_another_stores_meanwhile(server: Server, other: Server) -> None:
    await server.ingest("a")
    server.store.before_commit.append(partial(other.ingest, "b"))
    history = spoken("a", "b", "c")
    done = await server.context.bootstrap.run(TENANT, S1, Introduction(), history)
    assert [one.sequence for one in done.stored] == [1, 2, 3]
    assert [one.disposition for one in done.stored] == [
        Disposition.DUPLICATE,
        Disposition.DUPLICATE,
        Disposition.STORED,
    ]
    assert await other.shown() == ["a", "b", "c"]


async def test_what_was_known_of_a_history_is_told_as_it_is_stored(server: Server) -> None:
    await server.ingest("a", "b")
    history = incoming(user("a", "a"), user("other", "b"), user("c", "c"))
    done = await server.context.bootstrap.run(TENANT, S1, Introduction(), history)
    same, differs, new = done.stored
    known = spoken("a", "b")
    assert (same.sequence, same.disposition, same.hash) == (
        1,
        Disposition.DUPLICATE,
        known[0].hash,
    )
    assert (differs.sequence, differs.disposition) == (2, Disposition.CONFLICT)
    assert (differs.hash, differs.conflicting) == (known[1].hash, history[1].hash)
    assert same.conflicting == new.conflicting == b""
    assert (new.sequence, new.disposition) == (3, Disposition.STORED)
    rows = await server.store.messages(scope())
    assert [one.tokens for one in done.stored] == [row.tokens for row in rows]


async def test_a_note_of_ours_that_comes_back_in_a_history_is_no_message(server: Server) -> None:
    """A harness that keeps what it was sent without our ids sends a late result's note as well."""
    called = [user("a", "1"), assistant("calls", "2", "c1"), user("b", "3")]
    await server.context.ingest.run(TENANT, S1, incoming(*called), None)
    await server.talk(1, 6)
    await server.compact()
    await server.context.ingest.run(TENANT, S1, incoming(result("c1", "late", "late")), None)
    assembly = await server.assemble()
    items = [
        item_of(slot.frame).message
        for segment in assembly.plan.segments
        for slot in segment_slots(segment, assembly.view)
    ]
    for item in items:
        item.id = ""
    done = await server.context.bootstrap.run(TENANT, S1, Introduction(), incoming(*items))
    assert [one for one in done.stored if one.disposition is Disposition.STORED] == []
    assert (await server.head()).last_sequence == 16


async def test_a_key_names_the_session_that_was_introduced_under_it(server: Server) -> None:
    """Without a message, and without a word of its host."""
    for name in ("first", "second"):
        done = await server.context.bootstrap.run(TENANT, Ref(AGENT, name, "chat"), Introduction())
        assert (done.head.scope.session, done.head.session_key) == (name, "chat")
        assert (await server.core.addresses.find(TENANT, Ref(AGENT, key="chat"))).scope == scope(
            Ref(AGENT, name)
        )


async def test_a_result_of_no_call_in_a_history_is_at_no_place(server: Server) -> None:
    await server.ingest("a", "b", ids=False)
    history = incoming(user("a"), result("none", "of nothing"), user("b"), user("c"))
    done = await server.context.bootstrap.run(TENANT, S1, Introduction(), history)
    assert [(one.index, one.sequence) for one in done.stored] == [(0, 1), (2, 2), (3, 3)]


async def test_who_is_always_overtaken_gives_up(server: Server, other: Server) -> None:
    await server.ingest("a")
    server.store.before_commit += [
        partial(other.ingest, f"b{number}") for number in range(2 * MAX_TRIES)
    ]
    with pytest.raises(LostRace):
        await server.context.bootstrap.run(TENANT, S1, Introduction(), spoken("a", "c"))
    assert "c" not in await other.stored()


async def test_a_child_that_was_taken_back_is_not_made_anew(server: Server) -> None:
    with pytest.raises(SpawnEnded) as refused:
        await server.context.bootstrap.run(TENANT, S1, Introduction(spawned=True))
    assert refused.value.metadata == {"why": "rolled_back"}
    assert await server.store.head(scope()) is None
