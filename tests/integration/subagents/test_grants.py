"""An isolated child begins with nothing, and recalls of its parent what it was granted: no more, no
newer, no longer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from contextengine import types as t
from contextengine.errors import BudgetSpent
from contextengine.messages import user
from tests.integration.assemble.asking import assign
from tests.integration.harness import Clock, House, ref
from tests.integration.recall.asking import covered, deep, sequences, work
from tests.integration.recall.asking import summaries as summaries_of

from .family import FORK, ISOLATED, Family, refused

LARGE = t.RecallGrant(max_tokens=100_000)
DENIED = ("PERMISSION_DENIED", "PERMISSION_DENIED", ["spawn_token"])
OVER = ("FAILED_PRECONDITION", "SPAWN_ENDED", ["spawn_token"])
OTHERS = ("INVALID_ARGUMENT", "INVALID_FIELD", ["spawn_token"])


@pytest.fixture
def family(house: House) -> Family:
    return Family(house, "g")


async def find(family: Family, query: str, token: str, **more: Any) -> t.SearchResponse:
    """Searches with a token, once all that it opens can be found."""
    session = more.pop("session", family.child)
    return await family.house.client.recall.search(
        session, query, spawn_token=token, **{"at_least_revision": 1, **more}
    )


async def call(
    family: Family, name: str, token: str, **arguments: Any
) -> tuple[dict[str, Any], t.CallToolResponse]:
    """Calls a tool with a token."""
    raw = json.dumps(arguments).encode()
    reply = await family.house.client.call_tool(
        family.child, name=name, arguments_json=raw, spawn_token=token
    )
    return json.loads(reply.result_json), reply


async def used(family: Family) -> int:
    return (await family.house.client.get_status(family.child)).spawn.used_tokens


async def test_an_isolated_child_is_empty_and_knows_its_objective(family: Family) -> None:
    await family.say(family.parent, "one")
    prepared = await family.prepare(objective="Find the bug.", context_mode=ISOLATED)
    assert (prepared.context_mode, prepared.inherited_tokens, prepared.depth) == (ISOLATED, 0, 1)
    assert await family.shown() == []
    assert await family.say(family.child, "mine") == 1
    assert await family.house.rows(family.child)
    spawn = (await family.house.client.get_status(family.child)).spawn
    assert (spawn.objective, spawn.parent.session_id) == ("Find the bug.", family.parent.session_id)
    assert spawn.HasField("grant") is False


async def test_without_a_token_nothing_of_the_parent_is_found(family: Family) -> None:
    await family.say(family.parent, "about zebras")
    prepared = await family.prepare(grant=LARGE)
    assert (await find(family, "zebras", "")).hits == []
    (hit,) = (await find(family, "zebras", prepared.spawn_token)).hits
    assert (hit.origin.sequence, hit.session_id) == (1, family.parent.session_id)
    assert (await family.house.client.recall.expand(family.child, sequences=[1])).items == []
    (item,) = (
        await family.house.client.recall.expand(
            family.child, sequences=[1], spawn_token=prepared.spawn_token
        )
    ).items
    assert item.message.parts[0].text.text == "about zebras"


async def test_another_agent_may_be_granted_what_it_could_not_reach(family: Family) -> None:
    await family.say(family.parent, "about zebras")
    family.child = ref("g-child", agent="helper")
    prepared = await family.prepare(grant=LARGE)
    assert sequences(await find(family, "zebras", prepared.spawn_token)) == [1]
    assert (await find(family, "zebras", "")).hits == []


async def test_a_token_opens_the_parent_as_it_was(family: Family) -> None:
    client = family.house.client
    await family.say(family.parent, "old zebras", "zebras that were taken back")
    await client.record_host_change(
        family.parent, rewind=t.RecordHostChangeRequest.Rewind(after_sequence=1)
    )
    token = (await family.prepare(grant=LARGE)).spawn_token
    await family.say(family.parent, "new zebras")
    later = (await client.get_status(family.parent)).revision
    await client.recall.search(family.parent, "zebras", at_least_revision=later)
    for more in ({}, {"include_retired": True}, {"mode": t.SEARCH_MODE_REGEX}):
        assert sequences(await find(family, "zebras", token, **more)) == [1], more
    opened = await client.recall.expand(family.child, sequences=[1, 2, 3], spawn_token=token)
    assert ([item.origin.sequence for item in opened.items], opened.missing_count) == ([1], 2)
    await client.reset_session(family.parent)
    assert sequences(await find(family, "zebras", token)) == [1], (
        "what left the view later is there"
    )


async def test_no_page_leads_beyond_the_spawn(family: Family) -> None:
    client = family.house.client
    await family.say(family.parent, "zebra one", "zebra two")
    token = (await family.prepare(grant=LARGE)).spawn_token
    revision = (
        await client.ingest_batch(family.parent, [user("zebra three"), user("zebra four")])
    ).revision
    ahead = await client.recall.search(family.parent, "zebra", limit=1, at_least_revision=revision)
    assert ahead.next_page_token
    page, seen = ahead.next_page_token, set()
    while page:
        found = await find(family, "zebra", token, limit=1, page_token=page)
        page = found.next_page_token
        seen |= set(sequences(found))
    assert seen <= {1, 2}


async def test_summaries_are_granted_with_what_they_cover(family: Family) -> None:
    await family.say(family.parent, *work(1), *work(2))
    first = await covered(family.house, family.parent, 1, 4, "zebras of the first part")
    token = (await family.prepare(grant=LARGE)).spawn_token
    second = await covered(family.house, family.parent, 5, 8, "zebras of the second part")
    recall = family.house.client.recall
    assert summaries_of(await find(family, "zebras", token)) == [first.id]
    said = await recall.inspect(family.child, first.id, spawn_token=token)
    assert "first part" in said.text
    opened = await recall.expand(family.child, summary_ids=[first.id], spawn_token=token)
    assert [item.origin.sequence for item in opened.items] == [1, 2, 3, 4]
    assert await refused(recall.inspect(family.child, second.id, spawn_token=token)) is not None
    assert await refused(recall.inspect(family.child, first.id)) is not None


async def test_a_summary_that_had_left_the_view_is_not_granted(family: Family) -> None:
    client = family.house.client
    await family.say(family.parent, *work(1), *work(2))
    gone = await covered(family.house, family.parent, 5, 8, "zebras of the second part")
    await client.record_host_change(
        family.parent, rewind=t.RecordHostChangeRequest.Rewind(after_sequence=4)
    )
    token, recall = (await family.prepare(grant=LARGE)).spawn_token, client.recall
    assert (await recall.inspect(family.parent, gone.id)).summary.id == gone.id
    said = await refused(recall.inspect(family.child, gone.id, spawn_token=token))
    assert said is not None
    assert said[0] == "NOT_FOUND"
    assert (await recall.expand(family.child, summary_ids=[gone.id], spawn_token=token)).items == []


async def test_every_way_of_recall_is_paid_from_the_grant(family: Family) -> None:
    await family.say(family.parent, *work(1), *work(2))
    summary = await covered(family.house, family.parent, 1, 4, "zebras of the first part")
    token, recall = (await family.prepare(grant=LARGE)).spawn_token, family.house.client.recall
    spent = [await used(family)]
    for asked in (
        find(family, "revenue", token),
        recall.inspect(family.child, summary.id, spawn_token=token),
        recall.expand(family.child, sequences=[5, 6], spawn_token=token),
        call(family, "ctx_search", token, query="revenue"),
        call(family, "ctx_expand", token, sequences=[5]),
        call(family, "ctx_inspect", token, summary_id=summary.id),
    ):
        answer = await asked
        spent.append(await used(family))
        assert spent[-1] > spent[-2]
        if isinstance(answer, tuple):
            assert spent[-1] - spent[-2] == answer[1].tokens
    assert spent[0] == 0
    await find(family, "revenue", "", session=family.parent)
    assert await used(family) == spent[-1], "the parent pays nothing for its own"


async def test_a_grant_is_never_overdrawn(family: Family) -> None:
    text = "zebra " * 100
    await family.say(family.parent, *(text for _ in range(30)))
    token = (await family.prepare(grant=t.RecallGrant(max_tokens=1_000))).spawn_token
    recall = family.house.client.recall

    async def one(sequence: int) -> int:
        try:
            return (
                await recall.expand(family.child, sequences=[sequence], spawn_token=token)
            ).tokens
        except BudgetSpent:
            return 0

    read = sum(await asyncio.gather(*(one(sequence) for sequence in range(1, 31))))
    assert 0 < read == await used(family) <= 1_000
    while await refused(recall.expand(family.child, sequences=[1], spawn_token=token)) is None:
        pass
    assert await used(family) <= 1_000
    said, reply = await call(family, "ctx_expand", token, sequences=[1])
    assert reply.is_error, "the model hears of it and goes on"
    assert said["error"]["code"] == "grant_spent"


async def test_a_page_is_no_larger_than_what_is_left(family: Family) -> None:
    await family.say(family.parent, *("zebra " * 100 for _ in range(30)))
    token = (await family.prepare(grant=t.RecallGrant(max_tokens=500))).spawn_token
    opened = await family.house.client.recall.expand(
        family.child, sequences=range(1, 31), spawn_token=token, max_tokens=10_000
    )
    assert 0 < opened.tokens <= 500
    assert opened.truncated


async def test_a_grant_that_says_nothing_is_the_configured_one(family: Family) -> None:
    await family.say(family.parent, "one")
    await family.prepare(grant=t.RecallGrant())
    grant = (await family.house.client.get_status(family.child)).spawn.grant
    assert (grant.max_tokens, grant.max_depth) == (4_000, 3)
    await family.house.restart(**{"subagents.grant_tokens": 70, "subagents.grant_depth": 1})
    family.child = family.session("another")
    await family.prepare(grant=t.RecallGrant())
    grant = (await family.house.client.get_status(family.child)).spawn.grant
    assert (grant.max_tokens, grant.max_depth) == (70, 1)


async def test_no_summary_is_opened_deeper_than_granted(family: Family) -> None:
    client, top = family.house.client, (await deep(family.house, family.parent))[-1]
    opened = {}
    for depth in (1, 2):
        family.child = family.session(f"child{depth}")
        token = (
            await family.prepare(grant=t.RecallGrant(max_tokens=100_000, max_depth=depth))
        ).spawn_token
        reply = await client.recall.expand(
            family.child, summary_ids=[top.id], max_depth=9, max_tokens=20_000, spawn_token=token
        )
        opened[depth] = [item.origin.summary_id or item.origin.sequence for item in reply.items]
        said, _ = await call(
            family, "ctx_expand", token, summary_id=top.id, depth=9, max_tokens=20_000
        )
        brought = [one.get("summary_id") or one.get("sequence") for one in said["items"]]
        assert brought == opened[depth][: len(brought)] != []
    assert opened[1] != opened[2], "a level deeper there is more"
    assert all(isinstance(one, str) for one in opened[1][:1])


async def test_a_page_never_costs_more_than_is_left_of_a_grant(family: Family) -> None:
    """The JSON around the texts is paid for too: a page is made smaller, not refused."""
    client = family.house.client
    await client.ingest_batch(
        family.parent, messages=[user(f"short {n} " + "word " * 25) for n in range(150)]
    )
    token = (await family.prepare(grant=t.RecallGrant(max_tokens=4_000))).spawn_token
    said, reply = await call(family, "ctx_expand", token, sequences=[*range(1, 151)])
    assert not reply.is_error
    assert len(said["items"]) > 20
    assert said["truncated"]


async def test_a_grant_ends_before_its_child(clocked: House, clock: Clock) -> None:
    family = Family(clocked, "until")
    await family.say(family.parent, "about zebras")
    grant = t.RecallGrant(max_tokens=1_000)
    grant.expire_time.FromMilliseconds(clock.ms + 1_000)
    token = (await family.prepare(grant=grant)).spawn_token
    assert sequences(await find(family, "zebras", token)) == [1]
    clock.advance(1)
    assert await refused(find(family, "zebras", token)) == DENIED
    await clocked.client.bootstrap(family.child, spawn_token=token)
    await family.say(family.child, "goes on")


async def test_no_grant_is_no_recall(family: Family) -> None:
    await family.say(family.parent, "about zebras")
    token = (await family.prepare()).spawn_token
    assert await refused(find(family, "zebras", token)) == DENIED
    assert await refused(call(family, "ctx_search", token, query="zebras")) == DENIED


async def test_a_token_ends_with_its_child(family: Family) -> None:
    await family.say(family.parent, "about zebras")
    endings: list[Callable[[str], Any]] = [
        lambda token: family.end(),
        lambda token: family.end(spawn_token=token),
        family.roll_back,
    ]
    for number, ending in enumerate(endings):
        family.child = family.session(f"child{number}")
        token = (await family.prepare(grant=LARGE)).spawn_token
        await family.say(family.child, "mine")
        assert sequences(await find(family, "zebras", token)) == [1]
        assert await ending(token)
        assert await refused(find(family, "zebras", token)) == OVER
        assert await refused(family.house.client.bootstrap(family.child, spawn_token=token)) == OVER


async def test_a_token_is_its_childs_alone(family: Family) -> None:
    await family.say(family.parent, "about zebras")
    other = family.session("other")
    await family.say(other, "of another")
    token = (await family.prepare(grant=LARGE)).spawn_token
    assert await refused(find(family, "zebras", token, session=other)) == OTHERS
    assert await refused(family.house.client.bootstrap(other, spawn_token=token)) == OTHERS
    assert sequences(await find(family, "zebras", token, session=family.parent)) == [1]
    assert await refused(family.roll_back(token, other)) == (
        "INVALID_ARGUMENT",
        "INVALID_FIELD",
        ["parent"],
    )
    assert await refused(find(family, "zebras", token)) is None


async def test_a_child_grants_what_it_has_and_not_what_it_was_granted(family: Family) -> None:
    grandchild = family.session("grandchild")
    await family.say(family.parent, "zebras of the parent")
    await family.prepare(grant=LARGE)
    await family.say(family.child, "zebras of the child")
    token = (await family.prepare(grandchild, family.child, grant=LARGE)).spawn_token
    found = await find(family, "zebras", token, session=grandchild)
    assert [hit.session_id for hit in found.hits] == [family.child.session_id]


async def test_a_parent_that_is_a_fork_grants_its_whole_view(family: Family) -> None:
    grandchild = family.session("grandchild")
    await family.say(family.parent, "zebras of the parent")
    await family.prepare(context_mode=FORK)
    await family.say(family.child, "zebras of the child")
    await family.say(family.parent, "later zebras")
    token = (await family.prepare(grandchild, family.child, grant=LARGE)).spawn_token
    found = await find(family, "zebras", token, session=grandchild)
    assert sorted(sequences(found)) == [1, 2]


async def test_a_fork_that_was_too_large_has_its_grant_instead(family: Family) -> None:
    await family.house.restart(**{"subagents.max_fork_tokens": 3})
    await family.say(family.parent, "about zebras and their stripes")
    prepared = await family.prepare(context_mode=FORK, grant=LARGE)
    assert prepared.context_mode == ISOLATED
    assert sequences(await find(family, "zebras", prepared.spawn_token)) == [1]


async def test_tools_of_an_engine_without_recall_are_not_opened_by_a_token(family: Family) -> None:
    await family.say(family.parent, "about zebras")
    token = (await family.prepare(grant=LARGE)).spawn_token
    await assign(family.house, family.child, "legacy")
    said, reply = await call(family, "ctx_search", token, query="zebras")
    assert (reply.is_error, said["error"]["code"], await used(family)) == (True, "unknown_tool", 0)
