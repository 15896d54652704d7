"""Search over all sessions of an agent: whose rows are found, in which order, in pages that nothing
moves, and who may not ask."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from contextengine import AsyncClient, ContextEngineError
from contextengine import types as t
from contextengine.messages import assistant, user
from contextengine_server.recall import agent_search
from tests.integration.harness import ALICE, BOB, House, problem, ref

from .asking import covered, find, write

REGEX = t.SEARCH_MODE_REGEX
HERE = ref("here")
"""The session that is asked about. It holds nothing, unless a test says so."""


async def everywhere(
    house: House, query: str, session: t.SessionRef = HERE, **more: Any
) -> t.SearchResponse:
    """Searches all sessions of the agent as they are now."""
    return await find(house, query, session, all_sessions=True, **more)


def places(found: t.SearchResponse) -> list[tuple[str, int]]:
    """Session and sequence of every message that was found; here is the empty name."""
    return [
        (hit.session_id, hit.origin.sequence)
        for hit in found.hits
        if hit.origin.HasField("sequence")
    ]


async def paged(house: House, query: str, limit: int, **more: Any) -> list[t.SearchResponse]:
    """Every page of an answer."""
    pages: list[t.SearchResponse] = []
    while not pages or pages[-1].next_page_token:
        assert len(pages) < 99, "an answer ends"
        token = pages[-1].next_page_token if pages else ""
        pages.append(await everywhere(house, query, limit=limit, page_token=token, **more))
    return pages


def forged(page: str, at: int, value: object) -> str:
    """A page's token with another value in it."""
    content = json.loads(base64.urlsafe_b64decode(page + "=" * (-len(page) % 4)))
    content[at] = value
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


@pytest.fixture
async def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of three sessions, so that few fill several."""
    monkeypatch.setattr(agent_search, "BATCH", 3)


async def filled(house: House, count: int = 7) -> list[tuple[str, int]]:
    """Sessions that hold zebras, and where these are."""
    await write(house, HERE, "good morning", "a zebra here")
    where = [("", 2)]
    for number in range(count):
        name = f"s{number}"
        await write(house, ref(name), "some words", *["the zebra again"] * (1 + number % 3))
        where += [(name, 2 + at) for at in range(1 + number % 3)]
    return where


# Whose rows


@pytest.mark.parametrize("mode", [t.SEARCH_MODE_FULL_TEXT, REGEX])
async def test_the_other_sessions_of_the_agent_are_found_and_name_themselves(
    house: House, mode: t.SearchMode
) -> None:
    await write(house, HERE, "here is a zebra")
    await write(house, ref("before"), "nothing", "another zebra", assistant("indeed"))
    await write(house, ref("else"), "a horse")
    found = await everywhere(house, "zebra", mode=mode)
    assert sorted(places(found)) == [("", 1), ("before", 2)]
    assert found.total_count == 2
    (far,) = (hit for hit in found.hits if hit.session_id)
    assert "another zebra" in far.snippet
    assert (far.before.sequence, far.after.sequence) == (1, 3)
    alone = await find(house, "zebra", HERE, mode=mode)
    assert places(alone) == [("", 1)]
    # What was found is opened in its own session.
    opened = await house.client.recall.expand(ref(far.session_id), sequences=[2])
    assert "another zebra" in str(opened.items[0].message)


@pytest.mark.parametrize("mode", [t.SEARCH_MODE_FULL_TEXT, REGEX])
async def test_no_other_agents_and_no_other_tenants(guarded: House, mode: t.SearchMode) -> None:
    alice, bob = guarded.client_of(ALICE), guarded.client_of(BOB)

    async def said(client: AsyncClient, session: t.SessionRef, text: str) -> None:
        await client.ingest(session, message=user(text))

    await said(alice, HERE, "mine")
    await said(alice, ref("mine too"), "a zebra of alice")
    await said(alice, ref("mine too", agent="other"), "a zebra of another agent")
    await said(bob, ref("mine too"), "a zebra of bob")
    await said(bob, HERE, "nothing")
    found = await everywhere(guarded, "zebra", client=alice, mode=mode)
    assert places(found) == [("mine too", 1)]
    assert "of alice" in found.hits[0].snippet
    theirs = await everywhere(guarded, "zebra", client=bob, mode=mode)
    assert ["of bob" in hit.snippet for hit in theirs.hits] == [True]


async def test_summaries_of_other_sessions_come_behind_all_messages(house: House) -> None:
    await write(house, HERE, "the zebra")
    other = ref("other")
    await write(house, other, *["a long talk about many animals of the savannah " * 20] * 8)
    made = await covered(house, other, 1, 4, "they spoke of a zebra")
    await write(house, ref("third"), "zebra zebra")
    found = await everywhere(house, "zebra")
    kinds = [hit.origin.HasField("summary_id") for hit in found.hits]
    assert kinds == [False, False, True]
    assert (found.hits[-1].origin.summary_id, found.hits[-1].session_id) == (made.id, "other")
    only = await everywhere(house, "zebra", scope=t.SEARCH_SCOPE_SUMMARIES)
    assert [hit.origin.summary_id for hit in only.hits] == [made.id]
    messages = await everywhere(house, "zebra", scope=t.SEARCH_SCOPE_MESSAGES)
    assert len(messages.hits) == messages.total_count == 2
    told = await everywhere(house, "z.bra", mode=REGEX)
    assert [hit.origin.HasField("summary_id") for hit in told.hits] == [False, False, True]


async def test_roles_and_times_choose_in_every_session(house: House) -> None:
    early, late = datetime(2031, 1, 1, tzinfo=UTC), datetime(2032, 1, 1, tzinfo=UTC)
    await write(house, HERE, "hello")
    await write(house, ref("a"), user("zebra", timestamp=early), assistant("zebra", timestamp=late))
    await write(house, ref("b"), user("zebra", timestamp=late))
    users = await everywhere(house, "zebra", roles=[t.ROLE_USER])
    assert sorted(places(users)) == [("a", 1), ("b", 1)]
    begin = datetime(2031, 6, 1, tzinfo=UTC)
    later = await everywhere(house, "zebra", start_time=begin)
    assert sorted(places(later)) == [("a", 2), ("b", 1)]


async def test_what_two_sessions_share_is_found_once(house: House) -> None:
    """A session that goes on from another recalls its rows; they are no second hit there."""
    first = ref("first")
    await write(house, first, "the first zebra")
    await house.client.bootstrap(HERE, continues=first)
    await write(house, HERE, "a second zebra")
    await write(house, first, "a third zebra, after the other went on")
    for mode in (t.SEARCH_MODE_FULL_TEXT, REGEX):
        found = await everywhere(house, "zebra", mode=mode)
        assert sorted(places(found)) == [("", 2), ("first", 1), ("first", 2)]
    beside = await everywhere(house, "zebra", first)
    assert sorted(places(beside)) == [("", 1), ("", 2), ("here", 2)]


# Sessions that ended, were reset, rotated out or deleted


async def test_ended_and_rotated_sessions_are_found_and_deleted_ones_are_not(house: House) -> None:
    await write(house, HERE, "hello")
    for name in ("ended", "deleted"):
        await write(house, ref(name), f"a zebra that {name}")
    await house.client.end_session(ref("ended"))
    keyed = t.SessionRef(agent_id=HERE.agent_id, session_id="old", session_key="k")
    await write(house, keyed, "a zebra that was rotated out")
    await write(
        house, t.SessionRef(agent_id=HERE.agent_id, session_id="new", session_key="k"), "hello"
    )
    await house.client.sessions.delete(ref("deleted"))
    for mode in (t.SEARCH_MODE_FULL_TEXT, REGEX):
        found = await everywhere(house, "zebra", mode=mode)
        assert sorted(places(found)) == [("ended", 1), ("old", 1)]


async def test_what_left_a_view_is_found_when_it_is_asked_for(house: House) -> None:
    await write(house, HERE, "hello")
    await write(house, ref("other"), "a zebra")
    await house.client.reset_session(ref("other"))
    assert places(await everywhere(house, "zebra")) == []
    assert places(await everywhere(house, "zebra", include_retired=True)) == [("other", 1)]


async def test_secrets_of_other_sessions_are_not_shown(house: House) -> None:
    secret = "sk-proj-" + "a1B2" * 12
    await write(house, HERE, "hello")
    await write(house, ref("other"), f"the zebra key is {secret}")
    found = await everywhere(house, "zebra key")
    assert places(found) == [("other", 1)]
    assert secret not in str(found)


# Order


async def test_the_best_comes_first_whichever_session_holds_it(house: House) -> None:
    await write(house, HERE, "a database", *["we talk of other things"] * 4)
    await write(house, ref("best"), "other things", "the database migration failed")
    await write(house, ref("middling"), "the migration of birds is long")
    found = await everywhere(house, "database migration")
    assert places(found)[0] == ("best", 2)
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)
    assert await everywhere(house, "database migration") == found


async def test_equal_hits_stand_by_session_the_one_made_last_first(house: House) -> None:
    await write(house, HERE, "hello")
    for name in ("one", "two", "three"):
        await write(house, ref(name), "a zebra")
    await write(house, ref("one"), "and then no more")
    for query, mode in (("zebra", t.SEARCH_MODE_FULL_TEXT), ("z.bra", REGEX)):
        found = await everywhere(house, query, mode=mode)
        assert [session for session, _ in places(found)] == ["three", "two", "one"]


# Pages


@pytest.mark.parametrize("mode", [t.SEARCH_MODE_FULL_TEXT, REGEX])
@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_pages_hold_every_hit_once(house: House, limit: int, mode: t.SearchMode) -> None:
    where = await filled(house)
    whole = places(await everywhere(house, "zebra", limit=100, mode=mode))
    assert sorted(whole) == sorted(where)
    pages = await paged(house, "zebra", limit, mode=mode)
    assert all(len(page.hits) <= limit for page in pages)
    assert [place for page in pages for place in places(page)] == whole
    assert {page.revision for page in pages} == {1}


@pytest.mark.parametrize("mode", [t.SEARCH_MODE_FULL_TEXT, REGEX])
@pytest.mark.usefixtures("small")
async def test_more_sessions_than_a_batch_are_searched_batch_by_batch(
    house: House, mode: t.SearchMode
) -> None:
    where = await filled(house, 14)
    for limit in (1, 4, 100):
        pages = await paged(house, "zebra", limit, mode=mode)
        assert sorted(place for page in pages for place in places(page)) == sorted(where), limit
        assert not any(page.HasField("total_count") for page in pages)
    # A batch holds the sessions that were made last.
    first = places((await paged(house, "zebra", 100, mode=mode))[0])
    assert {session for session, _ in first[:5]} <= {"", "s13", "s12", "s11"}


@pytest.mark.usefixtures("small")
async def test_one_call_goes_through_so_many_batches_and_no_more(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_search, "BATCHES", 2)
    await write(house, ref("oldest"), "the zebra")
    for number in range(9):
        await write(house, ref(f"s{number}"), "nothing of the kind")
    await write(house, HERE, "hello")
    pages = await paged(house, "zebra", 10)
    assert [len(page.hits) for page in pages] == [0, 1]
    assert places(pages[-1]) == [("oldest", 1)]


@pytest.mark.parametrize("mode", [t.SEARCH_MODE_FULL_TEXT, REGEX])
@pytest.mark.usefixtures("small")
async def test_what_is_written_and_made_meanwhile_moves_no_page(
    house: House, mode: t.SearchMode
) -> None:
    await filled(house)
    before = [place for page in await paged(house, "zebra", 2, mode=mode) for place in places(page)]
    pages: list[t.SearchResponse] = []
    while not pages or pages[-1].next_page_token:
        token = pages[-1].next_page_token if pages else ""
        pages.append(await everywhere(house, "zebra", limit=2, page_token=token, mode=mode))
        if len(pages) < 4:
            at = len(pages)
            await write(house, ref(f"new{at}"), "a zebra of a new session")
            # In a batch that was begun. What a later batch holds is what there is by then.
            await write(house, ref("s6"), "another zebra in what was searched")
            await write(house, HERE, "zebra")
    assert [place for page in pages for place in places(page)] == before


@pytest.mark.parametrize("mode", [t.SEARCH_MODE_FULL_TEXT, REGEX])
async def test_a_session_deleted_between_pages_takes_its_own_hits_alone(
    house: House, mode: t.SearchMode
) -> None:
    where = await filled(house)
    first = await everywhere(house, "zebra", limit=4, mode=mode)
    await house.client.sessions.delete(ref("s2"))
    await write(house, ref("s2"), "another life, with its zebra")
    found = places(first)
    token = first.next_page_token
    while token:
        page = await everywhere(house, "zebra", limit=4, page_token=token, mode=mode)
        found += places(page)
        token = page.next_page_token
    gone = [place for place in where if place[0] == "s2"]
    assert len(found) == len(set(found))
    assert {place for place in found if place[0] != "s2"} == set(where) - set(gone)
    assert not set(places(first)).symmetric_difference(found[:4])
    assert [place for place in found[4:] if place[0] == "s2"] == []


async def test_a_page_belongs_to_its_question(house: House) -> None:
    await filled(house)
    page = (await everywhere(house, "zebra", limit=2)).next_page_token
    alone = (await find(house, "[eo]", HERE, limit=1, mode=REGEX)).next_page_token
    asked: Sequence[tuple[str, dict[str, Any]]] = [
        (page, {"all_sessions": False}),
        (page, {"session": ref("s1")}),
        (page, {"query": "horse"}),
        (page, {"include_retired": True}),
        (alone, {}),
        (page[:-8], {}),
        (page + "AAAA", {}),
        *((forged(page, at, value), {}) for at, value in ((1, -1), (3, 7), (5, "x"), (5, [[1]]))),
    ]
    for token, more in asked:
        request = {
            "session": HERE, "query": "zebra", "all_sessions": True, "limit": 2,
            "page_token": token, **more,
        }  # fmt: skip
        with pytest.raises(ContextEngineError) as caught:
            await house.client.recall.search(request.pop("session"), **request)
        assert problem(caught.value) == ("INVALID_ARGUMENT", "INVALID_FIELD", ["page_token"])


# Who may not ask


@pytest.mark.parametrize("mode", [t.CONTEXT_MODE_FORK, t.CONTEXT_MODE_ISOLATED])
async def test_a_child_recalls_by_its_token_and_not_all_sessions(
    house: House, mode: t.ContextMode
) -> None:
    await write(house, HERE, "the zebra of the parent")
    child = ref("child")
    prepared = await house.client.prepare_subagent_spawn(HERE, child, context_mode=mode)
    await write(house, HERE, "a zebra after the spawn")
    await write(house, child, "a zebra of the child")

    async def refused(session: t.SessionRef) -> None:
        with pytest.raises(ContextEngineError) as caught:
            await house.client.recall.search(session, query="zebra", all_sessions=True)
        assert problem(caught.value)[::2] == ("PERMISSION_DENIED", ["all_sessions"])

    await refused(child)
    grandchild = ref("grandchild")
    await house.client.prepare_subagent_spawn(child, grandchild, context_mode=mode)
    await refused(grandchild)
    await house.client.end_subagent(child, spawn_token=prepared.spawn_token)
    await refused(child)
    # The parent's agent finds what its children said, each of their rows once.
    found = await everywhere(house, "zebra")
    own = max(place[1] for place in places(found) if place[0] == "child")
    assert sorted(places(found)) == [("", 1), ("", 2), ("child", own)]


async def test_a_session_that_is_not_there_searches_nothing(house: House) -> None:
    await write(house, ref("other"), "a zebra")
    with pytest.raises(ContextEngineError) as caught:
        await house.client.recall.search(HERE, query="zebra", all_sessions=True)
    assert problem(caught.value)[0] == "NOT_FOUND"


# What is written last


async def test_with_a_revision_everything_of_every_session_is_waited_for(house: House) -> None:
    """`at_least_revision` is the revision of the session that is asked about; of the others, what
    is there when the search begins."""
    await write(house, HERE, "hello")
    for number in range(20):
        await write(house, ref(f"s{number}"), f"zebra {number}")
        found = await everywhere(house, f"zebra {number}", limit=1, at_least_revision=1)
        assert places(found) == [(f"s{number}", 1)]
        assert found.revision == 1
